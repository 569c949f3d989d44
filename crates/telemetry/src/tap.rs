//! What finished requests leave for whoever watches the router: keys for the hot prefixes, and a few requests whole. It
//! never makes a request wait: what finds the tap busy or full is not told.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_core::{Decision, InstanceId, PrefixKey};
use parking_lot::Mutex;

use crate::Outcome;

/// How many keys may wait to be taken. Taken once a second, a busier router is sampled.
const KEYS: usize = 4_096;

/// How many requests may wait whole.
const REQUESTS: usize = 20;

/// The key of a finished request, and what it found.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedKey {
    /// The key of its prefix.
    pub key: PrefixKey,
    /// Its endpoint.
    pub endpoint: Arc<str>,
    /// Its variant.
    pub variant: Arc<str>,
    /// Where it was served.
    pub instance: InstanceId,
    /// Tokens of its prompt and how many were cached, where the engine said both.
    pub cached_of_prompt: Option<(u64, u64)>,
    /// From its arrival to its end.
    pub duration: Duration,
}

/// A finished request, as it is shown to people.
#[derive(Debug, Clone)]
pub struct WatchedRequest {
    /// When it ended.
    pub time: SystemTime,
    /// Its id.
    pub request_id: Arc<str>,
    /// Its endpoint.
    pub endpoint: Arc<str>,
    /// Its variant.
    pub variant: Arc<str>,
    /// The model that it named.
    pub model: Option<Arc<str>>,
    /// Its status.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Where it went and why.
    pub decision: Decision,
    /// From its arrival to its first generated token.
    pub time_to_first_token: Option<Duration>,
    /// From its arrival to its end.
    pub duration: Duration,
    /// Tokens of its prompt.
    pub prompt_tokens: Option<u64>,
    /// How many of them were cached.
    pub cached_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
}

/// What was taken from the tap.
#[derive(Debug, Default)]
pub struct Tapped {
    /// Keys in the order in which their requests ended.
    pub keys: Vec<WatchedKey>,
    /// The first requests since it was last taken from.
    pub requests: Vec<WatchedRequest>,
}

/// Where finished requests leave what is to be seen of them.
#[derive(Debug, Default)]
pub struct Tap {
    waiting: Mutex<Tapped>,
}

impl Tap {
    /// Leaves a finished request's key, and the request itself while there are few.
    ///
    /// Costs an uncontended try of a lock and nothing more where the tap is full or another thread is at it.
    pub fn leave(&self, key: impl FnOnce() -> Option<WatchedKey>, request: impl FnOnce() -> Option<WatchedRequest>) {
        let Some(mut waiting) = self.waiting.try_lock() else { return };
        if waiting.keys.len() < KEYS {
            waiting.keys.extend(key());
        }
        if waiting.requests.len() < REQUESTS {
            waiting.requests.extend(request());
        }
    }

    /// Takes what was left.
    pub fn take(&self) -> Tapped {
        std::mem::take(&mut *self.waiting.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u128) -> WatchedKey {
        WatchedKey {
            key: PrefixKey::from_u128(number),
            endpoint: "chat".into(),
            variant: "a".into(),
            instance: InstanceId::new("i"),
            cached_of_prompt: None,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn what_is_left_is_taken_once_in_order() {
        let tap = Tap::default();
        tap.leave(|| Some(key(1)), || None);
        tap.leave(|| None, || None);
        tap.leave(|| Some(key(2)), || None);
        let keys: Vec<u128> = tap.take().keys.iter().map(|watched| watched.key.as_u128()).collect();
        assert_eq!(keys, [1, 2]);
        assert!(tap.take().keys.is_empty());
    }

    #[test]
    fn a_tap_that_nobody_takes_from_stays_bounded() {
        let tap = Tap::default();
        for number in 0..2 * KEYS as u128 {
            tap.leave(|| Some(key(number)), || None);
        }
        assert_eq!(tap.take().keys.len(), KEYS);
    }

    #[test]
    fn whoever_finds_the_tap_busy_goes_on() {
        let tap = Tap::default();
        let busy = tap.waiting.lock();
        tap.leave(|| Some(key(1)), || None);
        drop(busy);
        assert!(tap.take().keys.is_empty());
    }
}
