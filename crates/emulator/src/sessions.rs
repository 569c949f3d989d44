//! The stateful sessions that an emulator has begun as a container of SageMaker's: which there are, and until when.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

/// The most that are kept; the oldest ends first.
const MOST: usize = 10_000;

/// Sessions by id.
#[derive(Debug)]
pub(crate) struct Sessions {
    lifetime: Duration,
    ends: HashMap<String, SystemTime>,
    /// Ids as they were begun, so as they end; may name closed ones.
    order: VecDeque<String>,
}

impl Sessions {
    /// None yet; each will end so long after it was begun.
    pub(crate) fn lasting(lifetime: Duration) -> Self {
        Self { lifetime, ends: HashMap::new(), order: VecDeque::new() }
    }

    /// Begins one, and tells when it ends by itself.
    pub(crate) fn begin(&mut self, id: &str, now: SystemTime) -> SystemTime {
        while let Some(oldest) = self.order.front()
            && (self.order.len() >= MOST || self.ends.get(oldest).is_none_or(|&end| end <= now))
        {
            self.ends.remove(oldest);
            self.order.pop_front();
        }
        let end = now + self.lifetime;
        self.ends.insert(id.to_owned(), end);
        self.order.push_back(id.to_owned());
        end
    }

    /// Whether it was begun here, and is not over.
    pub(crate) fn has(&self, id: &str, now: SystemTime) -> bool {
        self.ends.get(id).is_some_and(|&end| end > now)
    }

    /// Ends it.
    pub(crate) fn close(&mut self, id: &str) {
        self.ends.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_there_until_it_is_over_or_closed() {
        let (begun, second) = (SystemTime::UNIX_EPOCH, Duration::from_secs(1));
        let mut sessions = Sessions::lasting(2 * second);
        assert_eq!(sessions.begin("a", begun), begun + 2 * second);
        sessions.begin("b", begun);
        assert!(sessions.has("a", begun + second) && !sessions.has("a", begun + 2 * second));
        sessions.close("b");
        assert!(!sessions.has("b", begun));
    }

    #[test]
    fn no_more_are_kept_than_fit() {
        let mut sessions = Sessions::lasting(Duration::from_secs(60));
        let now = SystemTime::UNIX_EPOCH;
        for number in 0..=MOST {
            sessions.begin(&number.to_string(), now);
        }
        assert!(!sessions.has("0", now) && sessions.has("1", now));
        sessions.begin("later", now + Duration::from_secs(60));
        assert_eq!((sessions.ends.len(), sessions.order.len()), (1, 1), "what is over is dropped");
    }
}
