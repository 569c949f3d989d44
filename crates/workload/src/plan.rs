//! The plan of a run: for every user an endless sequence of requests, each a function of seed, user and position.

use std::time::Duration;

use crate::{Documents, NoSharing};

/// What all users will send, without any text.
///
/// The sequences are endless: whoever runs the plan decides how many requests it takes, and no user runs dry while
/// others still have something to ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    workload: Workload,
    seed: u64,
}

impl Plan {
    /// # Errors
    /// When the workload could not produce a request: no users, an empty range, a length of zero.
    pub fn new(workload: impl Into<Workload>, seed: u64) -> Result<Plan, InvalidWorkload> {
        let workload = workload.into();
        match &workload {
            Workload::Documents(documents) => documents.check()?,
            Workload::NoSharing(no_sharing) => no_sharing.check()?,
        }
        Ok(Plan { workload, seed })
    }

    /// The scenario's name, as reports show it.
    pub fn name(&self) -> &'static str {
        match self.workload {
            Workload::Documents(_) => "documents",
            Workload::NoSharing(_) => "no-sharing",
        }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// How many users there are; they are numbered from 0.
    pub fn users(&self) -> u32 {
        match &self.workload {
            Workload::Documents(documents) => documents.users,
            Workload::NoSharing(no_sharing) => no_sharing.users,
        }
    }

    /// What one user sends, one after the other, each `think` after the answer before.
    pub fn user(&self, user: u32) -> UserRequests {
        match &self.workload {
            Workload::Documents(documents) => documents.user(self.seed, user),
            Workload::NoSharing(no_sharing) => no_sharing.user(self.seed, user),
        }
    }

    /// The first `count` requests if the users take turns: what a run will send, up to the order.
    pub fn in_turn(&self, count: usize) -> Vec<PlannedRequest> {
        let mut users: Vec<UserRequests> = (0..self.users()).map(|user| self.user(user)).collect();
        let mut requests = Vec::with_capacity(count);
        while requests.len() < count {
            let left = count - requests.len();
            requests.extend(users.iter_mut().take(left).filter_map(Iterator::next));
        }
        requests
    }
}

/// The kinds of synthetic workloads.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    Documents(Documents),
    NoSharing(NoSharing),
}

/// One user's requests, in order; endless.
pub type UserRequests = Box<dyn Iterator<Item = PlannedRequest> + Send>;

/// One request before it has text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRequest {
    /// How long the user waits before sending it: after the answer before, or for the first after the run's start.
    pub think: Duration,
    /// What the prompt is made of, in order; never empty.
    pub prompt: Vec<Piece>,
    /// How many tokens the answer has.
    pub output_tokens: u32,
}

impl PlannedRequest {
    /// The prompt's length.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt.iter().map(|piece| u64::from(piece.tokens)).sum()
    }
}

/// A part of a prompt. Two prompts share exactly the pieces with which both begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Equal ids are equal text; different ids differ from the first characters on.
    pub id: PieceId,
    /// Its length; at least 1.
    pub tokens: u32,
}

/// Tells the pieces of a plan apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PieceId(pub u64);

/// Why a workload cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWorkload {
    #[error("{what} is 0; it must be at least 1")]
    Zero { what: &'static str },
    #[error("{what} goes from {low} to {high}; the first must not be above the second")]
    EmptyRange { what: &'static str, low: u32, high: u32 },
}

/// Refuses a range that is empty or holds a zero.
pub(crate) fn check_range(what: &'static str, range: &std::ops::RangeInclusive<u32>) -> Result<(), InvalidWorkload> {
    let (low, high) = (*range.start(), *range.end());
    if low > high {
        return Err(InvalidWorkload::EmptyRange { what, low, high });
    }
    check_count(what, low)
}

/// Refuses a zero.
pub(crate) fn check_count(what: &'static str, count: u32) -> Result<(), InvalidWorkload> {
    if count == 0 { Err(InvalidWorkload::Zero { what }) } else { Ok(()) }
}
