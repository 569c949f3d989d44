//! Requests that instances died on, so that one that kills engines is not walked through the fleet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isotherm_core::Time;
use parking_lot::Mutex;

use crate::latest::Latest;

/// How many requests are remembered.
const CAPACITY: usize = 10_000;
/// A request on which two instances died is not tried again for this long, and for twice as long after each further
/// death: it may have stood beside the one that killed them.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause; deaths that lie further back are forgotten.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// Remembers which requests instances died on: those whose connection broke after the request was sent and before its
/// answer began. What two instances died on is not tried on a third.
///
/// Requests are known by a hash of their path and body. Shared by all threads; while nothing dies, asking costs one load.
#[derive(Debug)]
pub struct Suspects {
    any: AtomicBool,
    remembered: Mutex<Latest<Suspect>>,
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    deaths: u32,
    /// The life of the instance that died last.
    last_victim: u64,
    last_death: Time,
}

impl Default for Suspects {
    fn default() -> Suspects {
        Suspects { any: AtomicBool::new(false), remembered: Mutex::new(Latest::with_capacity(CAPACITY)) }
    }
}

impl Suspects {
    /// Whether any request is remembered, so that it is worth hashing others.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// An instance, known by the serial number of its life, died on the request of that hash.
    pub fn died(&self, request: u64, victim: u64, now: Time) {
        let mut remembered = self.remembered.lock();
        let known = remembered.get(request).filter(|known| now.since(known.last_death) <= LONGEST_PAUSE);
        let deaths = match known {
            None => 1,
            // One instance that breaks twice says more about itself.
            Some(known) if known.last_victim == victim && known.deaths == 1 => 1,
            Some(known) => known.deaths.saturating_add(1),
        };
        remembered.insert(request, Suspect { deaths, last_victim: victim, last_death: now });
        self.any.store(true, Ordering::Relaxed);
    }

    /// An instance answered the request of that hash: it is no killer.
    pub fn acquit(&self, request: u64) {
        let mut remembered = self.remembered.lock();
        remembered.remove(request);
        self.any.store(remembered.len() > 0, Ordering::Relaxed);
    }

    /// For how long the request of that hash is not to be tried; `None` when it may be.
    pub fn pause(&self, request: u64, now: Time) -> Option<Duration> {
        let suspect = self.remembered.lock().get(request)?;
        let doublings = suspect.deaths.checked_sub(2)?;
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE);
        pause.checked_sub(now.since(suspect.last_death)).filter(|left| !left.is_zero())
    }

    /// Whether instances died on the request of that hash often enough that no second one is to be tried.
    pub fn is_likely(&self, request: u64) -> bool {
        self.remembered.lock().get(request).is_some_and(|suspect| suspect.deaths >= 2)
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn what_two_instances_died_on_pauses_and_each_further_death_doubles_the_pause() {
        let suspects = Suspects::default();
        assert!(!suspects.any());
        suspects.died(7, 1, at(0));
        assert_eq!((suspects.any(), suspects.pause(7, at(0)), suspects.is_likely(7)), (true, None, false));
        suspects.died(7, 2, at(10));
        assert_eq!(suspects.pause(7, at(30)), Some(Duration::from_secs(40)));
        assert_eq!((suspects.pause(7, at(70)), suspects.is_likely(7)), (None, true));
        suspects.died(7, 2, at(80));
        assert_eq!(suspects.pause(7, at(80)), Some(Duration::from_secs(120)));
        assert_eq!(suspects.pause(8, at(80)), None);
    }

    #[test]
    fn one_instance_that_breaks_again_and_again_accuses_nobody() {
        let suspects = Suspects::default();
        for second in 0..5 {
            suspects.died(7, 1, at(second));
        }
        assert_eq!(suspects.pause(7, at(5)), None);
    }

    #[test]
    fn an_answer_acquits_and_an_hour_forgets() {
        let suspects = Suspects::default();
        for victim in [1, 2] {
            suspects.died(7, victim, at(0));
        }
        suspects.acquit(7);
        assert!(!suspects.any());
        assert_eq!(suspects.pause(7, at(1)), None);
        suspects.died(8, 1, at(0));
        suspects.died(8, 2, at(3_601));
        assert_eq!(suspects.pause(8, at(3_601)), None);
    }
}
