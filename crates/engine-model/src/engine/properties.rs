//! What holds under any interleaving of submissions, aborts and steps.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{engine, request};
use super::*;

#[derive(Debug, Clone)]
enum Action {
    /// Contents are few, so that requests share beginnings.
    Submit {
        content: u64,
        prompt: u32,
        output: u32,
    },
    Abort(prop::sample::Index),
    Begin,
    End,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..5_u64, 1..200_u32, 0..60_u32).prop_map(|(content, prompt, output)| Action::Submit { content, prompt, output }),
        1 => any::<prop::sample::Index>().prop_map(Action::Abort),
        6 => Just(Action::Begin),
        6 => Just(Action::End),
    ]
}

/// What a driver knows of its requests.
#[derive(Debug, Default)]
struct Driver {
    submitted: BTreeMap<RequestId, EngineRequest>,
    aborted: Vec<RequestId>,
    events: Vec<Event>,
    now: Duration,
    step_end: Option<Duration>,
}

impl Driver {
    fn act(&mut self, engine: &mut Engine, action: &Action) {
        match *action {
            Action::Submit { content, prompt, output } => {
                let request = request(self.submitted.len() as u64, content, prompt, output);
                if engine.submit(self.now, request.clone()).is_ok() {
                    self.submitted.insert(request.id, request);
                }
            }
            Action::Abort(index) if !self.submitted.is_empty() => {
                let id = RequestId(index.index(self.submitted.len()) as u64);
                let before = self.events.len();
                if engine.abort(id) {
                    self.aborted.push(id);
                    assert_eq!(self.events.len(), before);
                }
            }
            Action::Abort(_) => {}
            Action::Begin => self.step_end = engine.begin_step(self.now),
            Action::End => {
                self.now = self.step_end.take().unwrap_or(self.now + Duration::from_millis(1));
                engine.end_step(&mut self.events);
            }
        }
    }

    /// Lets everything that was submitted come to its end.
    fn finish(&mut self, engine: &mut Engine) {
        for _ in 0..100_000 {
            self.step_end = engine.begin_step(self.now);
            match (self.step_end, engine.next_arrival()) {
                (Some(_), _) => self.act(engine, &Action::End),
                (None, Some(arrival)) => self.now = arrival,
                (None, None) => return,
            }
            engine.assert_consistent();
        }
        panic!("the engine does not come to an end: {engine:?}");
    }

    /// Each request has all its tokens, in order, and one end; an aborted one has no end.
    fn assert_nothing_is_lost(&self) {
        for (&id, request) in &self.submitted {
            let mut tokens = 0;
            let mut finished = false;
            let mut cached = None;
            for event in &self.events {
                assert!(!finished || *event != Event::Token { id });
                match *event {
                    Event::FirstToken { id: of, cached_tokens } if of == id => {
                        assert_eq!(tokens, 0);
                        tokens = 1;
                        cached = Some(cached_tokens);
                    }
                    Event::Token { id: of } if of == id => {
                        assert!(tokens > 0);
                        tokens += 1;
                    }
                    Event::Finished { id: of, cached_tokens } if of == id => {
                        assert!(!finished);
                        finished = true;
                        assert_eq!(*cached.get_or_insert(cached_tokens), cached_tokens);
                        assert_eq!(cached_tokens % BLOCK_TOKENS, 0);
                        assert!(cached_tokens < request.prompt_tokens);
                    }
                    _ => {}
                }
            }
            assert_eq!(finished, !self.aborted.contains(&id), "{id:?}");
            assert!(if finished { tokens == request.output_tokens } else { tokens <= request.output_tokens });
        }
    }
}

/// A small engine: at most 16 blocks, so that requests take blocks from each other, and prompts need several steps.
fn small_engine(visibility: BlockVisibility) -> Engine {
    let mut engine = engine(16, 96);
    engine.max_running = 6;
    engine.profile.block_visibility = visibility;
    engine.profile.overhead_before = Duration::from_millis(21);
    engine
}

fn visibility() -> impl Strategy<Value = BlockVisibility> {
    prop_oneof![Just(BlockVisibility::AfterStep), Just(BlockVisibility::WhenScheduled)]
}

proptest! {
    #[test]
    fn blocks_are_conserved_and_no_request_is_lost(
        actions in prop::collection::vec(action(), 1..150),
        visibility in visibility(),
    ) {
        let mut engine = small_engine(visibility);
        let mut driver = Driver::default();
        for action in &actions {
            driver.act(&mut engine, action);
            engine.assert_consistent();
            let statistics = engine.statistics();
            prop_assert_eq!(statistics.used_blocks + engine.pool.free(), 16);
        }
        driver.finish(&mut engine);
        driver.assert_nothing_is_lost();

        let statistics = engine.statistics();
        prop_assert_eq!(statistics.used_blocks, 0);
        prop_assert_eq!((statistics.arriving, statistics.waiting, statistics.running), (0, 0, 0));
        prop_assert_eq!(statistics.finished + statistics.aborted, driver.submitted.len() as u64);
        prop_assert!(statistics.prefix_cache_hits <= statistics.prefix_cache_queries);
        let preempted = driver.events.iter().filter(|event| matches!(event, Event::Preempted { .. })).count() as u64;
        prop_assert!(preempted <= statistics.preemptions);
    }

    #[test]
    fn equal_inputs_give_equal_events(actions in prop::collection::vec(action(), 1..150)) {
        let run = || {
            let mut engine = small_engine(BlockVisibility::AfterStep);
            let mut driver = Driver::default();
            actions.iter().for_each(|action| driver.act(&mut engine, action));
            driver.finish(&mut engine);
            (driver.events, driver.now, engine.statistics())
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn no_step_exceeds_its_budget(actions in prop::collection::vec(action(), 1..150)) {
        let mut engine = small_engine(BlockVisibility::AfterStep);
        let mut driver = Driver::default();
        for action in &actions {
            driver.act(&mut engine, action);
            prop_assert!(engine.running.iter().map(|sequence| sequence.planned).sum::<u32>() <= 96);
        }
    }
}
