//! The plan of a run: who sends what and when, each request a function of workload, arrivals and seed.

use crate::arrivals::{Timing, speed_up};
use crate::generator::{Generator, Session};
use crate::{
    Agents, Arrivals, Azure, Chats, ColdBurst, Corpus, Documents, HotPrefix, InvalidWorkload, LongOutput, Mooncake,
    NoSharing, OpenLoop, PlannedRequest, Recorded, Tenants,
};

/// What all clients will send, without any text.
///
/// In closed loop there are users, each with an endless sequence of requests: whoever runs the plan decides how many
/// it takes, and no user runs dry while others still have something to ask. In open loop there are sessions that
/// arrive; the synthetic ones never end, a recorded trace does.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    workload: Workload,
    timing: Timing,
    seed: u64,
}

impl Plan {
    /// A plan with the arrivals that suit the workload: its users, or the times of a recording.
    ///
    /// # Errors
    /// When the workload could not produce a request: no users, an empty range, a length of zero.
    pub fn new(workload: impl Into<Workload>, seed: u64) -> Result<Plan, InvalidWorkload> {
        let workload = workload.into();
        let arrivals =
            if workload.generator().has_users() { Arrivals::Users } else { Arrivals::Recorded { rate: 1.0 } };
        Plan::with_arrivals(workload, arrivals, seed)
    }

    /// A plan with other arrivals.
    ///
    /// # Errors
    /// When the workload could not produce a request, or cannot arrive so.
    pub fn with_arrivals(
        workload: impl Into<Workload>,
        arrivals: Arrivals,
        seed: u64,
    ) -> Result<Plan, InvalidWorkload> {
        let workload = workload.into();
        let (generator, timing) = (workload.generator(), arrivals.timing()?);
        generator.check()?;
        let name = generator.name();
        match timing {
            Timing::Users if !generator.has_users() => return Err(InvalidWorkload::NoUsers { workload: name }),
            Timing::Recorded { .. } if generator.recorded(seed).is_none() => {
                return Err(InvalidWorkload::NoTimes { workload: name });
            }
            Timing::Random(_) if generator.sessions(seed).is_none() => {
                return Err(InvalidWorkload::OnlyOwnTimes { workload: name });
            }
            _ => {}
        }
        Ok(Plan { workload, timing, seed })
    }

    /// The workload's name, as reports show it.
    pub fn name(&self) -> &'static str {
        self.workload.generator().name()
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// What the clients do.
    pub fn load(&self) -> Load {
        match self.open_loop() {
            Some(arrivals) => Load::Open(arrivals),
            None => Load::Closed((0..self.users()).map(|user| self.user(user)).collect()),
        }
    }

    /// How many users there are; they are numbered from 0. None in open loop.
    pub fn users(&self) -> u32 {
        if self.timing == Timing::Users { self.workload.generator().users() } else { 0 }
    }

    /// What one user sends, one after the other, each `think` after the answer before.
    pub fn user(&self, user: u32) -> UserRequests {
        self.workload.generator().user(self.seed, user)
    }

    /// The sessions that arrive, in the order of their times; `None` in closed loop.
    pub fn open_loop(&self) -> Option<OpenLoop> {
        let generator = self.workload.generator();
        match &self.timing {
            Timing::Users => None,
            Timing::Recorded { rate } => Some(speed_up(generator.recorded(self.seed)?, *rate)),
            Timing::Random(gaps) => Some(gaps.arrivals(self.seed, generator.sessions(self.seed)?)),
        }
    }

    /// The first `count` requests if the users take turns: what a run in closed loop will send, up to the order. Fewer
    /// only where there are no users.
    pub fn in_turn(&self, count: usize) -> Vec<PlannedRequest> {
        let mut users: Vec<UserRequests> = (0..self.users()).map(|user| self.user(user)).collect();
        let mut requests = Vec::with_capacity(count);
        while requests.len() < count && !users.is_empty() {
            let left = count - requests.len();
            requests.extend(users.iter_mut().take(left).filter_map(Iterator::next));
        }
        requests
    }
}

/// What the clients of a plan do.
pub enum Load {
    /// One endless sequence for each user.
    Closed(Vec<UserRequests>),
    /// Sessions that arrive.
    Open(OpenLoop),
}

impl std::fmt::Debug for Load {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Load::Closed(users) => write!(formatter, "Closed({} users)", users.len()),
            Load::Open(_) => formatter.write_str("Open"),
        }
    }
}

/// One user's requests, in order; endless.
pub type UserRequests = Session;

/// Implements what every kind of workload needs to be one.
macro_rules! workloads {
    ($($(#[$doc:meta])* $kind:ident),* $(,)?) => {
        /// The kinds of workloads.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Workload {
            $($(#[$doc])* $kind($kind),)*
        }

        impl Workload {
            fn generator(&self) -> &dyn Generator {
                match self {
                    $(Workload::$kind(workload) => workload,)*
                }
            }
        }

        $(impl From<$kind> for Workload {
            fn from(workload: $kind) -> Workload {
                Workload::$kind(workload)
            }
        })*
    };
}

workloads! {
    /// Long documents, each asked a few questions by one user.
    Documents,
    /// A fixed set of documents that everybody asks about.
    Corpus,
    /// Conversations of real lengths.
    Chats,
    /// Recorded sessions of a coding agent.
    Agents,
    /// One prefix that very many requests share, beside documents.
    HotPrefix,
    /// Prompts that share nothing.
    NoSharing,
    /// Conversations of several tenants that share a system prompt.
    Tenants,
    /// Conversations with long answers.
    LongOutput,
    /// Bursts of equal beginnings that nobody sent before.
    ColdBurst,
    /// A recorded trace with the hashes of blocks.
    Mooncake,
    /// A recorded trace of lengths.
    Azure,
    /// A part of a log.
    Recorded,
}
