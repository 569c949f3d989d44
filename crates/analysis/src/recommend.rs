//! What to configure for a log's traffic, from simulating its own requests on the routing code that serves.

mod reasons;
mod replay;
mod settings;
mod sizes;

use std::sync::Arc;
use std::time::Duration;

use isotherm_core::{PrefixAware, PrefixLength};
use isotherm_engine_model::Profile;
use isotherm_report::StrategySummary;
use isotherm_sim::{Goal, InvalidScenario, Rule, Scenario, Watch, compare};
use serde::Serialize;

use self::settings::Searched;
pub use self::sizes::Size;
use crate::Analysis;

/// A setting counts as good if no figure is worse than the best setting's by more than this share.
pub const TOLERANCE: f64 = 0.02;

/// What is to be served with.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// How many instances there are, at least 1.
    pub instances: u32,
    /// What runs on each.
    pub profile: Arc<Profile>,
    /// How many users send what has no times, at least 1.
    pub users: u32,
    /// How long a user waits before the next request, where the log does not say.
    pub think: Duration,
    /// What the fleet must reach; decides how many instances are recommended.
    pub goal: Option<Goal>,
    /// How many seeds each setting is simulated with; `None` for 2, or up to 8 where the log is short, so that where
    /// single prefixes happen to come home weighs less.
    pub seeds: Option<u32>,
    /// How many simulations run at once.
    pub jobs: usize,
}

/// What to configure, and what it would give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What was simulated.
    pub replay: Replay,
    /// The strategy to choose, in capitals.
    pub strategy: String,
    /// For `PREFIX_AWARE`: in characters, the middle of the good range.
    pub prefix_length: u32,
    /// The lengths that are as good, at the recommended threshold.
    pub prefix_length_range: [u32; 2],
    /// For `PREFIX_AWARE`: the middle of the good range.
    pub concurrency_threshold: u32,
    /// The thresholds that are as good, at the recommended length.
    pub concurrency_threshold_range: [u32; 2],
    /// How many instances to run.
    pub instances: u32,
    /// What the recommended strategy gives on the fleet that was asked about.
    pub predicted: Figures,
    /// What `PREFIX_AWARE` gives with the recommended parameters.
    pub prefix_aware: Figures,
    /// The best setting that was found: the one whose worst figure misses the best of that figure by least.
    pub best: Tried,
    /// The best of each figure that any setting gave, whatever its other figures.
    pub each_best: Figures,
    /// By which share the worst of the three figures misses that of the best setting; at most [`TOLERANCE`].
    pub shortfall: f64,
    /// What the best of the prefix strategies would give if what breaks sharing were repaired; `None` where that is
    /// little or nothing.
    pub repaired: Option<Compared>,
    /// The strategies side by side.
    pub strategies: Vec<Compared>,
    /// What no routing can beat.
    pub bound: Option<Figures>,
    /// Every setting of `PREFIX_AWARE` that was tried.
    pub tried: Vec<Tried>,
    /// The recommended strategy on fleets of other sizes.
    pub sizes: Vec<Size>,
    /// Why: of the strategy, the length, the threshold, the number of instances.
    pub reasons: Reasons,
}

/// Why something is recommended, in a sentence or two each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// Why this strategy.
    pub strategy: String,
    /// Why this length.
    pub prefix_length: String,
    /// Why this threshold.
    pub concurrency_threshold: String,
    /// Why so many instances.
    pub instances: String,
}

/// What was simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// How many of the log's requests.
    pub requests: usize,
    /// How many there were.
    pub of: u64,
    /// Engine time of a run, and how much of it only warmed the caches.
    pub seconds: f64,
    /// That of the warm-up.
    pub warm_up_seconds: f64,
    /// Requests came at their recorded times; otherwise users sent them in closed loop.
    pub recorded_times: bool,
    /// How many users there were in closed loop.
    pub users: u32,
    /// How many instances served, and of which profile.
    pub instances: u32,
    /// The profile's name.
    pub profile: String,
    /// How many seeds each setting ran with.
    pub seeds: u32,
    /// Answers whose length the log does not tell are taken to have so many tokens; `None` where it tells all.
    pub assumed_output_tokens: Option<u32>,
}

/// What a simulation gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Half of the requests have their first token within this time.
    pub ttft_p50_ms: f64,
    /// Nine tenths have.
    pub ttft_p90_ms: f64,
    /// Cached tokens / prompt tokens.
    pub hit_rate: f64,
}

/// A strategy and what it gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Its name, with its parameters.
    pub strategy: String,
    /// What it gave.
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of the requests that were sent elsewhere because their home was full.
    pub spill_rate: f64,
}

/// A setting of `PREFIX_AWARE` and what it gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// In characters.
    pub prefix_length: u32,
    /// Requests in flight.
    pub concurrency_threshold: u32,
    /// What it gave.
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of the requests that were sent elsewhere because their home was full.
    pub spill_rate: f64,
}

impl Figures {
    fn of(summary: &StrategySummary) -> Option<Figures> {
        let ttft = summary.measures.ttft_ms?;
        Some(Figures { ttft_p50_ms: ttft.p50, ttft_p90_ms: ttft.p90, hit_rate: summary.measures.hit_rate? })
    }

    /// By which share the worst figure misses the best.
    pub(crate) fn shortfall(&self, best: &Figures) -> f64 {
        let more = |value: f64, best: f64| if best > 0.0 { value / best - 1.0 } else { 0.0 };
        let less = if best.hit_rate > 0.0 { 1.0 - self.hit_rate / best.hit_rate } else { 0.0 };
        more(self.ttft_p50_ms, best.ttft_p50_ms).max(more(self.ttft_p90_ms, best.ttft_p90_ms)).max(less)
    }

    /// The best of each figure.
    fn best(all: impl Iterator<Item = Figures>) -> Option<Figures> {
        all.reduce(|left, right| Figures {
            ttft_p50_ms: left.ttft_p50_ms.min(right.ttft_p50_ms),
            ttft_p90_ms: left.ttft_p90_ms.min(right.ttft_p90_ms),
            hit_rate: left.hit_rate.max(right.hit_rate),
        })
    }
}

impl Analysis {
    /// Simulates the log's own requests and searches what serves them best. `None` where there is nothing to simulate:
    /// no chains of blocks, or too few requests to measure anything.
    ///
    /// # Errors
    /// When the simulation cannot be planned.
    pub fn recommend(&self, wanted: &Wanted, watch: &dyn Watch) -> Result<Option<Recommendation>, InvalidScenario> {
        let (scenario, replay) = match self.scenario(wanted) {
            Some(made) => made,
            None => return Ok(None),
        };
        let Some(searched) = Searched::search(&scenario, wanted.jobs, watch)? else { return Ok(None) };
        let chosen = searched.chosen;
        let prefix_aware = PrefixAware {
            prefix_length: PrefixLength::new(chosen.prefix_length.into()).unwrap_or_default(),
            concurrency_threshold: settings::threshold(chosen.concurrency_threshold),
            ..PrefixAware::default()
        };
        let scenario = Scenario { prefix_aware, strategies: strategies(), ..scenario };
        let study = compare(&scenario, wanted.jobs, watch)?;
        let compared: Vec<Compared> = study.report.strategies.iter().filter_map(Compared::of).collect();
        let Some((strategy, why)) =
            reasons::strategy(&compared, &chosen.figures, reasons::Mendable::of(&self.findings))
        else {
            return Ok(None);
        };
        let predicted = compared.iter().find(|one| one.strategy == strategy).map_or(chosen.figures, |one| one.figures);
        let repaired = self.simulate_repaired(&scenario, wanted, watch)?;
        let rule: Vec<Rule> = strategy.parse().into_iter().collect();
        let (sizes, instances, why_instances) =
            sizes::search(&Scenario { strategies: rule, ..scenario }, wanted, watch)?;
        let bound = study.bound.map(|bound| Figures {
            ttft_p50_ms: bound.ttft_ms.p50,
            ttft_p90_ms: bound.ttft_ms.p90,
            hit_rate: bound.hit_rate,
        });
        Ok(Some(Recommendation {
            reasons: Reasons {
                strategy: why,
                prefix_length: reasons::prefix_length(&searched, &self.findings),
                concurrency_threshold: reasons::threshold(&searched),
                instances: why_instances,
            },
            replay,
            strategy,
            prefix_length: chosen.prefix_length,
            prefix_length_range: searched.lengths,
            concurrency_threshold: chosen.concurrency_threshold,
            concurrency_threshold_range: searched.thresholds,
            instances,
            predicted,
            prefix_aware: chosen.figures,
            best: searched.best,
            each_best: searched.each_best,
            shortfall: chosen.figures.shortfall(&searched.best.figures),
            repaired,
            strategies: compared,
            bound,
            tried: searched.tried,
            sizes,
        }))
    }
}

/// Repairing is only simulated where it makes so much more of the tokens come again.
const WORTH_REPAIRING: f64 = 0.02;

impl Analysis {
    /// The same requests on the same fleet as if nothing broke sharing, with the recommended and the default parameters
    /// and with `ADAPTIVE`: the best of them.
    fn simulate_repaired(
        &self,
        scenario: &Scenario,
        wanted: &Wanted,
        watch: &dyn Watch,
    ) -> Result<Option<Compared>, InvalidScenario> {
        let sharing = self.findings.sharing.as_ref();
        let gain = sharing.and_then(|sharing| Some(sharing.repaired_hit_rate? - sharing.infinite_hit_rate.value));
        let (Some(repaired), true) = (&self.repaired, gain.is_some_and(|gain| gain >= WORTH_REPAIRING)) else {
            return Ok(None);
        };
        let default = PrefixAware::default();
        let rules = [&scenario.prefix_aware, &default]
            .map(|parameters| Rule::prefix_aware(parameters.prefix_length, parameters.concurrency_threshold));
        let strategies = rules.into_iter().chain("ADAPTIVE".parse()).collect();
        let workload = repaired.workload(self.token_factor, wanted.users.max(1), wanted.think).into();
        let study = compare(&Scenario { workload, strategies, ..scenario.clone() }, wanted.jobs, watch)?;
        let compared: Vec<Compared> = study.report.strategies.iter().filter_map(Compared::of).collect();
        let best = Figures::best(compared.iter().map(|one| one.figures));
        let shortfall = |one: &Compared| best.map_or(0.0, |best| one.figures.shortfall(&best));
        Ok(compared.into_iter().min_by(|left, right| shortfall(left).total_cmp(&shortfall(right))))
    }
}

impl Compared {
    fn of(summary: &StrategySummary) -> Option<Compared> {
        Some(Compared {
            strategy: summary.strategy.clone(),
            figures: Figures::of(summary)?,
            spill_rate: summary.measures.spill_rate.unwrap_or(0.0),
        })
    }
}

/// What is set side by side: what serves. The first is the baseline.
fn strategies() -> Vec<Rule> {
    let names = ["RANDOM", "ROUND_ROBIN", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE", "ADAPTIVE"];
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
