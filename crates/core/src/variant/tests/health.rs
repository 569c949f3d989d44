//! How failures and returns of instances change their share.

use std::collections::VecDeque;

use super::*;
use crate::Evidence;

/// Requests come one a step; an instance answers after a while, or fails at once, as `fails` says by its number and how
/// many requests it had before.
fn shares(strategy: Strategy, fails: impl Fn(usize, u64) -> Option<Evidence>, requests: u64) -> Vec<u64> {
    const STEP: Duration = Duration::from_millis(20);
    const SERVICE: u64 = 50;
    let mut state = variant(strategy, 4);
    let mut rng = Pcg64::seed_from_u64(1);
    let mut running: VecDeque<(u64, Choice<usize>)> = VecDeque::new();
    let mut counts = vec![0; 4];
    for step in 0..requests {
        let now = NOW + STEP * step as u32;
        while running.front().is_some_and(|(ends, _)| *ends <= step) {
            let (_, choice) = running.pop_front().unwrap();
            state.observe(choice.decision.generation, Evidence::RequestAnswered, now);
            state.finish(choice.slot);
        }
        let choice = state.choose(&RouteRequest::default(), now, &mut rng).unwrap();
        let had_before = counts[choice.instance];
        counts[choice.instance] += 1;
        match fails(choice.instance, had_before) {
            Some(evidence) => {
                state.observe(choice.decision.generation, evidence, now);
                state.finish(choice.slot);
            }
            None => running.push_back((step + SERVICE, choice)),
        }
    }
    counts
}

#[test]
fn what_fails_at_once_draws_no_traffic_even_if_it_is_never_ejected() {
    // Every second request fails, so that five never fail in a row.
    for evidence in [Evidence::RequestFailed, Evidence::RequestShed] {
        let fails =
            move |instance, had_before: u64| (instance == 0 && !had_before.is_multiple_of(2)).then_some(evidence);
        let counts = shares(Strategy::LeastOutstandingRequests, fails, 4_000);
        assert!(counts[0] as f64 <= 1.1 * 1_000.0, "{evidence:?}: {counts:?}");
    }
}

#[test]
fn what_always_fails_gets_five_requests_and_then_a_few_after_each_ejection() {
    let counts = shares(
        Strategy::LeastOutstandingRequests,
        |instance, _| (instance == 0).then_some(Evidence::RequestFailed),
        2_000,
    );
    // 40 s: ejected at once, and again after 10 s for 20 s, and then for 40 s.
    assert!(counts[0] <= 15, "{counts:?}");
}

#[test]
fn keys_come_home_bit_by_bit_to_an_instance_that_is_back() {
    let mut state = variant(prefix_aware(1_000, SpillRule::Next), 4);
    let generation = state.instances(NOW).next().unwrap().generation;
    let at_home = |state: &mut VariantState<usize>, second| {
        let now = NOW + Duration::from_secs(second);
        let mut count = 0;
        for key in 0..2_000u128 {
            let choice = state.choose(&keyed(key), now, &mut Pcg64::seed_from_u64(0)).unwrap();
            assert_eq!(
                choice.instance,
                *state.order(PrefixKey::from_u128(key), None, now)[0].instance.data,
                "explain agrees"
            );
            count += u32::from(choice.instance == 0);
            state.finish(choice.slot);
        }
        count
    };
    let before = at_home(&mut state, 0);
    state.observe(generation, Evidence::ConnectRefused, NOW);
    state.observe(generation, Evidence::ProbeAnswered, NOW + Duration::from_secs(10));
    let back: Vec<u32> = [10, 13, 16, 20].map(|second| at_home(&mut state, second)).to_vec();
    assert!(back.is_sorted(), "{back:?}");
    assert!(back[0] < before / 4, "{back:?} of {before}");
    assert_eq!(back[3], before, "all are home again");
}
