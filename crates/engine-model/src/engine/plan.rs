//! Plans what one step computes: running requests first, then waiting ones, within one budget of tokens.
//!
//! The rules are those of vLLM's `Scheduler.schedule` with first come, first served, chunked prefill on and no
//! watermark: who runs keeps running; who lacks blocks takes them from the request that was admitted last; a waiting
//! request is admitted only if its whole prompt fits (`scheduler_reserve_full_isl`), and nobody overtakes the first in
//! the queue.

use super::{Engine, Sequence};
use crate::profile::BlockVisibility;
use crate::step_time::StepWork;

impl Engine {
    /// Plans the next step. Nothing to compute gives work without tokens.
    pub(super) fn plan(&mut self) -> StepWork {
        let mut work = StepWork::default();
        let preempted = self.plan_running(&mut work);
        if !preempted {
            self.admit_waiting(&mut work);
        }
        work
    }

    /// Gives each running request its tokens, in the order of admission. Returns whether one was preempted.
    ///
    /// Decoding requests come before a partial prefill by that order alone: a prefill stays partial only when it used
    /// up the budget, and then nobody was admitted behind it.
    fn plan_running(&mut self, work: &mut StepWork) -> bool {
        let mut preempted = false;
        let mut index = 0;
        while index < self.running.len() && work.tokens < self.token_budget {
            let sequence = &self.running[index];
            let tokens = sequence.missing().min(self.token_budget - work.tokens);
            let lacking = sequence.lacking_blocks(sequence.computed + tokens);
            while lacking > self.pool.free() && index < self.running.len() {
                self.preempt_last();
                preempted = true;
            }
            let Some(sequence) = self.running.get_mut(index) else { break };
            self.pool.allocate(lacking, &mut sequence.blocks);
            plan_tokens(sequence, tokens, work);
            if self.profile.block_visibility == BlockVisibility::WhenScheduled {
                sequence.store_full_blocks(sequence.computed + tokens, &mut self.pool);
            }
            index += 1;
        }
        preempted
    }

    /// Takes the blocks of the request that was admitted last. It goes back to the head of the queue and computes
    /// everything again, but for what it finds in the cache then.
    fn preempt_last(&mut self) {
        let Some(mut sequence) = self.running.pop() else { return };
        sequence.release_blocks(&mut self.pool);
        self.counters.preemptions += 1;
        self.preempted.push(sequence.id);
        self.waiting.push_front(sequence);
    }

    fn admit_waiting(&mut self, work: &mut StepWork) {
        while work.tokens < self.token_budget && self.running.len() < self.max_running {
            let Some(sequence) = self.waiting.front_mut() else { break };
            sequence.find_cached(&self.pool);
            let needed = sequence.lacking_blocks(sequence.known()) + self.pool.count_free(&sequence.blocks);
            if needed > self.pool.free() {
                sequence.forget_found();
                break;
            }
            let Some(mut sequence) = self.waiting.pop_front() else { break };
            self.count_lookup(&mut sequence);
            let tokens = sequence.missing().min(self.token_budget - work.tokens);
            self.pool.hold(&sequence.blocks);
            self.pool.allocate(sequence.lacking_blocks(sequence.computed + tokens), &mut sequence.blocks);
            plan_tokens(&mut sequence, tokens, work);
            if self.profile.block_visibility == BlockVisibility::WhenScheduled {
                sequence.store_full_blocks(sequence.computed + tokens, &mut self.pool);
            }
            self.running.push(sequence);
        }
    }

    /// Counts a lookup where vLLM counts it: at admission, so a request that waits for room is not counted on every
    /// try; apart when it is admitted for the second time.
    fn count_lookup(&mut self, sequence: &mut Sequence) {
        let (queries, hits) = (u64::from(sequence.known()), u64::from(sequence.computed));
        if sequence.cached_tokens.is_none() {
            sequence.cached_tokens = Some(sequence.computed);
            self.counters.prefix_cache_queries += queries;
            self.counters.prefix_cache_hits += hits;
        } else {
            self.counters.preempted_queries += queries;
            self.counters.preempted_hits += hits;
        }
    }
}

fn plan_tokens(sequence: &mut Sequence, tokens: u32, work: &mut StepWork) {
    sequence.planned = tokens;
    work.add(tokens, sequence.computed);
}
