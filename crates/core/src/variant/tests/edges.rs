//! Where one rule ends and the next begins: rollouts of nothing, just half of the instances ejected, loads at their bound.

use super::*;

fn weigh(state: &mut VariantState<usize>, weights: &[f64]) {
    for (index, weight) in weights.iter().enumerate() {
        let weight = Weight::new(*weight).unwrap();
        assert!(state.update(&InstanceSpec { weight, ..InstanceSpec::new(format!("i{index}").as_str()) }));
    }
}

#[test]
fn requests_without_a_key_are_rolled_out_by_chance_in_the_same_share() {
    let mut state = variant(prefix_aware(10, SpillRule::Next), 4);
    let mut rng = Pcg64::seed_from_u64(2);
    for (percent, expected) in [(0, 0..=0), (30, 1_400..=1_600), (99, 4_910..=4_990), (100, 5_000..=5_000)] {
        state.set_routing(Routing { rollout: Rollout::new(percent).unwrap(), ..state.routing() });
        let mut by_strategy = 0;
        for _ in 0..5_000 {
            let choice = state.choose(&RouteRequest::default(), NOW, &mut rng).unwrap();
            by_strategy += usize::from(choice.decision.arm == Arm::Strategy);
            state.finish(choice.slot);
        }
        assert!(expected.contains(&by_strategy), "{percent} %: {by_strategy}");
    }
}

#[test]
fn a_rollout_of_nothing_leaves_no_key_to_the_strategy() {
    let mut state = variant(prefix_aware(1_024, SpillRule::Next), 2);
    state.set_routing(Routing { rollout: Rollout::new(0).unwrap(), ..state.routing() });
    for key in 0..2_000 {
        let choice = choose(&mut state, &keyed(key));
        assert_eq!((choice.decision.arm, choice.decision.reason), (Arm::Random, Reason::Random));
        state.finish(choice.slot);
    }
}

#[test]
fn half_of_the_instances_may_be_ejected_and_no_more() {
    for (ejected, eligible) in [(0, 6), (1, 5), (2, 4), (3, 3), (4, 6), (5, 6), (6, 6)] {
        let mut state = variant(prefix_aware(1_024, SpillRule::Next), 6);
        let generations: Vec<_> = state.instances(NOW).map(|view| view.generation).collect();
        for generation in &generations[..ejected] {
            for _ in 0..5 {
                state.observe(*generation, Evidence::RequestFailed, NOW);
            }
        }
        assert_eq!(choose(&mut state, &keyed(1)).decision.eligible, eligible, "{ejected} ejected");
    }
}

#[test]
fn a_saturated_prefix_goes_to_the_first_in_its_order_that_has_room_within_its_part_of_the_load() {
    let weights = [1.0, 2.0, 5.0];
    for key in 0..20 {
        let mut state = variant(prefix_aware(1, SpillRule::Next), 3);
        weigh(&mut state, &weights);
        let order = order(&state, key);
        let mut in_flight = [1u32; 3];
        for _ in 0..3 {
            assert_ne!(choose(&mut state, &keyed(key)).decision.reason, Reason::Saturated);
        }
        for _ in 0..40 {
            let total: u32 = in_flight.iter().sum();
            let has_room = |index: usize| {
                let part = 1.25 * f64::from(total + 1) * weights[index] / 8.0;
                f64::from(in_flight[index]) <= part.ceil()
            };
            let expected = order.iter().copied().find(|&index| has_room(index)).unwrap();
            let choice = choose(&mut state, &keyed(key));
            assert_eq!((choice.instance, choice.decision.reason), (expected, Reason::Saturated), "{in_flight:?}");
            in_flight[expected] += 1;
        }
    }
}

#[test]
fn a_saturated_variant_spills_to_the_least_outstanding_where_told_so() {
    let mut state = variant(prefix_aware(1, SpillRule::LeastOutstanding), 3);
    let saturated: Vec<_> = (0..12).map(|_| choose(&mut state, &keyed(42))).skip(3).collect();
    assert!(saturated.iter().all(|choice| choice.decision.reason == Reason::Saturated));
    let chosen: Vec<usize> = saturated.iter().map(|choice| choice.instance).collect();
    assert_eq!(chosen, [0, 1, 2].repeat(3), "the first of those that have the least");
    let counts: Vec<u32> = state.instances(NOW).map(|view| view.in_flight).collect();
    assert_eq!(counts, [4; 3]);
}

#[test]
fn turns_by_weight_come_in_the_order_of_smooth_weighted_round_robin() {
    let mut state = variant(Strategy::RoundRobin, 3);
    weigh(&mut state, &[5.0, 1.0, 1.0]);
    let turns: Vec<usize> = (0..14).map(|_| choose(&mut state, &RouteRequest::default()).instance).collect();
    assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn what_was_set_is_in_force_and_told() {
    let mut state = variant(Strategy::Adaptive, 2);
    let routing = Routing { strategy: Strategy::RoundRobin, rollout: Rollout::new(50).unwrap() };
    state.set_routing(routing);
    assert_eq!(state.routing(), routing);
    state.set_probes_to_down(NonZeroU32::MIN);
    let generation = state.instances(NOW).next().unwrap().generation;
    assert!(state.observe(generation, Evidence::ProbeFailed, NOW), "one is enough");
}

#[test]
fn the_order_of_a_key_tells_who_may_be_chosen() {
    let mut state = variant(Strategy::default(), 4);
    let generations: Vec<_> = state.instances(NOW).map(|view| view.generation).collect();
    state.set_models(generations[0], Models::listed(["qwen"]));
    state.set_draining(&"i1".into(), true);
    state.observe(generations[2], Evidence::ConnectRefused, NOW);
    let order = state.order(PrefixKey::from_u128(1), Some(ModelHash::of("llama")), NOW);
    assert_eq!(order.len(), 4);
    assert!(order.iter().all(|entry| entry.eligible == (*entry.instance.data == 3)), "{order:?}");
}

#[test]
fn an_instance_that_was_full_for_long_does_not_get_a_burst_of_saved_up_turns() {
    let turns = |state: &mut VariantState<usize>, n: usize| -> Vec<usize> {
        (0..n).map(|_| choose(state, &RouteRequest::default()).instance).collect()
    };
    let mut state = variant(Strategy::RoundRobin, 4);
    let max_in_flight = NonZeroU32::new(1);
    assert!(state.update(&InstanceSpec { max_in_flight, ..InstanceSpec::new("i0") }));
    let before = turns(&mut state, 400);
    assert_eq!(before.iter().filter(|&&index| index == 0).count(), 1, "full after its first");
    assert!(state.update(&InstanceSpec::new("i0")));
    let after = turns(&mut state, 40);
    let of_it = after.iter().filter(|&&index| index == 0).count();
    assert!((9..=11).contains(&of_it), "{after:?}");
}

#[test]
fn turns_are_counted_for_each_model_by_itself() {
    for strategy in [Strategy::RoundRobin, Strategy::LeastOutstandingRequests] {
        let mut state = variant(strategy, 4);
        let generations: Vec<_> = state.instances(NOW).map(|view| view.generation).collect();
        for (generation, model) in generations.into_iter().zip(["llama", "llama", "qwen", "qwen"]) {
            state.set_models(generation, Models::listed([model]));
        }
        // In turn, as two clients may ask: a turn of one must not take the other's.
        let mut counts = [0; 4];
        for model in ["llama", "qwen"].repeat(20) {
            let request = RouteRequest { model: Some(ModelHash::of(model)), ..RouteRequest::default() };
            let choice = choose(&mut state, &request);
            counts[choice.instance] += 1;
            state.finish(choice.slot);
        }
        assert_eq!(counts, [10; 4], "{strategy:?}");
    }
}
