//! Who sends what and when: users who wait for their answers, or sessions that arrive whatever became of the others.

use isotherm_workload::{Arrival, InvalidWorkload, Load, OpenLoop, PlannedRequest, Session, TraceError};

use crate::scenario::Scenario;
use crate::server::nanoseconds;

/// All senders of a run. In closed loop they are there from the start; in open loop each session becomes one when it
/// arrives, and its number is used again when it has ended.
pub(crate) struct Traffic {
    senders: Vec<Sender>,
    free: Vec<u32>,
    arrivals: Option<OpenLoop>,
    next: Option<Arrival>,
    broken: Option<TraceError>,
}

struct Sender {
    requests: Session,
    next: Option<PlannedRequest>,
}

impl Traffic {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Result<Traffic, InvalidWorkload> {
        let (users, arrivals) = match scenario.plan(seed)?.load() {
            Load::Closed(users) => (users, None),
            Load::Open(arrivals) => (Vec::new(), Some(arrivals)),
        };
        let senders = users.into_iter().map(|requests| Sender { requests, next: None }).collect();
        Ok(Traffic { senders, free: Vec::new(), arrivals, next: None, broken: None })
    }

    /// The users, and when each sends for the first time.
    pub(crate) fn first_users(&mut self) -> Vec<(u32, u64)> {
        let users = 0..self.senders.len() as u32;
        users.filter_map(|user| Some((user, self.after_answer(user)?))).collect()
    }

    /// When the next session arrives.
    pub(crate) fn next_arrival(&mut self) -> Option<u64> {
        match self.arrivals.as_mut()?.next()? {
            Ok(arrival) => {
                let at = nanoseconds(arrival.at);
                self.next = Some(arrival);
                Some(at)
            }
            Err(error) => {
                self.broken = Some(error);
                None
            }
        }
    }

    /// The session whose time [`next_arrival`](Self::next_arrival) told becomes a sender.
    pub(crate) fn arrive(&mut self) -> Option<u32> {
        let mut requests = self.next.take()?.requests;
        let next = requests.next();
        let sender = Sender { requests, next };
        match self.free.pop() {
            Some(number) => {
                self.senders[number as usize] = sender;
                Some(number)
            }
            None => {
                self.senders.push(sender);
                Some(self.senders.len() as u32 - 1)
            }
        }
    }

    /// What a sender has ready.
    pub(crate) fn take(&mut self, sender: u32) -> Option<PlannedRequest> {
        self.senders[sender as usize].next.take()
    }

    /// How long a sender thinks after an answer before sending the next; `None` if it has nothing more to ask.
    pub(crate) fn after_answer(&mut self, number: u32) -> Option<u64> {
        let sender = &mut self.senders[number as usize];
        sender.next = sender.requests.next();
        if sender.next.is_none() {
            self.free.push(number);
        }
        sender.next.as_ref().map(|request| nanoseconds(request.think))
    }

    /// What ended the arrivals before their time.
    pub(crate) fn take_broken(&mut self) -> Option<TraceError> {
        self.broken.take()
    }
}
