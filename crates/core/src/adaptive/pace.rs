//! How fast an instance computes prompts, learned from times to first token.

/// Milliseconds per uncached token before anything was learned: Llama-3.1-70B in bf16 on eight H100
/// (23.8 thousand tokens a second).
pub(crate) const PRIOR: f64 = 0.042;
/// The pace is never believed to be further from the prior than this factor.
const FURTHEST: f64 = 200.0;
/// What one observation leaves of the weight of those before it.
const KEPT: f64 = 0.98;
/// The prior counts as so many observations whose loads differ by so many tokens.
const PRIOR_COUNTS: f64 = 0.2;
const PRIOR_SPREAD: f64 = 1_000.0;

/// A straight line through (uncached tokens, milliseconds to the first token), old points fading; its slope is the pace.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    prior: f64,
    weight: f64,
    mean_load: f64,
    mean_time: f64,
    /// Sums of squares about the means.
    load_load: f64,
    load_time: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { prior: PRIOR, weight: 0.0, mean_load: 0.0, mean_time: 0.0, load_load: 0.0, load_time: 0.0 }
    }
}

impl Pace {
    /// The pace of a newcomer among these: theirs, until it has shown its own.
    pub(crate) fn begin(&self) -> Pace {
        Pace { prior: self.milliseconds_per_token(), ..Pace::default() }
    }

    /// Takes in that a request's first token took so long when so many tokens had to be computed before it.
    pub(crate) fn observe(&mut self, load: f64, milliseconds: f64) {
        if !(load.is_finite() && milliseconds.is_finite()) {
            return;
        }
        // West's update of weighted means and sums of squares (1979), after the old ones have faded.
        self.weight *= KEPT;
        self.load_load *= KEPT;
        self.load_time *= KEPT;
        let weight = self.weight + 1.0;
        let (load_off, time_off) = (load - self.mean_load, milliseconds - self.mean_time);
        self.mean_load += load_off / weight;
        self.mean_time += time_off / weight;
        self.load_load += load_off * (load - self.mean_load);
        self.load_time += load_off * (milliseconds - self.mean_time);
        self.weight = weight;
    }

    /// Milliseconds that one more uncached token takes.
    pub(crate) fn milliseconds_per_token(&self) -> f64 {
        let prior = PRIOR_COUNTS * PRIOR_SPREAD * PRIOR_SPREAD;
        let slope = (self.load_time + prior * self.prior) / (self.load_load + prior);
        slope.clamp(PRIOR / FURTHEST, PRIOR * FURTHEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(true_pace: f64, observations: u32) -> f64 {
        let mut pace = Pace::default();
        for i in 0..observations {
            let load = f64::from(i * 7_919 % 8_000);
            pace.observe(load, 30.0 + true_pace * load);
        }
        pace.milliseconds_per_token()
    }

    #[test]
    fn it_starts_from_the_prior_and_learns_a_pace_thirty_times_slower_or_faster() {
        assert_eq!(learned(1.0, 0), PRIOR);
        for factor in [30.0, 1.0, 1.0 / 30.0] {
            let pace = learned(PRIOR * factor, 100);
            assert!((pace / (PRIOR * factor) - 1.0).abs() < 0.25, "{factor}: {pace}");
        }
    }

    #[test]
    fn equal_loads_tell_nothing_and_nonsense_is_ignored() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.observe(100.0, 500.0);
        }
        assert!((pace.milliseconds_per_token() / PRIOR - 1.0).abs() < 1e-9);
        pace.observe(f64::NAN, 1.0);
        pace.observe(1.0, f64::INFINITY);
        assert!(pace.milliseconds_per_token().is_finite());
    }

    #[test]
    fn an_instance_that_becomes_slower_is_noticed() {
        let mut pace = Pace::default();
        for (true_pace, count) in [(PRIOR, 200), (10.0 * PRIOR, 150)] {
            for i in 0..count {
                let load = f64::from(i * 7_919 % 8_000);
                pace.observe(load, 30.0 + true_pace * load);
            }
        }
        assert!(pace.milliseconds_per_token() > 7.0 * PRIOR);
    }

    #[test]
    fn a_newcomer_starts_at_the_pace_of_the_others() {
        let mut all = Pace::default();
        for i in 0..100 {
            let load = f64::from(i * 7_919 % 8_000);
            all.observe(load, 30.0 + load);
        }
        assert!((all.begin().milliseconds_per_token() - all.milliseconds_per_token()).abs() < 1e-9);
    }
}
