//! The queue of what will happen, by virtual time and, at one time, in the order in which it was put in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A session arrives.
    Arrive,
    /// A sender sends its next request.
    Send { sender: u32 },
    /// A step of an instance ends, or a request reaches its scheduler.
    Work { instance: u32 },
    /// A first token reaches the client.
    FirstToken { request: Attempt },
    /// A last token reaches the client.
    Finish { request: Attempt },
    /// The fleet changes as the scenario says.
    Change { number: u32 },
    /// A part of the measured time ends.
    PartEnd { part: u32 },
}

/// One request on one instance: the request's slot, and which attempt of all attempts of the run it is, so that what
/// happens late to a failed attempt does not happen to the one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) slot: u32,
    pub(crate) number: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pushed: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        self.heap.push(Reverse((time, self.pushed, event)));
        self.pushed += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((time, _, event))| (time, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_of_their_pushing() {
        let mut queue = Queue::default();
        for (time, sender) in [(20, 0), (10, 3), (10, 1), (30, 2), (10, 2)] {
            queue.push(time, Event::Send { sender });
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let expected =
            [(10, 3), (10, 1), (10, 2), (20, 0), (30, 2)].map(|(time, sender)| (time, Event::Send { sender }));
        assert_eq!(order, expected);
    }
}
