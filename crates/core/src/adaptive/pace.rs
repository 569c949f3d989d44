//! How fast an instance computes prompts, learned from times to first token.

/// Milliseconds per uncached token before anything was learned: Llama-3.1-70B in bf16 on eight H100
/// (23.8 thousand tokens a second).
pub(crate) const PRIOR: f64 = 0.042;
/// The pace is never believed to be further from the prior than this factor.
const FURTHEST: f64 = 200.0;
/// What one observation leaves of the weight of those before it.
const KEPT: f64 = 0.98;
/// What is known already counts as so many observations whose loads differ by so many tokens: little for the pace of all
/// instances, which begins with a guess, and much for that of one, which begins with the pace of all.
const GUESS_COUNTS: f64 = 0.2;
const OTHERS_COUNT: f64 = 20.0;
const SPREAD: f64 = 1_000.0;
/// What one observation of another instance leaves of the weight of an instance's own.
const FADES_WITH_OTHERS: f64 = 0.998;
/// So many leave nothing.
const ALL_FADED: u64 = 10_000;
/// An instance's pace counts as that of all while it is within this factor, or within so many of its standard errors: what
/// is within is mostly noise, and noise would keep the unlucky ones idle and send work behind the work of the lucky ones.
const SAME: f64 = 1.2;
const STANDARD_ERRORS: f64 = 4.0;

/// A straight line through (uncached tokens, milliseconds to the first token), old points fading; its slope is the pace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    weight: f64,
    mean_load: f64,
    mean_time: f64,
    /// Sums of squares about the means.
    load_load: f64,
    load_time: f64,
    time_time: f64,
    observations: u64,
}

/// The pace of one instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnPace {
    own: Pace,
    /// How many observations of all instances there were at the last one of this instance.
    seen_at: u64,
}

/// A request's first token: how many tokens had to be computed before it, and how long it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstToken {
    /// Uncached tokens that were before it or came beside it, its own included.
    pub(crate) load: f64,
    /// Since the request was sent.
    pub(crate) milliseconds: f64,
    /// What it counts: 1 where nothing came beside it.
    pub(crate) weight: f64,
}

impl Pace {
    /// Takes in what a first token tells.
    pub(crate) fn observe(&mut self, seen: FirstToken) {
        let FirstToken { load, milliseconds, weight: new } = seen;
        if !(load.is_finite() && milliseconds.is_finite() && new > 0.0) {
            return;
        }
        // West's update of weighted means and sums of squares (1979), after the old ones have faded.
        self.fade(KEPT);
        let weight = self.weight + new;
        let (load_off, time_off) = (load - self.mean_load, milliseconds - self.mean_time);
        self.mean_load += load_off * new / weight;
        self.mean_time += time_off * new / weight;
        self.load_load += new * load_off * (load - self.mean_load);
        self.load_time += new * load_off * (milliseconds - self.mean_time);
        self.time_time += new * time_off * (milliseconds - self.mean_time);
        self.weight = weight;
        self.observations += 1;
    }

    fn fade(&mut self, kept: f64) {
        self.weight *= kept;
        self.load_load *= kept;
        self.load_time *= kept;
        self.time_time *= kept;
    }

    /// Milliseconds that one more uncached token takes.
    pub(crate) fn milliseconds_per_token(&self) -> f64 {
        self.slope(PRIOR, GUESS_COUNTS, 1.0)
    }

    /// The slope, between what is known already and what the points say, these faded once more.
    fn slope(&self, known: f64, counts: f64, kept: f64) -> f64 {
        let known_squares = counts * SPREAD * SPREAD;
        let slope = (kept * self.load_time + known_squares * known) / (kept * self.load_load + known_squares);
        slope.clamp(PRIOR / FURTHEST, PRIOR * FURTHEST)
    }

    /// How far off the slope may be, by how the points scatter about their line (least squares).
    fn standard_error(&self, kept: f64) -> f64 {
        let scatter = self.time_time - self.load_time * self.load_time / self.load_load;
        (scatter.max(0.0) / (self.weight * kept * self.load_load)).sqrt()
    }
}

impl OwnPace {
    /// Takes in an observation of this instance; `all` has taken it in already.
    pub(crate) fn observe(&mut self, seen: FirstToken, all: &Pace) {
        self.own.fade(self.kept(all));
        self.own.observe(seen);
        self.seen_at = all.observations;
    }

    /// Milliseconds that one more uncached token takes here, where it takes `common` of them on all instances together.
    ///
    /// An instance that gets nothing is slowly forgotten and believed to be as the others are, so that it is tried again.
    pub(crate) fn milliseconds_per_token(&self, all: &Pace, common: f64) -> f64 {
        let same = common / SAME..common * SAME;
        let stands_out = |kept| {
            let own = self.own.slope(common, OTHERS_COUNT, kept);
            let unsure = || (own - common).abs() <= STANDARD_ERRORS * self.own.standard_error(kept);
            (!same.contains(&own) && !unsure()).then_some(own)
        };
        // What fades brings the slope nearer to that of all and widens its error: nearly always this is the end.
        stands_out(1.0).and_then(|_| stands_out(self.kept(all))).unwrap_or(common)
    }

    /// What is left of the weight of this instance's observations while others were made.
    fn kept(&self, all: &Pace) -> f64 {
        let others = all.observations.saturating_sub(self.seen_at).saturating_sub(1);
        FADES_WITH_OTHERS.powi(others.min(ALL_FADED) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(load: f64, milliseconds: f64) -> FirstToken {
        FirstToken { load, milliseconds, weight: 1.0 }
    }

    fn learned(true_pace: f64, observations: u32) -> f64 {
        let mut pace = Pace::default();
        for i in 0..observations {
            let load = f64::from(i * 7_919 % 8_000);
            pace.observe(seen(load, 30.0 + true_pace * load));
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
            pace.observe(seen(100.0, 500.0));
        }
        assert!((pace.milliseconds_per_token() / PRIOR - 1.0).abs() < 1e-9);
        pace.observe(seen(f64::NAN, 1.0));
        pace.observe(seen(1.0, f64::INFINITY));
        assert!(pace.milliseconds_per_token().is_finite());
    }

    #[test]
    fn an_instance_that_becomes_slower_is_noticed() {
        let mut pace = Pace::default();
        for (true_pace, count) in [(PRIOR, 200), (10.0 * PRIOR, 150)] {
            for i in 0..count {
                let load = f64::from(i * 7_919 % 8_000);
                pace.observe(seen(load, 30.0 + true_pace * load));
            }
        }
        assert!(pace.milliseconds_per_token() > 7.0 * PRIOR);
    }

    fn feed(all: &mut Pace, one: &mut OwnPace, pace: f64, count: u32) {
        for i in 0..count {
            let load = f64::from(i * 7_919 % 8_000);
            all.observe(seen(load, 30.0 + pace * load));
            one.observe(seen(load, 30.0 + pace * load), all);
        }
    }

    #[test]
    fn a_newcomer_has_the_pace_of_the_others_until_it_has_shown_its_own() {
        let (mut all, mut old, mut new) = (Pace::default(), OwnPace::default(), OwnPace::default());
        feed(&mut all, &mut old, 0.1, 100);
        assert_eq!(new.milliseconds_per_token(&all, all.milliseconds_per_token()), all.milliseconds_per_token());
        for i in 0..60 {
            let load = f64::from(i * 7_919 % 8_000);
            new.observe(seen(load, 30.0 + 3.0 * load), &all);
        }
        let pace = new.milliseconds_per_token(&all, all.milliseconds_per_token());
        assert!((2.0..=3.5).contains(&pace), "{pace}");
    }

    #[test]
    fn noise_between_equal_instances_makes_no_difference() {
        let (mut all, mut one) = (Pace::default(), OwnPace::default());
        feed(&mut all, &mut one, PRIOR, 100);
        for i in 0..100 {
            let load = f64::from(i * 7_919 % 8_000);
            one.observe(seen(load, 30.0 + 1.2 * PRIOR * load), &all);
        }
        assert_eq!(one.milliseconds_per_token(&all, all.milliseconds_per_token()), all.milliseconds_per_token());
    }

    #[test]
    fn a_slow_instance_that_gets_nothing_is_tried_again_after_a_while() {
        let (mut all, mut slow, mut other) = (Pace::default(), OwnPace::default(), OwnPace::default());
        feed(&mut all, &mut other, PRIOR, 100);
        for i in 0..60 {
            let load = f64::from(i * 7_919 % 8_000);
            slow.observe(seen(load, 30.0 + 10.0 * PRIOR * load), &all);
        }
        assert!(slow.milliseconds_per_token(&all, all.milliseconds_per_token()) > 5.0 * PRIOR);
        feed(&mut all, &mut other, PRIOR, 5_000);
        assert_eq!(slow.milliseconds_per_token(&all, all.milliseconds_per_token()), all.milliseconds_per_token());
    }

    /// Uneven loads, times that scatter about a line, and some that count less.
    fn scattered() -> Vec<FirstToken> {
        let point = |i: u32| {
            let load = f64::from(i * 7_919 % 8_000);
            let noise = f64::from(i * 31 % 17) - 8.0;
            FirstToken {
                load,
                milliseconds: 30.0 + 0.1 * load + noise,
                weight: if i.is_multiple_of(3) { 0.25 } else { 1.0 },
            }
        };
        (1..=60).map(point).collect()
    }

    /// The same sums in two passes: each point counts by its weight and its age.
    fn sums(points: &[FirstToken]) -> [f64; 6] {
        let aged = |(age, point): (usize, &FirstToken)| (point.weight * KEPT.powi(age as i32), *point);
        let aged: Vec<(f64, FirstToken)> = points.iter().rev().enumerate().map(aged).collect();
        let sum = |of: &dyn Fn(&FirstToken) -> f64| aged.iter().map(|(weight, point)| weight * of(point)).sum::<f64>();
        let weight = sum(&|_| 1.0);
        let (load, time) = (sum(&|point| point.load) / weight, sum(&|point| point.milliseconds) / weight);
        [
            weight,
            load,
            time,
            sum(&|point| (point.load - load).powi(2)),
            sum(&|point| (point.load - load) * (point.milliseconds - time)),
            sum(&|point| (point.milliseconds - time).powi(2)),
        ]
    }

    fn near(one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < 1e-9
    }

    #[test]
    fn sums_kept_point_by_point_are_those_of_all_points_together() {
        let points = scattered();
        let mut pace = Pace::default();
        points.iter().for_each(|point| pace.observe(*point));
        let kept = [pace.weight, pace.mean_load, pace.mean_time, pace.load_load, pace.load_time, pace.time_time];
        let expected = sums(&points);
        assert!(kept.iter().zip(expected).all(|(kept, expected)| near(*kept, expected)), "{kept:?} {expected:?}");
        assert_eq!(pace.observations, 60);

        // What is known counts as points that lie on its line.
        let [weight, _, _, load_load, load_time, time_time] = expected;
        let guess = GUESS_COUNTS * SPREAD * SPREAD;
        assert!(near(pace.milliseconds_per_token(), (load_time + guess * PRIOR) / (load_load + guess)));
        let others = OTHERS_COUNT * SPREAD * SPREAD;
        assert!(near(
            pace.slope(0.2, OTHERS_COUNT, 0.5),
            (0.5 * load_time + others * 0.2) / (0.5 * load_load + others)
        ));
        let error = ((time_time - load_time * load_time / load_load) / (weight * load_load)).sqrt();
        assert!(near(pace.standard_error(1.0), error) && near(pace.standard_error(0.25), 2.0 * error));
    }

    #[test]
    fn what_weighs_nothing_tells_nothing_and_no_pace_is_believed_that_is_absurd() {
        let mut pace = Pace::default();
        pace.observe(FirstToken { weight: 0.0, ..seen(1_000.0, 500.0) });
        assert_eq!((pace.observations, pace.milliseconds_per_token()), (0, PRIOR));
        for (slope, believed) in [(1e6, PRIOR * FURTHEST), (-1.0, PRIOR / FURTHEST)] {
            assert_eq!(learned(slope, 200), believed);
        }
    }

    #[test]
    fn an_own_pace_counts_where_it_is_clear_of_the_common_one_on_either_side() {
        for (factor, is_own) in [(0.5, true), (0.75, true), (0.9, false), (1.0, false), (1.12, false), (1.5, true)] {
            let (mut all, mut one) = (Pace::default(), OwnPace::default());
            feed(&mut all, &mut OwnPace::default(), PRIOR, 200);
            let common = all.milliseconds_per_token();
            for i in 0..200 {
                let load = f64::from(i * 7_919 % 8_000);
                one.observe(seen(load, 30.0 + factor * PRIOR * load), &all);
            }
            let pace = one.milliseconds_per_token(&all, common);
            assert_eq!(pace != common, is_own, "{factor}: {pace}");
            assert!(!is_own || (pace / (factor * PRIOR) - 1.0).abs() < 0.1, "{factor}: {pace}");
        }
    }

    #[test]
    fn an_own_pace_that_scatters_widely_counts_as_the_common_one() {
        // Within the first, four standard errors hold the difference of the two paces, but not their sum.
        for amplitude in [300.0, 2_000.0] {
            let (mut all, mut one) = (Pace::default(), OwnPace::default());
            feed(&mut all, &mut OwnPace::default(), PRIOR, 200);
            for i in 0..200u32 {
                let load = f64::from(i * 7_919 % 8_000);
                let noise = amplitude * (f64::from(i * 31 % 17) - 8.0) / 8.0;
                one.observe(seen(load, 3_000.0 + 1.5 * PRIOR * load + noise), &all);
            }
            let common = all.milliseconds_per_token();
            let own = one.own.slope(common, OTHERS_COUNT, 1.0);
            assert!(!(common / SAME..common * SAME).contains(&own), "{amplitude}: {own}");
            let unsure = STANDARD_ERRORS * one.own.standard_error(1.0);
            assert_eq!(unsure < own + common, amplitude < 1_000.0, "{amplitude}: {unsure}");
            assert_eq!(one.milliseconds_per_token(&all, common), common, "{amplitude}");
        }
    }

    #[test]
    fn an_own_pace_fades_by_what_others_were_seen_to_do_meanwhile() {
        let (mut all, mut one) = (Pace::default(), OwnPace::default());
        feed(&mut all, &mut OwnPace::default(), PRIOR, 200);
        for i in 0..60 {
            let load = f64::from(i * 7_919 % 8_000);
            all.observe(seen(load, 30.0 + 5.0 * PRIOR * load));
            one.observe(seen(load, 30.0 + 5.0 * PRIOR * load), &all);
        }
        assert_eq!(one.kept(&all), 1.0);
        feed(&mut all, &mut OwnPace::default(), PRIOR, 101);
        assert!(near(one.kept(&all), FADES_WITH_OTHERS.powi(100)));
        let common = all.milliseconds_per_token();
        let faded = one.own.slope(common, OTHERS_COUNT, FADES_WITH_OTHERS.powi(100));
        assert!(near(one.milliseconds_per_token(&all, common), faded));
        let before = one.own.weight;
        one.observe(seen(1_000.0, 300.0), &all);
        assert!(near(one.own.weight, before * FADES_WITH_OTHERS.powi(100) * KEPT + 1.0), "for good");
    }
}
