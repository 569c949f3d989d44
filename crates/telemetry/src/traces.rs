//! The last requests with the hashes of their prompts, for whoever asks why one missed. Off unless it is turned on; never
//! makes a request wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use isotherm_core::{Decision, InstanceId, Time};
use parking_lot::Mutex;

use crate::{Outcome, Trail};

/// A request that was placed, with its prompt as hashes.
#[derive(Debug, PartialEq)]
pub struct TracedRequest {
    /// When it arrived, by the clock of decisions.
    pub arrived: Time,
    /// When it arrived, by the wall clock.
    pub time: SystemTime,
    /// Its id.
    pub request_id: Arc<str>,
    /// Its endpoint.
    pub endpoint: Arc<str>,
    /// Its variant.
    pub variant: Arc<str>,
    /// The model that it named.
    pub model: Option<Arc<str>>,
    /// Where it goes first; `None` while it waits for room.
    pub chosen: Option<InstanceId>,
    /// Its prompt.
    pub trail: Trail,
    ended: OnceLock<Ended>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// When, by the clock of decisions.
    pub at: Time,
    /// Its status.
    pub status: u16,
    /// How.
    pub outcome: Outcome,
    /// The last decision, where there was one.
    pub decision: Option<Decision>,
    /// How long it waited for room.
    pub queued: Option<Duration>,
    /// From its arrival to its first generated token.
    pub time_to_first_token: Option<Duration>,
    /// Tokens of its prompt.
    pub prompt_tokens: Option<u64>,
    /// How many of them were cached.
    pub cached_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
    /// The id of its response.
    pub response_id: Option<Box<str>>,
}

impl TracedRequest {
    /// A request that goes its way now.
    pub fn new(
        (arrived, time): (Time, SystemTime),
        request_id: Arc<str>,
        (endpoint, variant): (Arc<str>, Arc<str>),
        model: Option<Arc<str>>,
        chosen: Option<InstanceId>,
        trail: Trail,
    ) -> TracedRequest {
        TracedRequest { arrived, time, request_id, endpoint, variant, model, chosen, trail, ended: OnceLock::new() }
    }

    /// Notes how it ended. The first word stands.
    pub fn end(&self, ended: Ended) {
        let _ = self.ended.set(ended);
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<&Ended> {
        self.ended.get()
    }

    fn size(&self) -> usize {
        size_of::<TracedRequest>() + size_of::<Ended>() + self.trail.size()
    }
}

/// The last requests, within a budget of bytes, and how many a second are taken in.
#[derive(Debug, Default)]
pub struct Traces {
    kept: Mutex<Kept>,
    budget: AtomicUsize,
    per_second: AtomicU32,
    /// The second, and how many were wanted in it.
    window: AtomicU64,
    missed: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    newest_last: VecDeque<Arc<TracedRequest>>,
    bytes: usize,
    /// How many were ever taken in.
    taken: u64,
}

/// The requests that were taken in since someone looked last.
#[derive(Debug, Default)]
pub struct Fresh {
    /// How many were ever taken in: where to go on from.
    pub taken: u64,
    /// Oldest first; those that are not kept any more are missing.
    pub requests: Vec<Arc<TracedRequest>>,
}

impl Traces {
    /// Turns it on, with so many bytes and so many requests a second; off with none.
    pub fn set(&self, budget: usize, per_second: u32) {
        self.budget.store(budget, Ordering::Relaxed);
        self.per_second.store(per_second, Ordering::Relaxed);
        if per_second == 0 {
            let mut kept = self.kept.lock();
            // How many were taken in stays, for whoever goes on from there.
            *kept = Kept { taken: kept.taken, ..Kept::default() };
        }
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.per_second.load(Ordering::Relaxed) > 0
    }

    /// Whether a request that arrives now is wanted. One that is not is counted as missed.
    pub fn wants(&self, now: Time) -> bool {
        let second = now.as_nanoseconds() / 1_000_000_000;
        let most = self.per_second.load(Ordering::Relaxed);
        if most == 0 {
            return false;
        }
        // Threads may race at the turn of a second; one or two more or fewer are no matter.
        let window = self.window.load(Ordering::Relaxed);
        let (window_second, count) = (window >> 32, window as u32);
        if window_second != second & 0xffff_ffff {
            self.window.store((second & 0xffff_ffff) << 32 | 1, Ordering::Relaxed);
            return true;
        }
        let wanted = count < most;
        let counter = if wanted { &self.window } else { &self.missed };
        counter.fetch_add(1, Ordering::Relaxed);
        wanted
    }

    /// Takes a request in; the oldest beyond the budget are forgotten. Missed where another thread is at it.
    pub fn leave(&self, request: &Arc<TracedRequest>) {
        let Some(mut kept) = self.kept.try_lock() else {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        kept.bytes += request.size();
        kept.taken += 1;
        kept.newest_last.push_back(Arc::clone(request));
        let budget = self.budget.load(Ordering::Relaxed);
        while kept.bytes > budget
            && let Some(oldest) = kept.newest_last.pop_front()
        {
            kept.bytes -= oldest.size();
        }
    }

    /// The request of a tenant that was answered with a response of this id, the last one if there are several.
    pub fn of_response(&self, tenant: u64, id: &str) -> Option<Arc<TracedRequest>> {
        let kept = self.kept.lock();
        let is_it = |request: &&Arc<TracedRequest>| {
            request.trail.tenant == tenant
                && request.ended().is_some_and(|ended| ended.response_id.as_deref() == Some(id))
        };
        kept.newest_last.iter().rev().find(is_it).cloned()
    }

    /// How many requests were not taken in since it was turned on.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// The requests since the one of this number.
    pub fn since(&self, taken: u64) -> Fresh {
        let kept = self.kept.lock();
        let new = usize::try_from(kept.taken.saturating_sub(taken)).unwrap_or(usize::MAX);
        let from = kept.newest_last.len().saturating_sub(new);
        Fresh { taken: kept.taken, requests: kept.newest_last.range(from..).cloned().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str) -> Arc<TracedRequest> {
        let names = ("chat".into(), "a".into());
        let moment = (Time::ZERO, SystemTime::UNIX_EPOCH);
        Arc::new(TracedRequest::new(moment, id.into(), names, None, None, Trail::default()))
    }

    fn ids(fresh: &Fresh) -> Vec<&str> {
        fresh.requests.iter().map(|request| &*request.request_id).collect()
    }

    #[test]
    fn the_newest_are_kept_within_the_budget_and_told_once() {
        let traces = Traces::default();
        traces.set(3 * request("").size(), 10);
        ["a", "b", "c", "d"].map(request).iter().for_each(|request| traces.leave(request));
        let all = traces.since(0);
        assert_eq!((ids(&all), all.taken), (vec!["b", "c", "d"], 4));
        traces.leave(&request("e"));
        assert_eq!(ids(&traces.since(all.taken)), ["e"]);
        traces.set(0, 0);
        assert!(traces.since(0).requests.is_empty() && !traces.wants(Time::ZERO));
        assert_eq!(traces.since(0).taken, 5, "whoever reads on never goes back");
    }

    #[test]
    fn so_many_a_second_are_wanted_and_the_others_counted() {
        let traces = Traces::default();
        assert!(!traces.wants(Time::ZERO), "off until it is turned on");
        traces.set(1 << 20, 2);
        let at = |millis| Time::from_elapsed(Duration::from_millis(millis));
        let wanted = [1_000, 1_100, 1_200, 1_300, 2_000].map(|millis| traces.wants(at(millis)));
        assert_eq!((wanted, traces.missed()), ([true, true, false, false, true], 2));
    }

    #[test]
    fn a_request_ends_once() {
        let traced = request("a");
        assert!(traced.ended().is_none());
        let ended = |status| Ended {
            at: Time::ZERO,
            status,
            outcome: Outcome::Ok,
            decision: None,
            queued: None,
            time_to_first_token: None,
            prompt_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            response_id: None,
        };
        traced.end(ended(200));
        traced.end(ended(499));
        assert_eq!(traced.ended().map(|ended| ended.status), Some(200));
    }
}
