//! Golden cases of the scheduler: what exactly each step computes, and what follows from it.

use super::*;
use crate::block::{CacheScope, ChainBuilder};

/// The default model without overheads around requests, with this many blocks and this budget of tokens per step.
pub(super) fn engine(blocks: u64, budget: u32) -> Engine {
    let profile =
        Profile { overhead_before: Duration::ZERO, tokenization_per_token: Duration::ZERO, ..Profile::default() };
    Engine::new(profile.with_kv_capacity_tokens(blocks * 16).with_max_num_batched_tokens(budget))
}

/// A request whose prompt and output are the first tokens of one content.
pub(super) fn request(id: u64, content: u64, prompt_tokens: u32, output_tokens: u32) -> EngineRequest {
    let mut chain = ChainBuilder::new(&CacheScope::default());
    chain.push_content(content, prompt_tokens + output_tokens);
    EngineRequest { id: RequestId(id), chain: chain.build(), prompt_tokens, output_tokens }
}

/// Plans a step and tells which request computes how many tokens.
fn plan(engine: &mut Engine) -> Vec<(u64, u32)> {
    engine.begin_step(Duration::ZERO);
    let planned = engine.running.iter().filter(|sequence| sequence.planned > 0);
    planned.map(|sequence| (sequence.id.0, sequence.planned)).collect()
}

fn end(engine: &mut Engine) -> Vec<Event> {
    let mut events = Vec::new();
    engine.end_step(&mut events);
    engine.assert_consistent();
    events
}

/// Runs until nothing is left to compute, at most a thousand steps.
fn finish(engine: &mut Engine) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..1_000 {
        if engine.begin_step(Duration::ZERO).is_none() {
            return events;
        }
        events.extend(end(engine));
    }
    panic!("the engine does not come to an end: {engine:?}");
}

fn first(id: u64, cached_tokens: u32) -> Event {
    Event::FirstToken { id: RequestId(id), cached_tokens }
}

fn token(id: u64) -> Event {
    Event::Token { id: RequestId(id) }
}

fn finished(id: u64, cached_tokens: u32) -> Event {
    Event::Finished { id: RequestId(id), cached_tokens }
}

impl Engine {
    /// Panics unless exactly the running requests hold blocks, each as many as its computed tokens need.
    pub(super) fn assert_consistent(&self) {
        let held: Vec<_> = self.running.iter().flat_map(|sequence| sequence.blocks.iter().copied()).collect();
        self.pool.assert_consistent(&held);
        for sequence in &self.running {
            let tokens = sequence.computed + sequence.planned;
            assert_eq!(sequence.blocks.len(), tokens.div_ceil(BLOCK_TOKENS) as usize, "{sequence:?}");
        }
        assert!(self.waiting.iter().all(|sequence| sequence.blocks.is_empty()));
        assert!(self.running.len() <= self.max_running);
        let held = self.arriving.len() + self.waiting.len() + self.running.iter().filter(|seq| !seq.leaves).count();
        assert_eq!(self.live.len(), held);
    }
}

#[test]
fn a_request_computes_its_prompt_and_then_a_token_a_step() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 40, 3)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 40)]);
    assert_eq!(end(&mut engine), [first(1, 0)]);
    assert_eq!(plan(&mut engine), [(1, 1)]);
    assert_eq!(end(&mut engine), [token(1)]);
    assert_eq!(plan(&mut engine), [(1, 1)]);
    assert_eq!(end(&mut engine), [token(1), finished(1, 0)]);
    assert_eq!(plan(&mut engine), []);
    assert_eq!(engine.statistics().used_blocks, 0);
}

#[test]
fn concurrent_misses_both_compute_and_both_copies_stay() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 7, 64, 2)).unwrap();
    engine.submit(Duration::ZERO, request(2, 7, 64, 2)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 64), (2, 64)]);
    assert_eq!(end(&mut engine), [first(1, 0), first(2, 0)]);
    assert_eq!(plan(&mut engine), [(1, 1), (2, 1)]);
    assert_eq!(engine.statistics().used_blocks, 10, "nothing was merged");
}

#[test]
fn a_request_of_the_next_step_shares_what_this_step_computed() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 7, 64, 2)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 64)]);
    engine.submit(Duration::ZERO, request(2, 7, 70, 2)).unwrap();
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(1, 1), (2, 6)]);
    assert_eq!(end(&mut engine)[2..], [first(2, 64)]);
}

#[test]
fn with_visibility_when_scheduled_a_request_of_the_same_step_shares_too() {
    let mut engine = engine(100, 8_192);
    engine.profile.block_visibility = BlockVisibility::WhenScheduled;
    engine.submit(Duration::ZERO, request(1, 7, 64, 2)).unwrap();
    engine.submit(Duration::ZERO, request(2, 7, 64, 2)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 64), (2, 16)]);
    assert_eq!(end(&mut engine), [first(1, 0), first(2, 48)]);
    finish(&mut engine);
}

#[test]
fn only_full_blocks_hit_and_the_last_token_is_always_recomputed() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 7, 64, 1)).unwrap();
    finish(&mut engine);
    for (prompt, cached) in [(15, 0), (16, 0), (17, 16), (63, 48), (64, 48), (65, 64), (200, 64)] {
        engine.submit(Duration::ZERO, request(2, 7, prompt, 1)).unwrap();
        assert_eq!(plan(&mut engine), [(2, prompt - cached)]);
        assert_eq!(end(&mut engine), [first(2, cached), finished(2, cached)]);
        engine = self::engine(100, 8_192);
        engine.submit(Duration::ZERO, request(1, 7, 64, 1)).unwrap();
        finish(&mut engine);
    }
}

#[test]
fn the_blocks_of_an_answer_are_found_by_the_next_turn() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 7, 20, 30)).unwrap();
    finish(&mut engine);
    // Of the 50 tokens the last was generated and never computed: 49 are, in 3 full blocks.
    engine.submit(Duration::ZERO, request(2, 7, 60, 1)).unwrap();
    assert_eq!(finish(&mut engine), [first(2, 48), finished(2, 48)]);
}

#[test]
fn a_chain_shorter_than_its_sequence_leaves_the_rest_private() {
    let mut engine = engine(100, 8_192);
    let mut short = request(1, 7, 64, 10);
    short.chain = request(1, 7, 32, 0).chain;
    engine.submit(Duration::ZERO, short.clone()).unwrap();
    finish(&mut engine);
    engine.submit(Duration::ZERO, request(2, 7, 64, 1)).unwrap();
    assert_eq!(finish(&mut engine), [first(2, 32), finished(2, 32)]);
}

#[test]
fn a_long_prompt_is_computed_in_chunks_and_others_use_what_is_left() {
    let mut engine = engine(100, 100);
    engine.submit(Duration::ZERO, request(1, 1, 250, 3)).unwrap();
    engine.submit(Duration::ZERO, request(2, 2, 30, 3)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 100)]);
    assert_eq!(engine.statistics().waiting, 1);
    assert_eq!(end(&mut engine), []);
    assert_eq!(plan(&mut engine), [(1, 100)]);
    assert_eq!(end(&mut engine), []);
    assert_eq!(plan(&mut engine), [(1, 50), (2, 30)]);
    assert_eq!(end(&mut engine), [first(1, 0), first(2, 0)]);

    engine.submit(Duration::ZERO, request(3, 3, 150, 1)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 1), (2, 1), (3, 98)], "decoding goes before prefill");
    assert_eq!(end(&mut engine), [token(1), token(2)]);
    assert_eq!(plan(&mut engine), [(1, 1), (2, 1), (3, 52)]);
    assert_eq!(end(&mut engine), [token(1), finished(1, 0), token(2), finished(2, 0), first(3, 0), finished(3, 0)]);
}

#[test]
fn the_first_chunk_of_a_prompt_can_be_found_while_the_rest_is_computed() {
    let mut engine = engine(100, 100);
    engine.submit(Duration::ZERO, request(1, 1, 150, 2)).unwrap();
    plan(&mut engine);
    end(&mut engine);
    engine.submit(Duration::ZERO, request(2, 1, 150, 2)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 50), (2, 50)], "96 tokens hit, 4 wait for the next step");
    assert_eq!(end(&mut engine), [first(1, 0)]);
    assert_eq!(plan(&mut engine), [(1, 1), (2, 4)]);
    assert_eq!(end(&mut engine), [token(1), finished(1, 0), first(2, 96)]);
}

#[test]
fn no_more_requests_run_than_allowed() {
    let mut engine = engine(100, 8_192);
    engine.max_running = 2;
    for id in 1..=3 {
        engine.submit(Duration::ZERO, request(id, id, 10, 2)).unwrap();
    }
    assert_eq!(plan(&mut engine), [(1, 10), (2, 10)]);
    let statistics = engine.statistics();
    assert_eq!((statistics.running, statistics.waiting), (2, 1));
    end(&mut engine);
    plan(&mut engine);
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(3, 10)]);
}

#[test]
fn without_blocks_the_request_admitted_last_is_preempted_and_recovers() {
    let mut engine = engine(4, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 31, 20)).unwrap();
    engine.submit(Duration::ZERO, request(2, 2, 31, 20)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 31), (2, 31)]);
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(1, 1), (2, 1)]);
    assert_eq!(end(&mut engine), [token(1), token(2)]);
    // Both have filled their two blocks; the first takes a third one from the second.
    assert_eq!(plan(&mut engine), [(1, 1)]);
    let statistics = engine.statistics();
    assert_eq!((statistics.running, statistics.waiting, statistics.used_blocks), (1, 1, 3));
    assert_eq!(end(&mut engine), [Event::Preempted { id: RequestId(2) }, token(1)]);

    // It holds 33 tokens and waits until its three blocks are free; then it computes them all again.
    for _ in 0..17 {
        assert_eq!(plan(&mut engine), [(1, 1)]);
        end(&mut engine);
    }
    assert_eq!(engine.statistics().finished, 1);
    assert_eq!(plan(&mut engine), [(2, 33)]);
    assert_eq!(end(&mut engine), [token(2)]);
    let rest = finish(&mut engine);
    assert_eq!(rest.iter().filter(|&&event| event == token(2)).count(), 17, "20 tokens in all, none twice");
    assert_eq!(rest.last(), Some(&finished(2, 0)));
    assert_eq!(engine.statistics().preemptions, 1);
}

#[test]
fn a_preempted_request_finds_its_own_blocks_again_and_is_counted_apart() {
    let mut engine = engine(6, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 47, 3)).unwrap();
    engine.submit(Duration::ZERO, request(2, 2, 47, 3)).unwrap();
    finish(&mut engine);
    let statistics = engine.statistics();
    assert_eq!(statistics.preemptions, 1);
    assert_eq!((statistics.prefix_cache_queries, statistics.prefix_cache_hits), (94, 0));
    // Of its three stored blocks the last was overwritten, when the first request needed one.
    assert_eq!((statistics.preempted_queries, statistics.preempted_hits), (49, 32));
    assert_eq!(statistics.generation_tokens, 6);
}

#[test]
fn a_preempted_request_is_the_next_to_be_admitted() {
    let mut engine = engine(4, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 32, 2)).unwrap();
    engine.submit(Duration::ZERO, request(2, 2, 32, 2)).unwrap();
    plan(&mut engine);
    engine.submit(Duration::ZERO, request(3, 3, 1, 1)).unwrap();
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(1, 1)]);
    assert_eq!(engine.statistics().used_blocks, 3, "there is room for the third, but the preempted one is first");
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(2, 17), (3, 1)], "the first of its two blocks is still cached");
}

#[test]
fn after_a_preemption_nobody_is_admitted_in_the_same_step_even_if_it_fits() {
    let mut engine = engine(4, 8_192);
    engine.submit(Duration::ZERO, request(1, 7, 32, 3)).unwrap();
    engine.submit(Duration::ZERO, request(2, 7, 32, 3)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 32), (2, 32)]);
    end(&mut engine);
    // With the blocks of the first request the second would need only one more, and one is free.
    assert_eq!(plan(&mut engine), [(1, 1)]);
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(1, 1), (2, 1)]);
}

#[test]
fn a_prompt_waits_until_all_of_it_fits_and_nobody_overtakes_it() {
    let mut engine = engine(10, 50);
    engine.submit(Duration::ZERO, request(1, 1, 32, 3)).unwrap();
    plan(&mut engine);
    end(&mut engine);
    engine.submit(Duration::ZERO, request(2, 2, 150, 1)).unwrap();
    engine.submit(Duration::ZERO, request(3, 3, 10, 1)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 1)]);
    assert_eq!(engine.statistics().waiting, 2);
    end(&mut engine);
    plan(&mut engine);
    end(&mut engine);
    assert_eq!(plan(&mut engine), [(2, 50)]);
}

#[test]
fn found_blocks_that_are_free_count_as_room_needed() {
    let mut engine = engine(4, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 48, 1)).unwrap();
    finish(&mut engine);
    engine.submit(Duration::ZERO, request(2, 2, 16, 10)).unwrap();
    plan(&mut engine);
    end(&mut engine);
    // Three cached blocks are free, and it needs them and one more; only one running request holds the other.
    engine.submit(Duration::ZERO, request(3, 1, 64, 1)).unwrap();
    assert_eq!(plan(&mut engine), [(2, 1)]);
    assert_eq!(engine.statistics().prefix_cache_queries, 48 + 16, "a lookup that leads to nothing is not counted");
}

#[test]
fn the_least_recently_used_chain_is_evicted_tail_first() {
    let mut engine = engine(6, 8_192);
    for (id, content) in [(1, 1), (2, 2), (3, 1)] {
        engine.submit(Duration::ZERO, request(id, content, 48, 1)).unwrap();
        finish(&mut engine);
    }
    // The third request overwrote the oldest free block: its own tail, which it computed again.
    engine.submit(Duration::ZERO, request(4, 3, 16, 1)).unwrap();
    finish(&mut engine);
    let cached = |engine: &mut Engine, content| {
        let mut sequence = Sequence::new(request(9, content, 49, 1));
        sequence.find_cached(&engine.pool);
        sequence.computed
    };
    assert_eq!(cached(&mut engine, 1), 48);
    assert_eq!(cached(&mut engine, 2), 32);
    assert_eq!(engine.statistics().evicted_blocks, 2);
}

#[test]
fn an_aborted_request_frees_everything_wherever_it_is() {
    let mut engine = engine(100, 60);
    for id in 1..=3 {
        engine.submit(Duration::ZERO, request(id, id, 50, 9)).unwrap();
    }
    engine.submit(Duration::from_secs(9), request(4, 4, 50, 9)).unwrap();
    assert_eq!(plan(&mut engine), [(1, 50), (2, 10)]);
    assert!(engine.abort(RequestId(4)), "on its way");
    assert!(engine.abort(RequestId(3)), "waiting");
    assert!(engine.abort(RequestId(2)), "running, in a step");
    let statistics = engine.statistics();
    assert_eq!((statistics.arriving, statistics.waiting, statistics.used_blocks), (0, 0, 5));
    assert_eq!(end(&mut engine), [first(1, 0)]);
    assert_eq!(engine.statistics().used_blocks, 4);
    assert!(engine.abort(RequestId(1)), "running, between steps");
    let statistics = engine.statistics();
    assert_eq!((statistics.running, statistics.used_blocks, statistics.aborted), (0, 0, 4));
    assert!(!engine.abort(RequestId(1)), "gone");
    assert_eq!(finish(&mut engine), []);
}

#[test]
fn what_an_aborted_request_computed_stays_cached() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 64, 9)).unwrap();
    plan(&mut engine);
    engine.abort(RequestId(1));
    assert_eq!(end(&mut engine), []);
    engine.submit(Duration::ZERO, request(2, 1, 65, 1)).unwrap();
    assert_eq!(finish(&mut engine)[0], first(2, 64));
}

#[test]
fn an_id_can_be_used_again_while_its_aborted_request_still_leaves() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 64, 1)).unwrap();
    plan(&mut engine);
    engine.abort(RequestId(1));
    engine.submit(Duration::ZERO, request(1, 2, 64, 2)).unwrap();
    assert_eq!(end(&mut engine), []);
    assert_eq!(finish(&mut engine), [first(1, 0), token(1), finished(1, 0)]);
}

#[test]
fn a_request_that_is_aborted_after_its_preemption_has_no_event() {
    let mut engine = engine(4, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 32, 2)).unwrap();
    engine.submit(Duration::ZERO, request(2, 2, 32, 2)).unwrap();
    plan(&mut engine);
    end(&mut engine);
    plan(&mut engine);
    engine.abort(RequestId(2));
    assert_eq!(end(&mut engine), [token(1), finished(1, 0)]);
}

#[test]
fn a_request_without_output_finishes_when_its_prompt_is_computed() {
    let mut engine = engine(100, 40);
    engine.submit(Duration::ZERO, request(1, 1, 64, 0)).unwrap();
    assert_eq!(finish(&mut engine), [finished(1, 0)]);
    let statistics = engine.statistics();
    assert_eq!((statistics.steps, statistics.prompt_tokens, statistics.generation_tokens), (2, 64, 0));
}

#[test]
fn what_can_never_run_is_refused() {
    let mut engine = engine(4, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 60, 5)).unwrap();
    let refused = engine.submit(Duration::ZERO, request(2, 2, 60, 6)).unwrap_err();
    assert_eq!(refused, Refused::NeverFits { id: RequestId(2), needed_tokens: 80, capacity_tokens: 64 });
    assert_eq!(
        refused.to_string(),
        "request 2: prompt and output need 80 tokens of KV cache, the engine has 64; \
         shorten the prompt or ask for fewer output tokens"
    );
    let empty = engine.submit(Duration::ZERO, request(2, 2, 0, 6));
    assert_eq!(empty, Err(Refused::EmptyPrompt { id: RequestId(2) }));
    let double = engine.submit(Duration::ZERO, request(1, 2, 10, 6));
    assert_eq!(double, Err(Refused::DuplicateId { id: RequestId(1) }));
    finish(&mut engine);
    assert_eq!(engine.submit(Duration::ZERO, request(1, 2, 10, 6)), Ok(()));
}

#[test]
fn a_request_arrives_after_overhead_and_tokenization_and_a_short_one_overtakes() {
    let mut engine = Engine::new(Profile::default());
    engine.submit(Duration::from_millis(100), request(1, 1, 5_000, 1)).unwrap();
    engine.submit(Duration::from_millis(102), request(2, 2, 1_000, 1)).unwrap();
    assert_eq!(engine.next_arrival(), Some(Duration::from_millis(124)));
    assert_eq!(engine.begin_step(Duration::from_millis(123)), None);
    assert_eq!(engine.statistics().arriving, 2);
    let end = engine.begin_step(Duration::from_millis(124)).unwrap();
    assert_eq!(engine.statistics().arriving, 1);
    assert_eq!(engine.next_arrival(), Some(Duration::from_millis(126)));
    assert_eq!(engine.begin_step(Duration::from_millis(125)), Some(end), "a running step is not planned again");
    assert_eq!(engine.statistics().arriving, 1);
}

#[test]
fn a_step_lasts_as_long_as_its_contents_say() {
    let mut engine = engine(1_000, 8_192);
    engine.submit(Duration::ZERO, request(1, 1, 3_000, 9)).unwrap();
    engine.begin_step(Duration::ZERO);
    end(&mut engine);
    engine.submit(Duration::ZERO, request(2, 2, 2_000, 9)).unwrap();
    let begin = Duration::from_secs(5);
    let end = engine.begin_step(begin).unwrap();
    let work = crate::step_time::StepWork { tokens: 2_001, prefill_pairs: 2e6, decode_context: 3_001 };
    assert_eq!(end - begin, Profile::default().step_duration(&work));
    engine.end_step(&mut Vec::new());
    assert_eq!(engine.statistics().steps, 2);
    assert!(engine.statistics().busy > end - begin);
}

#[test]
fn statistics_count_in_tokens() {
    let mut engine = engine(100, 8_192);
    engine.submit(Duration::ZERO, request(1, 7, 64, 5)).unwrap();
    plan(&mut engine);
    assert!((engine.statistics().kv_usage() - 0.04).abs() < 1e-9);
    finish(&mut engine);
    engine.submit(Duration::ZERO, request(2, 7, 100, 1)).unwrap();
    finish(&mut engine);
    let statistics = engine.statistics();
    assert_eq!((statistics.prefix_cache_queries, statistics.prefix_cache_hits), (164, 64));
    assert_eq!((statistics.prompt_tokens, statistics.generation_tokens), (164, 6));
    assert_eq!((statistics.finished, statistics.kv_usage()), (2, 0.0));
}
