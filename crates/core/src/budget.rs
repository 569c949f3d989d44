//! The budget of resends: a bucket that keeps retries from multiplying an outage.

use crate::Time;

/// One resend, in the millionths that the bucket counts.
const RESEND: u64 = 1_000_000;
const PER_REQUEST: u64 = RESEND / 5;
const NANOSECONDS_PER_MILLIONTH: u64 = 1_000_000_000 / (10 * RESEND);
const LEAST_CAPACITY: u64 = 100 * RESEND;
const WINDOW_SECONDS: usize = 10;

/// Gains 0.2 resends per request and 10 per second, starts full, and holds the greater of 100 and 20 % of the requests
/// of the last 10 seconds.
///
/// The ratio and the floor are those of linkerd's and Finagle's retry budgets.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    millionths: u64,
    refilled: Time,
    /// Requests in each of the last seconds, by second modulo the window.
    requests: [u32; WINDOW_SECONDS],
    second: u64,
}

impl RetryBudget {
    /// A full bucket.
    pub fn new(now: Time) -> RetryBudget {
        RetryBudget {
            millionths: LEAST_CAPACITY,
            refilled: now,
            requests: [0; WINDOW_SECONDS],
            second: now.as_nanoseconds() / 1_000_000_000,
        }
    }

    /// Counts a request of a client.
    pub fn count_request(&mut self, now: Time) {
        self.advance(now);
        let slot = (self.second % WINDOW_SECONDS as u64) as usize;
        self.requests[slot] = self.requests[slot].saturating_add(1);
        self.millionths = (self.millionths + PER_REQUEST).min(self.capacity());
    }

    /// Takes one resend out of the bucket; false when there is none.
    pub fn withdraw(&mut self, now: Time) -> bool {
        self.advance(now);
        match self.millionths.checked_sub(RESEND) {
            Some(left) => {
                self.millionths = left;
                true
            }
            None => false,
        }
    }

    fn advance(&mut self, now: Time) {
        let gained = now.since(self.refilled).as_nanos() as u64 / NANOSECONDS_PER_MILLIONTH;
        self.refilled = self.refilled.max(now);
        let second = self.refilled.as_nanoseconds() / 1_000_000_000;
        for passed in (self.second + 1..=second).take(WINDOW_SECONDS) {
            self.requests[(passed % WINDOW_SECONDS as u64) as usize] = 0;
        }
        self.second = second;
        self.millionths = self.millionths.saturating_add(gained).min(self.capacity());
    }

    fn capacity(&self) -> u64 {
        let requests: u64 = self.requests.iter().map(|&n| u64::from(n)).sum();
        LEAST_CAPACITY.max(PER_REQUEST * requests)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Duration::from_millis(milliseconds)
    }

    fn drain(budget: &mut RetryBudget, now: Time) -> u32 {
        (0..).take_while(|_| budget.withdraw(now)).count() as u32
    }

    #[test]
    fn it_starts_full_and_gains_ten_a_second() {
        let mut budget = RetryBudget::new(at(0));
        assert_eq!(drain(&mut budget, at(0)), 100);
        assert_eq!(drain(&mut budget, at(500)), 5);
        assert_eq!(drain(&mut budget, at(60_000)), 100, "never above its capacity");
    }

    #[test]
    fn it_gains_one_resend_in_five_requests() {
        let mut budget = RetryBudget::new(at(0));
        drain(&mut budget, at(0));
        for _ in 0..50 {
            budget.count_request(at(0));
        }
        assert_eq!(drain(&mut budget, at(0)), 10);
    }

    #[test]
    fn its_capacity_follows_the_requests_of_the_last_ten_seconds() {
        let mut budget = RetryBudget::new(at(0));
        for i in 0..10_000 {
            budget.count_request(at(i));
        }
        let held = drain(&mut budget.clone(), at(9_999));
        assert!((1_990..=2_000).contains(&held), "{held}");
        assert_eq!(drain(&mut budget, at(60_000)), 100);
    }

    #[test]
    fn the_window_goes_on_with_the_clock() {
        let mut budget = RetryBudget::new(at(0));
        for i in 0..10_000 {
            budget.count_request(at(123_456 + i));
        }
        assert!((1_800..=2_000).contains(&drain(&mut budget.clone(), at(133_455))));
        // Five of the ten seconds' requests lie outside it.
        assert!((800..=1_000).contains(&drain(&mut budget.clone(), at(138_456))));
        assert_eq!(drain(&mut budget, at(143_456)), 100);
    }

    #[test]
    fn a_retry_storm_is_bounded() {
        let mut budget = RetryBudget::new(at(0));
        let mut resends = 0;
        for i in 0..30_000 {
            budget.count_request(at(i));
            resends += u32::from(budget.withdraw(at(i)));
        }
        assert!(resends <= 100 + 6_000 + 300, "{resends}");
    }
}
