//! What an instance has to compute before the next request: prompts without a first token yet, the oldest of them in work.
//!
//! Tokens are counted here by the work that they are: one behind a long context counts for more than one.

use std::collections::VecDeque;

use crate::Time;

/// How much the work counts that should be done by now, but has not shown itself in a first token yet: it is an estimate,
/// and work that was counted as done too early makes a long wait look like a short one.
const ESTIMATE_COUNTS: f64 = 0.7;

/// The uncached tokens that were sent to an instance, in the order in which engines compute them.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The oldest first.
    prompts: VecDeque<Part>,
    /// Tokens of them all.
    tokens: f64,
    /// Tokens that were ever sent.
    sent: f64,
    /// Since when the oldest is in work.
    since: Time,
}

#[derive(Debug)]
struct Part {
    place: Place,
    tokens: f64,
}

/// Where a prompt stands: the tokens that had ever been sent, those of the prompt included. Grows from prompt to prompt.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Place(f64);

impl Waiting {
    /// Puts a prompt of so many uncached tokens behind the others.
    pub(crate) fn push(&mut self, tokens: f64, now: Time) -> Place {
        if self.prompts.is_empty() {
            self.since = now;
        }
        self.tokens += tokens;
        self.sent += tokens;
        let place = Place(self.sent);
        self.prompts.push_back(Part { place, tokens });
        place
    }

    /// A first token has come: whatever is the oldest now is in work from now on.
    pub(crate) fn one_began(&mut self, now: Time) {
        self.since = now;
    }

    /// A prompt waits no longer: it has its first token, or will get none.
    pub(crate) fn remove(&mut self, place: Place) {
        let found = self.prompts.binary_search_by(|part| part.place.0.total_cmp(&place.0));
        let part = found.ok().and_then(|at| self.prompts.remove(at));
        // Rounding must not leave anything behind where nothing waits.
        let left = self.tokens - part.map_or(0.0, |part| part.tokens);
        self.tokens = if self.prompts.is_empty() { 0.0 } else { left.max(0.0) };
    }

    /// The instance's process is gone.
    pub(crate) fn clear(&mut self) {
        self.prompts.clear();
        self.tokens = 0.0;
    }

    /// Tokens of the prompts that wait, however much of the oldest is done.
    pub(crate) fn tokens(&self) -> f64 {
        self.tokens
    }

    /// Tokens that are left to compute before a prompt that comes now, where one takes so many milliseconds.
    ///
    /// An oldest prompt that is late has not been as fast as was believed: it counts again by as much as it is late.
    pub(crate) fn left(&self, now: Time, milliseconds_per_token: f64) -> f64 {
        let Some(oldest) = self.prompts.front() else { return 0.0 };
        let expected = milliseconds_per_token * oldest.tokens;
        let part = now.since(self.since).as_secs_f64() * 1e3 / expected;
        let done = if part <= 1.0 { part } else { (2.0 - part).max(0.0) };
        (self.tokens - ESTIMATE_COUNTS * done * oldest.tokens).max(0.0)
    }

    /// Tokens that were sent after a prompt.
    pub(crate) fn sent_after(&self, place: Place) -> f64 {
        self.sent - place.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::from_nanoseconds(milliseconds * 1_000_000)
    }

    #[test]
    fn the_oldest_is_done_bit_by_bit_and_counts_again_when_it_is_late() {
        let mut waiting = Waiting::default();
        waiting.push(1_000.0, at(100));
        waiting.push(500.0, at(100));
        let left = |now| waiting.left(at(now), 0.1);
        assert_eq!((left(100), left(150), left(200)), (1_500.0, 1_150.0, 800.0));
        assert_eq!((left(250), left(300), left(9_000)), (1_150.0, 1_500.0, 1_500.0), "late");
    }

    #[test]
    fn the_next_begins_with_the_first_token_of_the_one_before() {
        let mut waiting = Waiting::default();
        let first = waiting.push(1_000.0, at(0));
        let second = waiting.push(1_000.0, at(0));
        assert_eq!((waiting.sent_after(first), waiting.sent_after(second)), (1_000.0, 0.0));
        waiting.one_began(at(80));
        waiting.remove(first);
        assert_eq!(
            (waiting.tokens(), waiting.left(at(80), 0.1), waiting.left(at(130), 0.1)),
            (1_000.0, 1_000.0, 650.0)
        );
    }

    #[test]
    fn nothing_is_left_behind_whatever_the_order_in_which_they_go() {
        let mut waiting = Waiting::default();
        let places: Vec<Place> = (1..=50).map(|i| waiting.push(0.1 * f64::from(i), at(0))).collect();
        assert_eq!(waiting.sent_after(places[49]), 0.0);
        for step in [3, 2, 1] {
            for place in places.iter().step_by(step) {
                waiting.remove(*place);
            }
        }
        assert_eq!((waiting.tokens(), waiting.left(at(5), 1.0)), (0.0, 0.0));
    }
}
