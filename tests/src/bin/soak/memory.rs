//! The resident memory of a process, second by second, and whether it stayed flat.

use std::fmt;

use isotherm_tests::Running;

/// Growth that is allowed beside the tenth: allocators keep some slack.
const SLACK_MIB: f64 = 8.0;

/// Samples of one process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    mib: Vec<f64>,
}

/// What the samples say.
#[derive(Debug)]
pub(crate) struct Verdict {
    second_quarter: f64,
    last_quarter: f64,
    highest: f64,
    sparkline: String,
}

impl Memory {
    /// Takes a sample; the process must be alive.
    pub(crate) fn sample(&mut self, router: &Running) {
        self.mib.push(router.resident_kib() as f64 / 1024.0);
    }

    pub(crate) fn samples(&self) -> usize {
        self.mib.len()
    }

    /// Flat: the median of the last quarter is at most a tenth and 8 MiB above the median of the second quarter. The
    /// first quarter is the start, when pools and buffers grow to the load.
    pub(crate) fn verdict(&self) -> Verdict {
        let quarter = self.mib.len() / 4;
        Verdict {
            second_quarter: median(self.mib.get(quarter..2 * quarter).unwrap_or_default()),
            last_quarter: median(self.mib.get(3 * quarter..).unwrap_or_default()),
            highest: self.mib.iter().copied().fold(0.0, f64::max),
            sparkline: sparkline(&self.mib),
        }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1} MiB", self.mib.last().copied().unwrap_or_default())
    }
}

impl Verdict {
    pub(crate) fn is_flat(&self) -> bool {
        self.second_quarter > 0.0 && self.last_quarter <= self.allowed()
    }

    fn allowed(&self) -> f64 {
        1.1 * self.second_quarter + SLACK_MIB
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_flat() { "flat" } else { "GROWING" };
        writeln!(formatter, "router memory {}  0 to {:.0} MiB", self.sparkline, self.highest)?;
        writeln!(formatter, "  2nd quarter {:>8.1} MiB  median", self.second_quarter)?;
        write!(
            formatter,
            "  4th quarter {:>8.1} MiB  median, {word}: at most {:.1} = 1.1 × 2nd + {SLACK_MIB}",
            self.last_quarter,
            self.allowed()
        )
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Up to sixty bars from zero to the highest sample.
fn sparkline(samples: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = samples.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let chunk = samples.len().div_ceil(60).max(1);
    let level = |chunk: &[f64]| ((median(chunk) / highest) * (BARS.len() - 1) as f64).round() as usize;
    samples.chunks(chunk).map(|chunk| BARS[level(chunk).min(BARS.len() - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::Memory;

    fn verdict(mib: impl Iterator<Item = f64>) -> super::Verdict {
        Memory { mib: mib.collect() }.verdict()
    }

    #[test]
    fn a_start_that_grows_is_flat_and_a_leak_is_not() {
        assert!(verdict((0..400).map(|second| f64::from(second.min(100)))).is_flat());
        assert!(!verdict((0..400).map(f64::from)).is_flat());
        assert!(!verdict(std::iter::empty()).is_flat());
    }

    #[test]
    fn the_sparkline_rises_with_the_samples() {
        let line = verdict((1..=8).map(f64::from)).sparkline;
        assert_eq!(line, "▂▃▄▅▅▆▇█");
    }
}
