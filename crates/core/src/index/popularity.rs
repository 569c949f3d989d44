//! How often a beginning is asked for, counted in requests instead of in time.

/// Uses among the latest requests, older ones fading.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Popularity {
    uses: f32,
    /// How many requests there had been at the last one.
    counted_at: u64,
}

impl Popularity {
    /// The `requests`th request uses it; what lies `window` requests back counts 1/e.
    pub(super) fn count(&mut self, requests: u64, window: f64) {
        self.uses = self.at(requests, window) as f32 + 1.0;
        self.counted_at = requests;
    }

    /// Uses within about the last `window` requests.
    pub(super) fn at(self, requests: u64, window: f64) -> f64 {
        let since = requests.saturating_sub(self.counted_at);
        f64::from(self.uses) * (-(since as f64) / window).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_to_the_share_of_the_window_and_fades() {
        let mut half = Popularity::default();
        for request in (0..10_000).step_by(2) {
            half.count(request, 1_000.0);
        }
        assert!((half.at(10_000, 1_000.0) / 500.0 - 1.0).abs() < 0.01);
        assert!(half.at(15_000, 1_000.0) < 5.0);
        assert_eq!(Popularity::default().at(7, 1_000.0), 0.0);
    }
}
