//! Whether an instance may be chosen, from what probes and requests tell about it.
//!
//! *Down* is a fact: nothing listens there, or probes fail. It is never chosen. *Ejected* is a suspicion: requests fail
//! there while the process is alive. It is not chosen for a while, unless suspicion has fallen on more than half.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::Time;

/// How many failed probes in a row make an instance down, where nothing else is said.
pub(crate) const PROBES_TO_DOWN: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);
/// A probe that timed out says nothing while a response byte came within this time: a long prefill is not death.
const ALIVE_AFTER_BYTE: Duration = Duration::from_secs(30);
/// Failed requests in a row that eject.
const FAILURES_TO_EJECT: u32 = 5;
/// The first ejection lasts this long, each further one twice as long as the one before.
const EJECTION: Duration = Duration::from_secs(10);
/// The longest ejection.
const LONGEST_EJECTION: Duration = Duration::from_secs(300);
/// What an instance failed with counts like so many more requests in flight there, fading with this time constant: what
/// fails at once would otherwise look idle, and draw the traffic (linkerd's load biaser does the same).
const FAILURES_FADE: f64 = 10.0;
/// An instance that is back begins with this part of its weight and has all of it after this time, so that what comes
/// home finds an instance that can take it.
const SHARE_AT_RETURN: f64 = 0.1;
/// See [`SHARE_AT_RETURN`].
const SLOW_START: Duration = Duration::from_secs(10);
/// An instance that did well for this long after an ejection starts again at the shortest.
const FORGIVEN_AFTER: Duration = Duration::from_secs(120);

/// Something that was seen of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A probe was answered well.
    ProbeAnswered,
    /// A probe failed otherwise than by time-out: refused, broken, a bad status.
    ProbeFailed,
    /// A probe was not answered in time; the last response byte of any request came at `last_byte`.
    ProbeTimedOut {
        /// When a byte of any response last came from the instance.
        last_byte: Option<Time>,
    },
    /// Nothing listens there.
    ConnectRefused,
    /// A connection was not established in time, or the way there is broken.
    ConnectFailed,
    /// A request was answered with 5xx, or its connection broke before the answer began.
    RequestFailed,
    /// A request was answered with 429: too much at once.
    RequestShed,
    /// A request's answer began well.
    RequestAnswered,
}

/// What is believed of an instance's health.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Health {
    down: bool,
    failed_probes: u32,
    failed_requests: u32,
    ejected_until: Option<Time>,
    ejections: u32,
    /// When it was last found to be up after it had been down.
    back_since: Option<Time>,
    /// How many requests failed, faded up to `faded_at`.
    failures: f64,
    faded_at: Time,
}

impl Health {
    /// Takes in what was seen at `now`; so many failed probes in a row make the instance down.
    pub(crate) fn observe(&mut self, evidence: Evidence, now: Time, probes_to_down: NonZeroU32) {
        match evidence {
            Evidence::ProbeAnswered => {
                self.failed_probes = 0;
                if std::mem::take(&mut self.down) {
                    self.back_since = Some(now);
                }
            }
            Evidence::ProbeTimedOut { last_byte: Some(byte) } if now.since(byte) < ALIVE_AFTER_BYTE => {}
            Evidence::ProbeFailed | Evidence::ProbeTimedOut { .. } => {
                self.failed_probes += 1;
                self.down |= self.failed_probes >= probes_to_down.get();
            }
            Evidence::ConnectRefused => self.down = true,
            Evidence::ConnectFailed | Evidence::RequestFailed => {
                self.count_failure(now);
                self.fail(now);
            }
            Evidence::RequestShed => self.count_failure(now),
            Evidence::RequestAnswered => {
                self.failed_requests = 0;
                if self.ejected_until.is_some_and(|until| now.since(until) >= FORGIVEN_AFTER) {
                    self.ejected_until = None;
                    self.ejections = 0;
                }
            }
        }
    }

    fn fail(&mut self, now: Time) {
        // Requests that were under way when it was ejected add nothing.
        if self.is_ejected(now) {
            return;
        }
        self.failed_requests += 1;
        if self.failed_requests >= FAILURES_TO_EJECT {
            let duration = EJECTION.saturating_mul(1 << self.ejections.min(8)).min(LONGEST_EJECTION);
            self.ejected_until = Some(now + duration);
            self.ejections += 1;
            self.failed_requests = 0;
        }
    }

    fn count_failure(&mut self, now: Time) {
        self.failures = self.penalty(now) + 1.0;
        self.faded_at = now;
    }

    /// How many requests in flight its failures count for.
    pub(crate) fn penalty(&self, now: Time) -> f64 {
        if self.failures == 0.0 {
            return 0.0;
        }
        self.failures * (-now.since(self.faded_at).as_secs_f64() / FAILURES_FADE).exp()
    }

    /// The part of its weight that counts: less than 1 for a while after it was down or ejected.
    pub(crate) fn share(&self, now: Time) -> f64 {
        let ejection_over = self.ejected_until.filter(|until| *until <= now);
        let Some(back_since) = self.back_since.max(ejection_over) else { return 1.0 };
        let passed = now.since(back_since).as_secs_f64() / SLOW_START.as_secs_f64();
        (SHARE_AT_RETURN + (1.0 - SHARE_AT_RETURN) * passed).min(1.0)
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down
    }

    pub(crate) fn is_ejected(&self, now: Time) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }
}

/// Whether an instance may be chosen, as told to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It may be chosen.
    Up,
    /// It finishes what it has and gets nothing new.
    Draining,
    /// Nothing listens there, or its probes fail.
    Down,
    /// Too many of its requests failed; not chosen before `until`.
    Ejected {
        /// When it may be chosen again.
        until: Time,
    },
}

impl Availability {
    /// The word in listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Availability::Up => "up",
            Availability::Draining => "draining",
            Availability::Down => "down",
            Availability::Ejected { .. } => "ejected",
        }
    }

    pub(crate) fn of(health: &Health, draining: bool, now: Time) -> Availability {
        match health.ejected_until {
            _ if draining => Availability::Draining,
            _ if health.down => Availability::Down,
            Some(until) if now < until => Availability::Ejected { until },
            _ => Availability::Up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Health {
        fn sees(&mut self, evidence: Evidence, now: Time) {
            self.observe(evidence, now, PROBES_TO_DOWN);
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn three_failed_probes_in_a_row_make_it_down_and_one_good_one_ends_it() {
        let mut health = Health::default();
        for _ in 0..2 {
            health.sees(Evidence::ProbeFailed, at(0));
        }
        health.sees(Evidence::ProbeAnswered, at(1));
        for _ in 0..2 {
            health.sees(Evidence::ProbeFailed, at(2));
        }
        assert!(!health.is_down());
        health.sees(Evidence::ProbeTimedOut { last_byte: None }, at(3));
        assert!(health.is_down());
        health.sees(Evidence::ProbeAnswered, at(4));
        assert!(!health.is_down());
    }

    #[test]
    fn a_refused_connection_makes_it_down_at_once() {
        let mut health = Health::default();
        health.sees(Evidence::ConnectRefused, at(0));
        assert!(health.is_down());
    }

    #[test]
    fn a_long_prefill_is_not_death() {
        let mut health = Health::default();
        for second in 100..129 {
            health.sees(Evidence::ProbeTimedOut { last_byte: Some(at(100)) }, at(second));
        }
        assert!(!health.is_down());
        for second in 130..133 {
            health.sees(Evidence::ProbeTimedOut { last_byte: Some(at(100)) }, at(second));
        }
        assert!(health.is_down());
    }

    #[test]
    fn failures_in_a_row_eject_for_twice_as_long_each_time() {
        let mut health = Health::default();
        let mut now = at(0);
        for expected in [10, 20, 40, 80, 160, 300, 300] {
            for _ in 0..5 {
                assert!(!health.is_ejected(now));
                health.sees(Evidence::RequestFailed, now);
            }
            assert!(health.is_ejected(now + Duration::from_secs(expected - 1)));
            now = now + Duration::from_secs(expected);
            assert!(!health.is_ejected(now));
        }
        assert!(!health.is_down(), "an ejected instance is not down");
    }

    #[test]
    fn who_is_back_takes_up_its_share_bit_by_bit() {
        let mut health = Health::default();
        assert_eq!(health.share(at(0)), 1.0);
        health.sees(Evidence::ConnectRefused, at(1));
        health.sees(Evidence::ProbeAnswered, at(10));
        health.sees(Evidence::ProbeAnswered, at(12));
        let shares = [10, 15, 20, 100].map(|second| health.share(at(second)));
        assert_eq!(shares, [0.1, 0.55, 1.0, 1.0]);
        for _ in 0..5 {
            health.sees(Evidence::RequestFailed, at(200));
        }
        assert_eq!([210, 215, 220].map(|second| health.share(at(second))), [0.1, 0.55, 1.0]);
    }

    #[test]
    fn failures_count_as_load_for_a_while() {
        let mut health = Health::default();
        assert_eq!(health.penalty(at(5)), 0.0);
        for evidence in [Evidence::RequestFailed, Evidence::RequestShed, Evidence::ConnectFailed] {
            health.sees(evidence, at(10));
        }
        health.sees(Evidence::RequestAnswered, at(10));
        assert_eq!(health.penalty(at(10)), 3.0);
        assert!((1.0..1.2).contains(&health.penalty(at(20))));
        assert!(health.penalty(at(100)) < 0.001);
    }

    #[test]
    fn an_answer_in_between_prevents_ejection_and_good_conduct_is_remembered() {
        let mut health = Health::default();
        for _ in 0..20 {
            for _ in 0..4 {
                health.sees(Evidence::RequestFailed, at(0));
            }
            health.sees(Evidence::RequestAnswered, at(0));
        }
        assert!(!health.is_ejected(at(0)));
        for _ in 0..5 {
            health.sees(Evidence::ConnectFailed, at(0));
        }
        assert!(health.is_ejected(at(9)));
        health.sees(Evidence::RequestAnswered, at(10 + 120));
        for _ in 0..5 {
            health.sees(Evidence::RequestFailed, at(200));
        }
        assert!(health.is_ejected(at(209)) && !health.is_ejected(at(210)), "the first ejection's length again");
    }

    #[test]
    fn people_are_told_the_gravest_of_what_keeps_an_instance_from_being_chosen() {
        let mut health = Health::default();
        let told = |health: &Health, draining, second| Availability::of(health, draining, at(second));
        assert_eq!(told(&health, false, 0), Availability::Up);
        for _ in 0..5 {
            health.sees(Evidence::RequestFailed, at(0));
        }
        assert_eq!(told(&health, false, 9), Availability::Ejected { until: at(10) });
        assert_eq!(told(&health, false, 10), Availability::Up);
        health.sees(Evidence::ConnectRefused, at(1));
        assert_eq!(told(&health, false, 9), Availability::Down);
        assert_eq!(told(&health, true, 9), Availability::Draining);
        let told = [told(&Health::default(), false, 0), told(&health, true, 9), told(&health, false, 9)];
        assert_eq!(told.map(Availability::as_str), ["up", "draining", "down"]);
        assert_eq!(Availability::Ejected { until: at(10) }.as_str(), "ejected");
    }
}
