//! Behaviour of choosing, and properties under any interleaving of choose, finish, remove and re-add.

mod adaptive;
mod agreement;
mod copies;
mod edges;
mod health;
mod seeds;

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::*;
use crate::{
    Arm, Choice, ConcurrencyThreshold, ModelHash, PrefixAware, PrefixKey, Reason, Refusal, Rollout, SpillCause,
    SpillRule, Strategy,
};

const NOW: Time = Time::ZERO;

fn prefix_aware(threshold: u64, spill: SpillRule) -> Strategy {
    let concurrency_threshold = ConcurrencyThreshold::new(threshold).unwrap();
    Strategy::PrefixAware(PrefixAware { concurrency_threshold, spill, ..PrefixAware::default() })
}

fn variant(strategy: Strategy, n: usize) -> VariantState<usize> {
    let mut state = VariantState::new(Routing { strategy, rollout: Rollout::FULL }, NOW);
    for i in 0..n {
        state.add(InstanceSpec::new(format!("i{i}").as_str()), i).unwrap();
    }
    state
}

fn keyed(key: u128) -> RouteRequest<'static> {
    RouteRequest { key: Some(PrefixKey::from_u128(key)), ..RouteRequest::default() }
}

fn choose(state: &mut VariantState<usize>, request: &RouteRequest<'_>) -> Choice<usize> {
    state.choose(request, NOW, &mut Pcg64::seed_from_u64(0)).unwrap()
}

fn order(state: &VariantState<usize>, key: u128) -> Vec<usize> {
    state.order(PrefixKey::from_u128(key), None, NOW).iter().map(|entry| *entry.instance.data).collect()
}

#[test]
fn a_prefix_stays_home_until_the_threshold_then_spills_in_its_own_order_then_saturates_bounded() {
    let mut state = variant(prefix_aware(2, SpillRule::Next), 4);
    let order = order(&state, 42);
    let choices: Vec<_> = (0..16).map(|_| choose(&mut state, &keyed(42))).collect();
    let chosen: Vec<usize> = choices.iter().map(|choice| choice.instance).collect();
    let reasons: Vec<Reason> = choices.iter().map(|choice| choice.decision.reason).collect();
    assert_eq!(chosen[..8], [0, 0, 1, 1, 2, 2, 3, 3].map(|place: usize| order[place]));
    assert_eq!(reasons[..2], [Reason::Home; 2]);
    assert_eq!(reasons[2..8], [Reason::Spill; 6]);
    assert_eq!(reasons[8..], [Reason::Saturated; 8]);
    assert_eq!(choices[2].decision.cause, Some(SpillCause::Threshold));
    assert_eq!(choices[2].decision.place, Some(1));
    assert_eq!(choices[2].decision.home_in_flight, Some(2));
    // 8 in flight, 9 with this one: the bound is ⌈1.25 × 9 / 4⌉ = 3, and home has 2.
    assert_eq!(chosen[8], order[0]);
    let most = state.instances(NOW).map(|view| view.in_flight).max().unwrap();
    assert!(most <= (1.25f64 * 16.0 / 4.0).ceil() as u32 + 1, "{most}");
}

#[test]
fn a_spill_may_go_to_the_least_outstanding_as_sagemaker_does() {
    let mut state = variant(prefix_aware(2, SpillRule::LeastOutstanding), 3);
    let order = order(&state, 42);
    for _ in 0..2 {
        let _ = choose(&mut state, &keyed(42));
    }
    // A request of another key on the next in order makes the last one the least loaded.
    let other = (0..).find(|&key| self::order(&state, key)[0] == order[1]).unwrap();
    let _ = choose(&mut state, &keyed(other));
    let spilled = choose(&mut state, &keyed(42));
    assert_eq!((spilled.instance, spilled.decision.reason), (order[2], Reason::Spill));
}

#[test]
fn max_in_flight_is_a_spill_and_everywhere_it_is_full() {
    let mut state = variant(prefix_aware(10, SpillRule::Next), 2);
    for id in ["i0", "i1"] {
        let max_in_flight = NonZeroU32::new(1);
        assert!(state.update(&InstanceSpec { max_in_flight, ..InstanceSpec::new(id) }));
    }
    let home = choose(&mut state, &keyed(1));
    let spill = choose(&mut state, &keyed(1));
    assert_eq!((spill.decision.reason, spill.decision.cause), (Reason::Spill, Some(SpillCause::MaxInFlight)));
    let refused = state.choose(&keyed(1), NOW, &mut Pcg64::seed_from_u64(0)).unwrap_err();
    assert_eq!(refused, Refusal::Full);
    assert!(state.finish(home.slot));
    assert_eq!(choose(&mut state, &keyed(1)).decision.reason, Reason::Home);
}

#[test]
fn a_request_without_text_goes_to_the_least_outstanding() {
    let mut state = variant(prefix_aware(10, SpillRule::Next), 3);
    let chosen: Vec<_> = (0..6).map(|_| choose(&mut state, &RouteRequest::default())).collect();
    assert!(chosen.iter().all(|choice| choice.decision.reason == Reason::LeastOutstanding));
    assert_eq!(chosen.iter().map(|choice| choice.instance).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn least_outstanding_takes_ties_in_turn_and_honours_weights() {
    let mut state = variant(Strategy::LeastOutstandingRequests, 3);
    let mut turns = Vec::new();
    for _ in 0..6 {
        let choice = choose(&mut state, &RouteRequest::default());
        turns.push(choice.instance);
        state.finish(choice.slot);
    }
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);

    state.update(&InstanceSpec { weight: Weight::new(2.0).unwrap(), ..InstanceSpec::new("i1") });
    let mut counts = [0; 3];
    for _ in 0..8 {
        counts[choose(&mut state, &RouteRequest::default()).instance] += 1;
    }
    assert_eq!(counts, [2, 4, 2]);
}

#[test]
fn round_robin_goes_in_order_and_spreads_the_heavy_out() {
    let mut state = variant(Strategy::RoundRobin, 3);
    let turns = |state: &mut VariantState<usize>, n: usize| -> Vec<usize> {
        (0..n).map(|_| choose(state, &RouteRequest::default()).instance).collect()
    };
    assert_eq!(turns(&mut state, 6), [0, 1, 2, 0, 1, 2]);
    state.update(&InstanceSpec { weight: Weight::new(2.0).unwrap(), ..InstanceSpec::new("i0") });
    let eight = turns(&mut state, 8);
    assert_eq!(eight.iter().filter(|&&i| i == 0).count(), 4);
    assert!(eight.windows(3).all(|three| three != [0, 0, 0]), "{eight:?}");
}

#[test]
fn an_instance_that_returns_does_not_get_a_burst_of_saved_up_turns() {
    let mut state = variant(Strategy::RoundRobin, 3);
    state.set_draining(&"i0".into(), true);
    for _ in 0..100 {
        let _ = choose(&mut state, &RouteRequest::default());
    }
    state.set_draining(&"i0".into(), false);
    let turns: Vec<usize> = (0..9).map(|_| choose(&mut state, &RouteRequest::default()).instance).collect();
    assert!((2..=4).contains(&turns.iter().filter(|&&i| i == 0).count()), "{turns:?}");
}

#[test]
fn random_honours_weights() {
    let mut state = variant(Strategy::Random, 3);
    state.update(&InstanceSpec { weight: Weight::new(2.0).unwrap(), ..InstanceSpec::new("i2") });
    let mut rng = Pcg64::seed_from_u64(1);
    let mut counts = [0u32; 3];
    for _ in 0..20_000 {
        counts[state.choose(&RouteRequest::default(), NOW, &mut rng).unwrap().instance] += 1;
    }
    for (count, expected) in counts.into_iter().zip([5_000.0, 5_000.0, 10_000.0]) {
        assert!((f64::from(count) / expected - 1.0).abs() < 0.05, "{counts:?}");
    }
}

#[test]
fn the_only_eligible_instance_is_single_whatever_the_strategy() {
    let strategies = [Strategy::Random, Strategy::RoundRobin, Strategy::LeastOutstandingRequests, Strategy::default()];
    for strategy in strategies {
        let mut state = variant(strategy, 2);
        state.set_draining(&"i0".into(), true);
        let choice = choose(&mut state, &keyed(1));
        assert_eq!((choice.instance, choice.decision.reason), (1, Reason::Single));
    }
}

#[test]
fn a_pinned_request_goes_to_its_instance_while_that_is_eligible() {
    let mut state = variant(prefix_aware(1, SpillRule::Next), 4);
    let away = InstanceId::from(format!("i{}", order(&state, 5)[3]).as_str());
    let request = RouteRequest { pinned: Some(&away), ..keyed(5) };
    for _ in 0..3 {
        let choice = choose(&mut state, &request);
        assert_eq!((choice.decision.chosen.clone(), choice.decision.reason), (away.clone(), Reason::Session));
    }
    state.set_draining(&away, true);
    assert_eq!(choose(&mut state, &request).decision.reason, Reason::Home);
}

#[test]
fn a_retry_goes_to_the_next_in_the_order_and_says_so() {
    let mut state = variant(prefix_aware(10, SpillRule::Next), 4);
    let order = order(&state, 9);
    let mut tried = Vec::new();
    for (place, expected) in order.iter().enumerate() {
        let choice = choose(&mut state, &RouteRequest { tried: &tried, ..keyed(9) });
        assert_eq!(choice.instance, *expected);
        assert_eq!(choice.decision.place, Some(place as u32));
        assert_eq!(choice.decision.reason, if place == 0 { Reason::Home } else { Reason::Retry });
        tried.push(choice.decision.generation);
        state.finish(choice.slot);
    }
    let request = RouteRequest { tried: &tried, ..keyed(9) };
    let refused = state.choose(&request, NOW, &mut Pcg64::seed_from_u64(0)).unwrap_err();
    assert_eq!(refused, Refusal::Unavailable);
}

#[test]
fn the_model_decides_who_is_eligible_and_unknown_listings_serve_all() {
    let mut state = variant(prefix_aware(10, SpillRule::Next), 3);
    let generations: Vec<_> = state.instances(NOW).map(|view| view.generation).collect();
    let request = |name: &str| RouteRequest { model: Some(ModelHash::of(name)), ..keyed(3) };
    state.set_models(generations[0], Models::listed(["llama"]));
    state.set_models(generations[1], Models::listed(["qwen"]));
    for _ in 0..10 {
        assert_ne!(choose(&mut state, &request("llama")).instance, 1);
    }
    assert_eq!(choose(&mut state, &request("mistral")).decision.reason, Reason::Single);
    state.set_models(generations[2], Models::listed(["qwen"]));
    let refused = |state: &mut VariantState<usize>, name: &str| {
        state.choose(&request(name), NOW, &mut Pcg64::seed_from_u64(0)).unwrap_err()
    };
    assert_eq!(refused(&mut state, "mistral"), Refusal::ModelNotFound);
    state.observe(generations[0], Evidence::ConnectRefused, NOW);
    assert_eq!(refused(&mut state, "llama"), Refusal::Unavailable);
}

#[test]
fn without_an_instance_in_service_nothing_is_chosen() {
    let mut state = variant(Strategy::default(), 1);
    let generation = state.instances(NOW).next().unwrap().generation;
    state.observe(generation, Evidence::ConnectRefused, NOW);
    let refused =
        |state: &mut VariantState<usize>| state.choose(&keyed(1), NOW, &mut Pcg64::seed_from_u64(0)).unwrap_err();
    assert_eq!(refused(&mut state), Refusal::Unavailable);
    state.set_draining(&"i0".into(), true);
    assert_eq!(refused(&mut state), Refusal::NoInstance);
    assert_eq!(state.remove(&"i0".into()), Some(0));
    assert_eq!(refused(&mut state), Refusal::NoInstance);
}

#[test]
fn ejections_cover_at_most_half_and_are_ignored_beyond() {
    let mut state = variant(prefix_aware(1_024, SpillRule::Next), 4);
    let generations: Vec<_> = state.instances(NOW).map(|view| view.generation).collect();
    let eject = |state: &mut VariantState<usize>, i: usize| {
        for _ in 0..5 {
            state.observe(generations[i], Evidence::RequestFailed, NOW);
        }
    };
    let eligible = |state: &mut VariantState<usize>| choose(state, &keyed(1)).decision.eligible;
    eject(&mut state, 0);
    assert_eq!(eligible(&mut state), 3);
    eject(&mut state, 1);
    assert_eq!(eligible(&mut state), 2);
    eject(&mut state, 2);
    assert_eq!(eligible(&mut state), 4);
    let later = NOW + Duration::from_secs(11);
    let choice = state.choose(&keyed(1), later, &mut Pcg64::seed_from_u64(0)).unwrap();
    assert_eq!(choice.decision.eligible, 4, "all are back after their time");
}

#[test]
fn a_rollout_sends_its_share_of_the_keys_by_the_strategy_and_each_key_always_the_same_way() {
    let mut state = variant(prefix_aware(1_024, SpillRule::Next), 4);
    state.set_routing(Routing { rollout: Rollout::new(30).unwrap(), ..state.routing() });
    let mut by_strategy = 0;
    for key in 0..5_000u128 {
        let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let arms: Vec<_> = (0..2).map(|_| choose(&mut state, &keyed(key))).collect();
        assert_eq!(arms[0].decision.arm, arms[1].decision.arm);
        let expected = if arms[0].decision.arm == Arm::Strategy { Reason::Home } else { Reason::Random };
        assert_eq!(arms[0].decision.reason, expected);
        by_strategy += usize::from(arms[0].decision.arm == Arm::Strategy);
        for choice in arms {
            state.finish(choice.slot);
        }
    }
    assert!((1_400..=1_600).contains(&by_strategy), "{by_strategy}");
}

#[test]
fn a_slot_of_an_earlier_life_frees_nothing_in_a_later_one() {
    let mut state = variant(Strategy::default(), 1);
    let old = choose(&mut state, &keyed(1));
    state.remove(&"i0".into());
    state.add(InstanceSpec::new("i0"), 7).unwrap();
    let new = choose(&mut state, &keyed(1));
    assert!(!state.finish(old.slot));
    assert_eq!(state.instances(NOW).next().unwrap().in_flight, 1);
    assert!(state.finish(new.slot));
    assert_eq!(state.add(InstanceSpec::new("i0"), 8), None, "an id lives once");
}

#[derive(Debug, Clone)]
enum Step {
    Choose { key: u8, retry: bool },
    Finish(prop::sample::Index),
    Remove(u8),
    Add(u8),
    Drain(u8, bool),
    Observe(u8, bool),
}

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (any::<u8>(), any::<bool>()).prop_map(|(key, retry)| Step::Choose { key: key % 6, retry }),
        4 => any::<prop::sample::Index>().prop_map(Step::Finish),
        1 => (0u8..5).prop_map(Step::Remove),
        1 => (0u8..5).prop_map(Step::Add),
        1 => (0u8..5, any::<bool>()).prop_map(|(id, draining)| Step::Drain(id, draining)),
        1 => (0u8..5, any::<bool>()).prop_map(|(id, up)| Step::Observe(id, up)),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// Under any interleaving: `home` and `spill` never lift a counter above the threshold, counters equal the slots
    /// that are out, and equal histories give equal decisions.
    #[test]
    fn counters_are_exact_bounded_and_deterministic(steps in steps(), threshold in 1u64..4, spill in prop_oneof![Just(SpillRule::Next), Just(SpillRule::LeastOutstanding)]) {
        let run = || {
            let mut state = variant(prefix_aware(threshold, spill), 5);
            let mut rng = Pcg64::seed_from_u64(1);
            let mut out: Vec<Choice<usize>> = Vec::new();
            let mut history = Vec::new();
            for step in &steps {
                match step {
                    Step::Choose { key, retry } => {
                        let tried: Vec<_> = out.last().filter(|_| *retry).map(|last| last.decision.generation).into_iter().collect();
                        let request = RouteRequest { tried: &tried, ..keyed(u128::from(*key)) };
                        if let Ok(choice) = state.choose(&request, NOW, &mut rng) {
                            let decision = &choice.decision;
                            if matches!(decision.reason, Reason::Home | Reason::Spill) {
                                prop_assert!(u64::from(decision.in_flight) <= threshold);
                            }
                            prop_assert!(decision.reason != Reason::Home || decision.place == Some(0));
                            prop_assert!(!tried.contains(&decision.generation));
                            history.push(decision.clone());
                            out.push(choice);
                        }
                    }
                    Step::Finish(index) if !out.is_empty() => {
                        let choice = out.swap_remove(index.index(out.len()));
                        state.finish(choice.slot);
                    }
                    Step::Finish(_) => {}
                    Step::Remove(id) => { state.remove(&format!("i{id}").as_str().into()); }
                    Step::Add(id) => { state.add(InstanceSpec::new(format!("i{id}").as_str()), usize::from(*id)); }
                    Step::Drain(id, draining) => { state.set_draining(&format!("i{id}").as_str().into(), *draining); }
                    Step::Observe(id, up) => {
                        let generation = state.instances(NOW).find(|view| *view.data == usize::from(*id)).map(|view| view.generation);
                        let evidence = if *up { Evidence::ProbeAnswered } else { Evidence::ConnectRefused };
                        if let Some(generation) = generation { state.observe(generation, evidence, NOW); }
                    }
                }
                for view in state.instances(NOW) {
                    let slots = out.iter().filter(|choice| choice.slot.generation() == view.generation).count();
                    prop_assert_eq!(view.in_flight as usize, slots);
                }
            }
            for choice in out {
                state.finish(choice.slot);
            }
            prop_assert!(state.instances(NOW).all(|view| view.in_flight == 0));
            Ok(history)
        };
        prop_assert_eq!(run()?, run()?);
    }
}
