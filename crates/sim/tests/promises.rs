//! Two promises that only many simulated minutes can show: affinity costs nothing where nothing is shared, and a prefix
//! that all requests share spreads as its load needs.

use isotherm_report::StrategySummary;
use isotherm_sim::{Scenario, compare};

fn compared(text: &str) -> Vec<StrategySummary> {
    let scenario = Scenario::parse("promises", text).unwrap_or_else(|error| panic!("{error}"));
    compare(&scenario, 2, &()).unwrap_or_else(|error| panic!("{error}")).report.strategies
}

fn of<'s>(strategies: &'s [StrategySummary], name: &str) -> &'s StrategySummary {
    strategies.iter().find(|one| one.strategy == name).expect("it was simulated")
}

#[test]
fn where_nothing_is_shared_affinity_costs_nothing() {
    // The mean over 20 seeds, the same for each; seven tenths of what random routing can serve without a queue.
    let strategies = compared(
        "title: t
fleet: { instances: 7, profile: llama3.1-70b-tp8-bf16 }
workload:
  no_sharing: { users: 46, think: 2s, prompt_tokens: [1000, 3000], output_tokens: [100, 160] }
strategies: [RANDOM, LEAST_OUTSTANDING_REQUESTS, PREFIX_AWARE, ADAPTIVE]
duration: 4m
warm_up: 30s
seeds: 20
",
    );
    for (affine, plain) in [("ADAPTIVE", "LEAST_OUTSTANDING_REQUESTS"), ("PREFIX_AWARE", "RANDOM")] {
        let (affine_is, plain_is) = (&of(&strategies, affine).measures, &of(&strategies, plain).measures);
        let (affine_ttft, plain_ttft) = (affine_is.ttft_ms.expect("times"), plain_is.ttft_ms.expect("times"));
        assert!(affine_ttft.p50 <= 1.02 * plain_ttft.p50, "{affine} {affine_ttft:?} {plain} {plain_ttft:?}");
        assert!(affine_ttft.p99 <= 1.02 * plain_ttft.p99, "{affine} {affine_ttft:?} {plain} {plain_ttft:?}");
        let [served, plainly] = [affine_is, plain_is].map(|one| one.requests_per_second.expect("a rate"));
        assert!(served >= 0.98 * plainly, "{affine} {served:?} {plain} {plainly:?}");
    }
}

#[test]
fn a_prefix_that_all_share_spreads_evenly_and_delays_nobody() {
    let strategies = compared(
        "title: t
fleet: { instances: 4, profile: llama3.1-70b-tp8-bf16 }
workload:
  hot_prefix:
    share: 1.0
    hot_tokens: 8000
    documents: { users: 240, think: 1s, document_tokens: 8000, questions: [5, 6], question_tokens: [60, 200], output_tokens: [100, 160] }
strategies: [LEAST_OUTSTANDING_REQUESTS, ADAPTIVE]
duration: 3m
warm_up: 40s
seeds: 3
",
    );
    let [adaptive, plain] = ["ADAPTIVE", "LEAST_OUTSTANDING_REQUESTS"].map(|name| &of(&strategies, name).measures);
    let share = adaptive.instance_share.expect("shares");
    assert!(share.max <= 1.25 / 4.0, "{share:?}");
    let (ttft, plainly) = (adaptive.ttft_ms.expect("times"), plain.ttft_ms.expect("times"));
    assert!(ttft.p99 <= 1.1 * plainly.p99, "{ttft:?} {plainly:?}");
}
