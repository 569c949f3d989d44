//! The resident memory of a process, second by second and request by request, and whether it stayed flat.

use std::fmt;

use isotherm_tests::Running;

/// Growth that is allowed beside the tenth: allocators keep some slack.
const SLACK_MIB: f64 = 8.0;

/// The steepest slope that counts as none, in MiB for each million requests: a day of twenty requests a second adds seven
/// MiB at most. Caches and pools that breathe make slopes of one or two.
const STEEPEST: f64 = 4.0;

/// Over fewer requests no slope can be told: what breathes would decide it.
const ENOUGH_REQUESTS: f64 = 100_000.0;

/// Samples of one process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    mib: Vec<f64>,
    /// How many requests had been begun at each sample.
    requests: Vec<f64>,
}

/// What the samples say.
#[derive(Debug)]
pub(crate) struct Verdict {
    second_quarter: f64,
    last_quarter: f64,
    highest: f64,
    /// Over the second half, in MiB for each million requests; `None` where those were too few.
    slope: Option<f64>,
    sparkline: String,
}

impl Memory {
    /// Takes a sample; the process must be alive.
    pub(crate) fn sample(&mut self, router: &Running, requests: u64) {
        self.mib.push(router.resident_kib() as f64 / 1024.0);
        self.requests.push(requests as f64);
    }

    pub(crate) fn samples(&self) -> usize {
        self.mib.len()
    }

    /// Flat: the median of the last quarter is at most a tenth and 8 MiB above the median of the second quarter, and memory
    /// does not grow with the requests of the second half. The first quarter is the start, when pools and buffers grow to
    /// the load.
    pub(crate) fn verdict(&self) -> Verdict {
        let quarter = self.mib.len() / 4;
        Verdict {
            second_quarter: median(self.mib.get(quarter..2 * quarter).unwrap_or_default()),
            last_quarter: median(self.mib.get(3 * quarter..).unwrap_or_default()),
            highest: self.mib.iter().copied().fold(0.0, f64::max),
            slope: self.slope(),
            sparkline: sparkline(&self.mib),
        }
    }

    /// The line through the samples of the second half that has the least squares.
    fn slope(&self) -> Option<f64> {
        let half = self.mib.len() / 2;
        let (requests, mib) = (self.requests.get(half..)?, self.mib.get(half..)?);
        if requests.last()? - requests.first()? < ENOUGH_REQUESTS {
            return None;
        }
        let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
        let (middle, level) = (mean(requests), mean(mib));
        let rise: f64 = requests.iter().zip(mib).map(|(done, mib)| (done - middle) * (mib - level)).sum();
        let run: f64 = requests.iter().map(|done| (done - middle).powi(2)).sum();
        Some(1e6 * rise / run)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1} MiB", self.mib.last().copied().unwrap_or_default())
    }
}

impl Verdict {
    pub(crate) fn is_flat(&self) -> bool {
        self.second_quarter > 0.0
            && self.last_quarter <= self.allowed()
            && self.slope.is_none_or(|slope| slope <= STEEPEST)
    }

    fn allowed(&self) -> f64 {
        1.1 * self.second_quarter + SLACK_MIB
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.last_quarter <= self.allowed() { "flat" } else { "GROWING" };
        writeln!(formatter, "router memory {}  0 to {:.0} MiB", self.sparkline, self.highest)?;
        writeln!(formatter, "  2nd quarter {:>8.1} MiB  median", self.second_quarter)?;
        writeln!(
            formatter,
            "  4th quarter {:>8.1} MiB  median, {word}: at most {:.1} = 1.1 × 2nd + {SLACK_MIB}",
            self.last_quarter,
            self.allowed()
        )?;
        match self.slope {
            None => write!(
                formatter,
                "  slope            none    told: the second half had less than {ENOUGH_REQUESTS} requests"
            ),
            Some(slope) => {
                let word = if slope <= STEEPEST { "flat" } else { "GROWING" };
                let what = format!("for a million requests of the second half, {word}: at most {STEEPEST}");
                write!(formatter, "  slope       {slope:>+8.2} MiB  {what}")
            }
        }
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

    /// A thousand requests between a sample and the next.
    fn verdict(mib: impl Iterator<Item = f64>) -> super::Verdict {
        let mib: Vec<f64> = mib.collect();
        let requests = (0..mib.len()).map(|sample| 1_000.0 * sample as f64).collect();
        Memory { mib, requests }.verdict()
    }

    #[test]
    fn a_start_that_grows_is_flat_and_a_leak_is_not() {
        assert!(verdict((0..400).map(|second| f64::from(second.min(100)))).is_flat());
        assert!(!verdict((0..400).map(f64::from)).is_flat());
        assert!(!verdict(std::iter::empty()).is_flat());
    }

    #[test]
    fn memory_that_grows_a_little_with_every_request_is_not_flat_however_little() {
        let leak =
            |bytes: f64| (0..1_000).map(move |sample| 50.0 + f64::from(sample) * 1_000.0 * bytes / (1 << 20) as f64);
        let slow = verdict(leak(6.0));
        assert!(slow.last_quarter <= slow.allowed() && !slow.is_flat(), "{slow}");
        assert!((slow.slope.unwrap() - 5.7).abs() < 0.1, "{slow}");
        assert!(verdict(leak(2.0)).is_flat() && verdict(leak(-6.0)).is_flat());
        assert_eq!(verdict(leak(6.0).take(200)).slope, None, "a hundred thousand requests are too few");
    }

    #[test]
    fn the_sparkline_rises_with_the_samples() {
        let line = verdict((1..=8).map(f64::from)).sparkline;
        assert_eq!(line, "▂▃▄▅▅▆▇█");
    }
}
