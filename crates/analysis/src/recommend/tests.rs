//! Recommendations for made logs.

use std::time::Duration;

use super::*;
use crate::chain::{Block, extend_by_id, units};
use crate::entry::Microseconds;
use crate::kept::Kept;

/// Documents of 40 blocks of 100 tokens, each asked 6 questions; requests come `gap` apart.
fn analysis(gap: Option<Microseconds>, requests: u64) -> Analysis {
    let mut kept = Kept::new(10_000);
    for number in 0..requests {
        // Questions about 12 documents come mixed, and these documents give way to others.
        let document = number / 72 * 12 + extend_by_id(3, number) % 12;
        let mut hash = document + 1;
        let mut blocks: Vec<Block> = (0..41)
            .map(|place| {
                hash = extend_by_id(hash, if place == 40 { number } else { place });
                Block { hash, units: units(100), characters: 420, generated: false }
            })
            .collect();
        blocks.truncate(41);
        kept.take(&blocks, gap.map(|gap| gap * number as Microseconds), Some(60), None);
    }
    Analysis { kept, ..crate::analyst::Analyst::new(0, false).finish(Vec::new(), 0) }
}

fn wanted() -> Wanted {
    Wanted {
        instances: 4,
        profile: Arc::new(Profile::default()),
        users: 16,
        think: Duration::from_secs(1),
        goal: None,
        seeds: Some(1),
        jobs: 2,
    }
}

#[test]
fn the_recommended_setting_is_within_two_percent_of_the_best_found_by_search() {
    let analysis = analysis(Some(100_000), 900);
    let found = analysis.recommend(&wanted(), &()).unwrap().unwrap();
    assert!(found.replay.recorded_times && found.replay.requests == 900);
    let [low, high] = found.prefix_length_range;
    assert!((low..=high).contains(&found.prefix_length) && low < high, "{found:?}");
    // Simulated once more, as anybody would who configures it.
    let (scenario, _) = analysis.scenario(&wanted()).unwrap();
    let rule = format!("PREFIX_AWARE@{}/{}", found.prefix_length, found.concurrency_threshold).parse().unwrap();
    let study = compare(&Scenario { strategies: vec![rule], ..scenario }, 1, &()).unwrap();
    let again = Figures::of(&study.report.strategies[0]).unwrap();
    let best = &found.best.figures;
    assert!(again.ttft_p50_ms <= best.ttft_p50_ms * 1.02, "{again:?} {best:?}");
    assert!(again.ttft_p90_ms <= best.ttft_p90_ms * 1.02, "{again:?} {best:?}");
    assert!(again.hit_rate >= best.hit_rate * 0.98, "{again:?} {best:?}");
    // On this log one setting is the best in all figures, or nearly.
    assert!(again.shortfall(&found.each_best) <= 2.0 * TOLERANCE, "{again:?} {:?}", found.each_best);
    // And nothing that the other search in the simulator finds is much better.
    let (scenario, _) = analysis.scenario(&wanted()).unwrap();
    let tuned = isotherm_sim::tune(&scenario, "ttft_p90".parse().unwrap(), 2, &()).unwrap();
    assert!(again.ttft_p90_ms <= tuned[0].figure.unwrap() * 1.02, "{again:?} {:?}", tuned[0]);
    assert!(found.predicted.hit_rate > 0.5 && found.bound.unwrap().hit_rate >= found.predicted.hit_rate - 1e-9);
    assert!(found.sizes.iter().any(|size| size.instances == 4) && found.instances >= 1);
}

#[test]
fn without_times_users_send_the_log_in_closed_loop() {
    let found = analysis(None, 200).recommend(&wanted(), &()).unwrap().unwrap();
    assert_eq!((found.replay.recorded_times, found.replay.users), (false, 16));
    assert_eq!(found.replay.assumed_output_tokens, None);
}

#[test]
fn a_handful_of_requests_is_too_little_for_a_recommendation() {
    assert_eq!(analysis(Some(1_000), 5).recommend(&wanted(), &()).unwrap(), None);
}
