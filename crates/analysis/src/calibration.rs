//! How right a router is about what engines have cached: what it believed beforehand against what they reported.

use serde::Serialize;

/// Into how many parts shares from 0 to 1 are told.
const PARTS: usize = 10;

/// Off by no more than this share of the prompt counts as right.
const CLOSE: f64 = 0.05;

/// What was believed against what was reported, over requests of which both are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// How many requests that is.
    pub requests: u64,
    /// Tokens that were believed to be cached, of all prompt tokens.
    pub believed_hit_rate: f64,
    /// Tokens that were, of all prompt tokens.
    pub reported_hit_rate: f64,
    /// By how much of a prompt a belief is off, on average.
    pub mean_error: f64,
    /// Which share of the requests it is right about, to within 5 points.
    pub close: f64,
    /// By what share of its prompt a request was believed to find cached: tenths, those without a request left out.
    pub parts: Vec<CalibrationPart>,
}

/// Requests about which much the same was believed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CalibrationPart {
    /// From which share on.
    pub from: f64,
    /// Up to which.
    pub to: f64,
    /// How many requests that is.
    pub requests: u64,
    /// What was believed of them on average.
    pub believed: f64,
    /// What was reported of them on average.
    pub reported: f64,
}

/// Sums up beliefs and reports.
#[derive(Debug, Default)]
pub(crate) struct Beliefs {
    parts: [Sums; PARTS],
    prompt: u64,
    believed: u64,
    reported: u64,
    error: f64,
    close: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    believed: f64,
    reported: f64,
}

impl Beliefs {
    /// Tokens of a prompt, those that were believed to be cached, and those that were.
    pub(crate) fn take(&mut self, prompt: u64, believed: u64, reported: u64) {
        if prompt == 0 {
            return;
        }
        let share = |tokens: u64| tokens.min(prompt) as f64 / prompt as f64;
        let part = &mut self.parts[((share(believed) * PARTS as f64) as usize).min(PARTS - 1)];
        part.requests += 1;
        part.believed += share(believed);
        part.reported += share(reported);
        let error = (share(believed) - share(reported)).abs();
        self.error += error;
        self.close += u64::from(error <= CLOSE);
        self.prompt += prompt;
        self.believed += believed.min(prompt);
        self.reported += reported.min(prompt);
    }

    /// `None` where nothing was believed.
    pub(crate) fn found(&self) -> Option<Calibration> {
        let requests: u64 = self.parts.iter().map(|part| part.requests).sum();
        if requests == 0 {
            return None;
        }
        let parts = self.parts.iter().enumerate().filter(|(_, sums)| sums.requests > 0).map(|(number, sums)| {
            let count = sums.requests as f64;
            CalibrationPart {
                from: number as f64 / PARTS as f64,
                to: (number + 1) as f64 / PARTS as f64,
                requests: sums.requests,
                believed: sums.believed / count,
                reported: sums.reported / count,
            }
        });
        Some(Calibration {
            requests,
            believed_hit_rate: self.believed as f64 / self.prompt as f64,
            reported_hit_rate: self.reported as f64 / self.prompt as f64,
            mean_error: self.error / requests as f64,
            close: self.close as f64 / requests as f64,
            parts: parts.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beliefs_are_told_by_how_sure_they_were_and_how_far_off() {
        let mut beliefs = Beliefs::default();
        assert_eq!(beliefs.found(), None);
        beliefs.take(100, 90, 90);
        beliefs.take(100, 100, 80);
        beliefs.take(100, 0, 0);
        beliefs.take(0, 0, 0);
        let found = beliefs.found().unwrap();
        assert_eq!((found.requests, found.parts.len()), (3, 2));
        assert!((found.believed_hit_rate - 190.0 / 300.0).abs() < 1e-9);
        assert!((found.reported_hit_rate - 170.0 / 300.0).abs() < 1e-9);
        assert!((found.mean_error - 0.2 / 3.0).abs() < 1e-9 && (found.close - 2.0 / 3.0).abs() < 1e-9);
        let last = found.parts.last().unwrap();
        assert_eq!((last.from, last.to, last.requests), (0.9, 1.0, 2));
        assert!((last.believed - 0.95).abs() < 1e-9 && (last.reported - 0.85).abs() < 1e-9);
    }
}
