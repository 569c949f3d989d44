//! Who gets a prompt among instances that count as equal, and when one that is worse is tried.

use rand::Rng as _;

use super::*;

/// About ten thousand tokens that share no block with those of another number.
fn new_prompt(number: u32) -> Prompt {
    prompt(&format!("{number:08}").repeat(5_250))
}

/// The same after so many bytes that all have.
fn continued(shared: usize, number: u32) -> Prompt {
    prompt(&("s".repeat(shared) + &format!("{number:08}").repeat((42_000 - shared) / 8)))
}

/// Lets so many tokens wait on an instance, without a request in flight.
fn let_wait(state: &mut VariantState<usize>, instance: usize, tokens: f64) {
    state.instances[instance].beliefs.waiting.push(tokens, NOW);
}

/// Where a prompt goes; it fails there, so nothing changes by it.
fn place(state: &mut VariantState<usize>, prompt: &Prompt, seed: u64) -> usize {
    let choice = state.choose(&of(prompt), NOW, &mut Pcg64::seed_from_u64(seed)).unwrap();
    state.finish(choice.slot);
    choice.instance
}

/// How many of the new prompts go to each instance.
fn spread(state: &mut VariantState<usize>, prompts: impl Iterator<Item = Prompt>, seed: u64) -> Vec<usize> {
    let mut counts = vec![0; state.instances.len()];
    for prompt in prompts {
        counts[place(state, &prompt, seed)] += 1;
    }
    counts
}

/// Seeds with which one choice in a hundred is a trial, and this is one.
fn trials() -> impl Iterator<Item = u64> {
    (0..).filter(|seed| Pcg64::seed_from_u64(*seed).next_u32().is_multiple_of(100))
}

#[test]
fn new_prompts_spread_over_equal_instances_and_each_goes_to_the_same_but_for_trials() {
    let mut state = variant(Strategy::Adaptive, 4);
    let counts = spread(&mut state, (0..80).map(new_prompt), 0);
    assert!(counts.iter().all(|count| *count >= 8), "{counts:?}");
    let mut elsewhere = 0;
    for asked in (0..4).map(new_prompt) {
        let first = place(&mut state, &asked, 0);
        elsewhere += (0..1_000).filter(|seed| place(&mut state, &asked, *seed) != first).count();
    }
    assert!((5..=60).contains(&elsewhere), "but for one in a hundred, a trial: {elsewhere}");
}

#[test]
fn one_prompt_of_many_tenants_spreads_too() {
    let mut state = variant(Strategy::Adaptive, 4);
    let by_tenants = (0..80).map(|tenant| Prompt { tenant, ..new_prompt(7) });
    let counts = spread(&mut state, by_tenants, 0);
    assert!(counts.iter().all(|count| *count >= 8), "{counts:?}");
}

#[test]
fn a_prompt_whose_beginning_is_known_is_never_a_trial() {
    let mut state = variant(Strategy::Adaptive, 4);
    let mut begun = choose(&mut state, &of(&continued(64, 1)));
    state.answered(&mut begun.slot);
    state.finish(begun.slot);
    let asked = continued(64, 2);
    let first = place(&mut state, &asked, 0);
    assert!((0..1_000).all(|seed| place(&mut state, &asked, seed) == first));
}

#[test]
fn a_trial_goes_to_whoever_is_not_much_worse_in_an_order_of_its_own() {
    let seed = trials().next().unwrap();
    let mut state = variant(Strategy::Adaptive, 3);
    // By what a token costs that waits, and one that is computed: half as much again, and three times as much.
    let_wait(&mut state, 1, 8_000.0);
    let_wait(&mut state, 2, 36_000.0);
    let counts = spread(&mut state, (0..40).map(new_prompt), seed);
    assert!(counts[0] >= 8 && counts[1] >= 8 && counts[2] == 0, "{counts:?}");
    assert_eq!(spread(&mut state, (0..40).map(new_prompt), 0), [40, 0, 0]);

    let mut state = variant(Strategy::Adaptive, 4);
    for tenant in [0, 1] {
        let asked = (0..40).map(|number| Prompt { tenant, ..new_prompt(number) });
        let moved = asked.filter(|asked| place(&mut state, asked, seed) != place(&mut state, asked, 0)).count();
        assert!(moved >= 10, "{moved}");
    }
}

#[test]
fn a_prompt_of_which_little_is_known_counts_as_new_and_another_goes_to_its_holder() {
    for (shared, is_new) in [(4_096, true), (21_000, false)] {
        let mut state = variant(Strategy::Adaptive, 4);
        let mut begun = choose(&mut state, &of(&continued(shared, 0)));
        state.answered(&mut begun.slot);
        state.finish(begun.slot);
        let counts = spread(&mut state, (1..41).map(|number| continued(shared, number)), 0);
        assert_eq!(counts[begun.instance] < 40, is_new, "{shared}: {counts:?}");
        assert_eq!(counts.iter().all(|count| *count > 0), is_new, "{shared}: {counts:?}");
    }
}

#[test]
fn a_new_prompt_goes_only_where_not_much_more_of_it_waits_than_at_the_best() {
    for (waiting, is_equal) in [(300.0, true), (2_600.0, false)] {
        let mut state = variant(Strategy::Adaptive, 2);
        let_wait(&mut state, 1, waiting);
        let counts = spread(&mut state, (0..40).map(new_prompt), 0);
        assert_eq!(counts[1] > 0, is_equal, "{waiting}: {counts:?}");
    }
    // What waits at the best does not count against the others.
    let mut state = variant(Strategy::Adaptive, 2);
    let_wait(&mut state, 0, 4_000.0);
    let_wait(&mut state, 1, 4_300.0);
    let counts = spread(&mut state, (0..40).map(new_prompt), 0);
    assert!(counts.iter().all(|count| *count >= 8), "{counts:?}");
}

#[test]
fn a_request_without_a_prompt_goes_to_the_least_outstanding() {
    let mut state = variant(Strategy::Adaptive, 3);
    let chosen: Vec<_> = (0..3).map(|_| choose(&mut state, &RouteRequest::default())).collect();
    assert!(chosen.iter().all(|choice| choice.decision.reason == Reason::LeastOutstanding));
    assert_eq!(chosen.iter().map(|choice| choice.instance).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn requests_in_flight_count_by_weight() {
    let mut state = variant(Strategy::Adaptive, 2);
    for (instance, weight, requests) in [(0, 2.0, 3), (1, 4.0, 6)] {
        let id = InstanceId::from(format!("i{instance}").as_str());
        state.update(&InstanceSpec { weight: Weight::new(weight).unwrap(), ..InstanceSpec::new(id.clone()) });
        for _ in 0..requests {
            let _ = choose(&mut state, &RouteRequest { pinned: Some(&id), ..RouteRequest::default() });
        }
    }
    let asked = new_prompt(0);
    let [one, other] = [0, 1].map(|instance| state.scores(&of(&asked), &asked, NOW)[instance].milliseconds);
    assert_eq!(one, other);
}
