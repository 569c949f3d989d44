//! Shadow strategies against what is known of a made-up fleet.

use std::time::SystemTime;

use isotherm_core::{BlockHasher, HashSeed, PrefixAware};
use isotherm_telemetry::{Outcome, Trail};

use super::*;

const INSTANCES: usize = 4;

/// Documents that are asked about again and again by turns.
struct Traffic {
    shadow: Shadow,
    number: u64,
}

impl Traffic {
    fn under(routing: Routing) -> Traffic {
        let mut shadow = Shadow::new(routing);
        let ids: Vec<InstanceId> = (0..INSTANCES).map(|number| InstanceId::new(format!("i-{number}"))).collect();
        let known: Vec<_> = ids.iter().map(|id| (InstanceSpec::new(id.clone()), true, Some(1 << 20))).collect();
        shadow.instances = INSTANCES;
        shadow.real.follow(known.iter().map(|(spec, _, tokens)| (&spec.id, *tokens)), 0.25);
        shadow.rivals.iter_mut().for_each(|rival| rival.follow(&known, 0.25, 1e9));
        Traffic { shadow, number: 0 }
    }

    /// A question about a document; each comes when the one before was answered. Really, one instance serves everything.
    fn ask(&mut self, document: u32) {
        let text = format!("{document:>8} is the document. ").repeat(400) + &format!("Question {}", self.number);
        let mut hasher = BlockHasher::new(HashSeed(1));
        hasher.update(text.as_bytes());
        let trail = Trail::new(&hasher.finish().unwrap(), Box::default());
        let arrived = Time::from_elapsed(Duration::from_secs(self.number));
        let prompt = u64::from(trail.bytes()) / 4;
        let only = InstanceId::new("i-0");
        let request = TracedRequest::new(
            (arrived, SystemTime::now()),
            "r".into(),
            ("chat".into(), "a".into()),
            None,
            Some(only.clone()),
            trail,
        );
        let held = self.shadow.real.held(&only, &request.trail);
        let (first, last) = (Duration::from_millis(100), Duration::from_millis(500));
        request.end(Ended {
            at: arrived + last,
            status: 200,
            outcome: Outcome::Ok,
            decision: None,
            queued: None,
            time_to_first_token: Some(first),
            prompt_tokens: Some(prompt),
            cached_tokens: Some(cached(held, request.trail.bytes(), prompt as f64) as u64),
            output_tokens: Some(20),
            response_id: None,
        });
        self.shadow.arrives(self.number, &request, arrived);
        self.shadow.first_token(self.number, &request, arrived + first);
        let ended = request.ended().unwrap().clone();
        self.shadow.ends(self.number, &request, &ended);
        self.number += 1;
    }

    fn figures(&self) -> ShadowFigures {
        ShadowFigures::of(&self.shadow, Some(3_600.0)).unwrap()
    }
}

fn rate(figures: &ShadowFigures, strategy: &str, length: Option<u32>) -> f64 {
    let found = figures.strategies.iter().find(|one| one.strategy == strategy && one.prefix_length == length);
    found.and_then(|one| one.hit_rate).unwrap()
}

#[test]
fn strategies_that_look_at_prefixes_hit_more_where_prefixes_repeat() {
    let mut traffic = Traffic::under(Routing { strategy: isotherm_core::Strategy::Random, ..Routing::default() });
    for turn in 0..10 {
        (0..40).for_each(|document| traffic.ask(document + 40 * (turn / 5)));
    }
    let figures = traffic.figures();
    let (random, prefix, adaptive) =
        (rate(&figures, "RANDOM", None), rate(&figures, "PREFIX_AWARE", Some(4_096)), rate(&figures, "ADAPTIVE", None));
    // Each of 80 documents comes five times: one in five is new everywhere, and by chance more than half is new where it goes.
    assert!((0.75..0.82).contains(&prefix), "{prefix}");
    assert!((0.70..0.82).contains(&adaptive), "{adaptive}");
    assert!((0.30..0.50).contains(&random), "{random}");
    let better = figures.better.unwrap();
    assert!(better.strategy != "RANDOM" && better.hit_rate_gain > 0.25, "{better:?}");
    assert_eq!(figures.reported_hit_rate, figures.reckoned_hit_rate);
    assert!(figures.strategies.is_sorted_by(|one, other| one.hit_rate >= other.hit_rate));
}

#[test]
fn the_strategy_in_force_saves_what_it_hits_more_than_chance() {
    let mut traffic = Traffic::under(Routing::default());
    for _ in 0..10 {
        (0..40).for_each(|document| traffic.ask(document));
    }
    let figures = traffic.figures();
    assert!(figures.saved.as_ref().unwrap().tokens_per_hour > 0.0);
    assert!(figures.better.is_none(), "{:?}", figures.better);
    assert!(figures.strategies.iter().any(|one| one.in_force && one.prefix_length == Some(4_096)));
    assert_eq!(figures.strategies.iter().filter(|one| one.in_force).count(), 1);
}

#[test]
fn nothing_is_recommended_from_little_or_from_a_sample() {
    let mut traffic = Traffic::under(Routing { strategy: isotherm_core::Strategy::Random, ..Routing::default() });
    assert!(ShadowFigures::of(&traffic.shadow, None).is_none());
    (0..200).for_each(|number| traffic.ask(number % 10));
    assert!(traffic.figures().better.is_none(), "too few");
    (0..200).for_each(|number| traffic.ask(number % 10));
    assert!(traffic.figures().better.is_some());
    traffic.shadow.fade(100.0);
    let figures = traffic.figures();
    assert!(figures.better.is_none() && figures.coverage < 0.9, "a fifth was left out");
}

#[test]
fn a_cache_that_holds_less_than_was_thought_is_found_out() {
    let mut believed = Believed::default();
    let id = InstanceId::new("i-0");
    believed.follow([(&id, None)].into_iter(), 0.25);
    let before = believed.learned_capacity();
    (0..500).for_each(|_| believed.learn(1_000.0, 500.0, 1_000.0));
    let after = believed.learned_capacity();
    assert!(after < before / 1_000.0, "{after}");
    (0..2_000).for_each(|_| believed.learn(500.0, 1_000.0, 1_000.0));
    assert!(believed.learned_capacity() > after);
}

#[test]
fn one_strategy_stands_in_the_comparison_once() {
    let of = |strategy| candidates(Routing { strategy, ..Routing::default() }).len();
    assert_eq!(of(isotherm_core::Strategy::default()), of(isotherm_core::Strategy::Random));
    let odd = PrefixAware { prefix_length: isotherm_core::PrefixLength::new(777).unwrap(), ..PrefixAware::default() };
    assert_eq!(of(isotherm_core::Strategy::PrefixAware(odd)), 1 + of(isotherm_core::Strategy::default()));
}
