//! Fleets of other sizes under the recommended strategy, and how many instances to run.

use isotherm_sim::{InvalidScenario, Scenario, Watch, compare, size_for};
use serde::Serialize;

use super::{Figures, Wanted};

/// Sizes that are tried.
const SIZES: [u32; 22] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512];

/// More instances are not worth it once TTFT P90 is within this share of what twice the fleet has.
const WORTH: f64 = 0.1;

/// A fleet this many times slower than the largest that is tried is too small, and smaller ones need not be tried.
const HOPELESS: f64 = 4.0;

/// A number of instances and what they give.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// How many.
    pub instances: u32,
    /// What they give.
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of the time in which the accelerators computed.
    pub gpu_utilisation: Option<f64>,
}

/// Tries sizes from twice the fleet downwards; returns them with the number to run and the reason.
pub(super) fn search(
    scenario: &Scenario,
    wanted: &Wanted,
    watch: &dyn Watch,
) -> Result<(Vec<Size>, u32, String), InvalidScenario> {
    let asked = wanted.instances.max(1);
    let mut sizes: Vec<Size> = Vec::new();
    let counts = SIZES.into_iter().filter(|&size| size < 2 * asked && size != asked).chain([asked, 2 * asked]);
    let mut counts: Vec<u32> = counts.collect();
    counts.sort_unstable_by(|left, right| right.cmp(left));
    for instances in counts {
        let resized = Scenario { fleet: scenario.fleet.resized(instances), ..scenario.clone() };
        let study = compare(&resized, wanted.jobs, watch)?;
        let Some(summary) = study.report.strategies.first() else { break };
        let Some(figures) = Figures::of(summary) else { continue };
        sizes.push(Size { instances, figures, gpu_utilisation: summary.measures.gpu_utilisation });
        let is_hopeless = figures.ttft_p90_ms > HOPELESS * sizes[0].figures.ttft_p90_ms;
        if is_hopeless && instances <= asked {
            break;
        }
    }
    sizes.reverse();
    let (instances, why) = match &wanted.goal {
        Some(goal) => {
            let sized = size_for(scenario, goal, wanted.jobs, watch)?;
            match sized.first().and_then(|sized| sized.instances.zip(sized.figure)) {
                Some((instances, figure)) => {
                    let why = format!("the smallest fleet that reaches {goal}: {}", goal.show(figure));
                    (instances, why)
                }
                None => (asked, format!("no fleet of up to 1024 instances reaches {goal}")),
            }
        }
        None => knee(&sizes, asked),
    };
    Ok((sizes, instances, why))
}

/// The smallest fleet that is nearly as fast as the largest.
fn knee(sizes: &[Size], asked: u32) -> (u32, String) {
    let Some(largest) = sizes.last() else { return (asked, "nothing was measured".to_owned()) };
    let most = largest.figures.ttft_p90_ms * (1.0 + WORTH);
    // From the largest down: a smaller one that is fast by luck does not count below one that is slow.
    let enough = sizes.iter().rev().take_while(|size| size.figures.ttft_p90_ms <= most).last().unwrap_or(largest);
    let why = format!(
        "the smallest fleet whose TTFT P90 ({:.0} ms) is within {:.0} % of that of {} instances ({:.0} ms); give a goal \
         for another rule",
        enough.figures.ttft_p90_ms,
        100.0 * WORTH,
        largest.instances,
        largest.figures.ttft_p90_ms
    );
    (enough.instances, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_the_smallest_fleet_that_is_nearly_as_fast() {
        let size = |instances, ttft_p90_ms| Size {
            instances,
            figures: Figures { ttft_p50_ms: 1.0, ttft_p90_ms, hit_rate: 0.5 },
            gpu_utilisation: None,
        };
        let sizes = [size(1, 104.0), size(2, 200.0), size(3, 109.0), size(4, 105.0), size(8, 100.0)];
        assert_eq!(knee(&sizes, 4).0, 3);
    }
}
