//! `ADAPTIVE` through the whole life of a request: what is believed when it is chosen, confirmed, failed or restarted.

mod ties;

use super::*;
use crate::{BlockHasher, HashSeed, KeyScope, Prompt};

const SEED: HashSeed = HashSeed(1);

fn prompt(text: &str) -> Prompt {
    let mut hasher = BlockHasher::new(SEED);
    hasher.update(text.as_bytes());
    hasher.finish().unwrap().within(SEED, &KeyScope::default(), None, None)
}

fn of(prompt: &Prompt) -> RouteRequest<'_> {
    RouteRequest { prompt: Some(prompt), ..RouteRequest::default() }
}

/// Blocks are cut at fixed places, so the document fills whole ones.
fn document(question: &str) -> Prompt {
    prompt(&("document ".repeat(4_096) + question))
}

fn held(state: &mut VariantState<usize>, prompt: &Prompt) -> Vec<u64> {
    state.scores(&of(prompt), prompt, NOW).iter().map(|entry| entry.held_bytes).collect()
}

#[test]
fn a_prompt_goes_where_its_beginning_is_and_says_so() {
    let mut state = variant(Strategy::Adaptive, 4);
    let mut first = choose(&mut state, &of(&document("one?")));
    assert_eq!((first.decision.reason, first.decision.expected_cached_tokens), (Reason::Cold, Some(0)));
    let burst = choose(&mut state, &of(&document("two?")));
    assert_eq!((burst.instance, burst.decision.reason), (first.instance, Reason::Warm));
    state.first_token(&mut first.slot, NOW);
    state.finish(first.slot);
    let again = choose(&mut state, &of(&document("three?")));
    assert_eq!((again.instance, again.decision.reason), (burst.instance, Reason::Warm));
    assert!(again.decision.expected_cached_tokens.unwrap() > 8_000, "{:?}", again.decision);
}

#[test]
fn what_failed_before_its_first_token_is_not_believed_to_be_there() {
    let mut state = variant(Strategy::Adaptive, 3);
    let failed = choose(&mut state, &of(&document("one?")));
    state.finish(failed.slot);
    assert_eq!(held(&mut state, &document("two?")), [0; 3]);
    let mut whole = choose(&mut state, &of(&document("one?")));
    state.answered(&mut whole.slot);
    state.finish(whole.slot);
    assert_eq!(held(&mut state, &document("two?"))[whole.instance], 9 * 4_096);
}

#[test]
fn a_process_that_is_gone_has_lost_its_cache_and_what_waited_there() {
    let mut state = variant(Strategy::Adaptive, 2);
    let mut begun = choose(&mut state, &of(&document("one?")));
    state.first_token(&mut begun.slot, NOW);
    let waiting = choose(&mut state, &of(&document("two?")));
    assert_eq!(begun.instance, waiting.instance);
    let generation = begun.decision.generation;
    assert!(state.observe(generation, Evidence::ConnectRefused, NOW));
    assert_eq!(held(&mut state, &document("three?")), [0; 2]);
    assert!(state.observe(generation, Evidence::ProbeAnswered, NOW));

    // What was sent to the old process takes nothing from the new one.
    let new = state.by_generation(generation).unwrap();
    new.beliefs.waiting.push(7.0, NOW);
    state.finish(waiting.slot);
    state.finish(begun.slot);
    assert_eq!(state.by_generation(generation).unwrap().beliefs.waiting.tokens(), 7.0);
    assert_eq!(held(&mut state, &document("three?")), [0; 2]);
}

#[test]
fn a_process_that_was_replaced_unnoticed_is_believed_to_hold_nothing() {
    let mut state = variant(Strategy::Adaptive, 2);
    let mut begun = choose(&mut state, &of(&document("one?")));
    state.first_token(&mut begun.slot, NOW);
    let (instance, generation) = (begun.instance, begun.decision.generation);
    assert!(held(&mut state, &document("two?"))[instance] > 0);
    state.restarted(generation);
    assert_eq!(held(&mut state, &document("two?")), [0; 2]);
    assert!(state.instances(NOW).all(|view| view.availability == crate::Availability::Up));
}

#[test]
fn other_evidence_leaves_the_beliefs() {
    let mut state = variant(Strategy::Adaptive, 2);
    let mut begun = choose(&mut state, &of(&document("one?")));
    state.first_token(&mut begun.slot, NOW);
    for _ in 0..10 {
        state.observe(begun.decision.generation, Evidence::RequestFailed, NOW);
        state.observe(begun.decision.generation, Evidence::ProbeFailed, NOW);
    }
    assert_eq!(held(&mut state, &document("two?"))[begun.instance], 9 * 4_096);
}

#[test]
fn scores_tell_what_would_be_chosen_and_count_nothing() {
    let mut state = variant(Strategy::Adaptive, 3);
    let mut first = choose(&mut state, &of(&document("one?")));
    state.first_token(&mut first.slot, NOW);
    state.finish(first.slot);
    let question = document("two?");
    let draining = InstanceId::from(format!("i{}", (first.instance + 1) % 3).as_str());
    state.set_draining(&draining, true);
    for _ in 0..2 {
        let scores = state.scores(&of(&question), &question, NOW);
        let chosen: Vec<_> = scores.iter().filter(|entry| entry.chosen).collect();
        assert_eq!((chosen.len(), *chosen[0].instance.data), (1, first.instance));
        assert!(scores.iter().all(|entry| entry.chosen || entry.milliseconds > 10.0 * chosen[0].milliseconds));
        assert!(scores.iter().all(|entry| entry.eligible == (*entry.instance.id != draining)));
        assert!(scores.iter().all(|entry| entry.waiting_tokens == 0.0 && entry.instance.in_flight == 0));
    }
    assert_eq!(choose(&mut state, &of(&question)).instance, first.instance);
}

#[test]
fn who_is_pinned_or_alone_is_believed_to_hold_its_own_prompt() {
    let mut state = variant(Strategy::Adaptive, 2);
    let (a, b) = (document("one?"), prompt(&"something else ".repeat(1_000)));
    let mut warm = choose(&mut state, &of(&a));
    state.first_token(&mut warm.slot, NOW);
    let id = InstanceId::from(format!("i{}", warm.instance).as_str());
    let pinned = choose(&mut state, &RouteRequest { pinned: Some(&id), ..of(&b) });
    assert_eq!((pinned.decision.reason, pinned.decision.expected_cached_tokens), (Reason::Session, Some(0)));
}

#[test]
fn a_burst_of_cold_equals_goes_to_at_most_two_instances() {
    for seed in 0..20 {
        let mut state = variant(Strategy::Adaptive, 8);
        let text = format!("{seed} {}", "document ".repeat(2_600));
        let mut gone_to: Vec<usize> = Vec::new();
        for question in 0..32 {
            let asked = prompt(&format!("{text}{question} {}", "question ".repeat(60)));
            gone_to.push(choose(&mut state, &of(&asked)).instance);
        }
        gone_to.sort_unstable();
        gone_to.dedup();
        assert!(gone_to.len() <= 2, "{gone_to:?}");
    }
}

#[test]
fn a_hot_prefix_grows_to_as_many_instances_as_its_load_needs() {
    // So many clients that always have one request under way each.
    let holders = |clients: usize| {
        let mut state = variant(Strategy::Adaptive, 8);
        let mut under_way = std::collections::VecDeque::new();
        for request in 0..4_000u64 {
            let now = Time::ZERO + Duration::from_millis(10 * request);
            if under_way.len() == clients {
                let choice: Choice<usize> = under_way.pop_front().unwrap();
                state.finish(choice.slot);
            }
            let asked = prompt(&format!("{}{request}", "system ".repeat(3_000)));
            let mut choice = state.choose(&of(&asked), now, &mut Pcg64::seed_from_u64(request)).unwrap();
            let uncached = if choice.decision.reason == Reason::Cold { 5_000.0 } else { 10.0 };
            state.first_token(&mut choice.slot, now + Duration::from_secs_f64(0.05 + 42e-6 * uncached));
            under_way.push_back(choice);
        }
        held(&mut state, &prompt(&"system ".repeat(3_000))).iter().filter(|held| **held > 20_000).count()
    };
    let grown = [2, 20, 400].map(holders);
    assert!(grown[0] == 1 && (2..=6).contains(&grown[1]) && grown[2] == 8, "{grown:?}");
}

#[test]
fn what_engines_report_of_requests_is_learned_and_what_is_believed_takes_memory() {
    let mut state = variant(Strategy::Adaptive, 2);
    assert_eq!(state.index_bytes(), 0);
    let asked = document("one?");
    assert!(!choose(&mut state, &RouteRequest::default()).slot.is_learned_from());
    let choice = choose(&mut state, &of(&asked));
    assert!(choice.slot.is_learned_from());
    assert!(state.index_bytes() > 8 * asked.blocks.len());
    let tokens =
        |state: &mut VariantState<usize>| state.scores(&of(&asked), &asked, NOW)[1 - choice.instance].uncached_tokens;
    let before = tokens(&mut state);
    state.report(&choice.slot, &crate::Report { prompt_tokens: Some(36_000), ..crate::Report::default() });
    assert!(tokens(&mut state) > 1.5 * before);
}
