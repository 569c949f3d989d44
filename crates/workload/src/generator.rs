//! What every kind of workload provides, so that one plan serves them all.

use std::time::Duration;

use rand_pcg::Pcg64;

use crate::pacing::{first_appearance, think};
use crate::seed::{Purpose, stream};
use crate::{InvalidWorkload, OpenLoop, PlannedRequest, TraceError, UserRequests};

/// The requests of one session, in order.
pub type Session = Box<dyn Iterator<Item = PlannedRequest> + Send>;

/// Sessions without times, numbered by their order.
pub(crate) type NumberedSessions = Box<dyn Iterator<Item = Result<Session, TraceError>> + Send>;

/// A session of one request.
pub(crate) fn single(request: PlannedRequest) -> Session {
    Box::new(std::iter::once(request))
}

/// A kind of workload.
pub(crate) trait Generator {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Refuses what could not produce a request.
    fn check(&self) -> Result<(), InvalidWorkload>;

    /// Whether it can be asked by users in closed loop.
    fn has_users(&self) -> bool {
        false
    }

    fn users(&self) -> u32 {
        0
    }

    /// What a user sends, endlessly.
    fn user(&self, _seed: u64, _user: u32) -> UserRequests {
        Box::new(std::iter::empty())
    }

    /// Sessions for random arrivals; `None` where they would make no sense.
    fn sessions(&self, _seed: u64) -> Option<NumberedSessions> {
        None
    }

    /// Its own times; `None` where it has none.
    fn recorded(&self, _seed: u64) -> Option<OpenLoop> {
        None
    }
}

/// A workload whose sessions are made by their numbers, any number at any time.
pub(crate) trait Sessions: Clone + Send + 'static {
    fn name(&self) -> &'static str;

    fn check(&self) -> Result<(), InvalidWorkload>;

    /// Users in closed loop.
    fn users(&self) -> u32;

    /// Mean pause of a user between two sessions.
    fn think(&self) -> Duration;

    /// One session: at least one request, the first without think time.
    fn session(&self, seed: u64, number: u64) -> Session;

    /// What a user sends, endlessly: every `users`-th session, unless the workload has its own idea.
    fn user(&self, seed: u64, user: u32) -> UserRequests {
        let rng = stream(seed, Purpose::User, u64::from(user));
        let (workload, number) = (self.clone(), u64::from(user));
        let session: Session = Box::new(std::iter::empty());
        Box::new(Successive { workload, seed, rng, number, session, started: false })
    }
}

impl<W: Sessions> Generator for W {
    fn name(&self) -> &'static str {
        Sessions::name(self)
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        Sessions::check(self)
    }

    fn has_users(&self) -> bool {
        true
    }

    fn users(&self) -> u32 {
        Sessions::users(self)
    }

    fn user(&self, seed: u64, user: u32) -> UserRequests {
        Sessions::user(self, seed, user)
    }

    fn sessions(&self, seed: u64) -> Option<NumberedSessions> {
        let workload = self.clone();
        Some(Box::new((0..).map(move |number| Ok(workload.session(seed, number)))))
    }
}

/// A user who has one session after the other.
struct Successive<W> {
    workload: W,
    seed: u64,
    rng: Pcg64,
    /// The next session.
    number: u64,
    session: Session,
    started: bool,
}

impl<W: Sessions> Iterator for Successive<W> {
    type Item = PlannedRequest;

    fn next(&mut self) -> Option<PlannedRequest> {
        if let Some(request) = self.session.next() {
            return Some(request);
        }
        self.session = self.workload.session(self.seed, self.number);
        self.number += u64::from(self.workload.users());
        let pause = if self.started { think } else { first_appearance };
        self.started = true;
        let think = pause(&mut self.rng, self.workload.think());
        self.session.next().map(|request| PlannedRequest { think, ..request })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use crate::{Plan, PlannedRequest, Tenants};

    #[test]
    fn every_session_is_one_users_alone_and_begins_after_a_pause() {
        let tenants = Tenants { users: 5, think: Duration::from_secs(2), ..Tenants::for_instances(7) };
        let plan = Plan::new(tenants, 1).unwrap();
        let mut owners = HashMap::new();
        for user in 0..5 {
            let requests: Vec<PlannedRequest> = plan.user(user).take(300).collect();
            assert!(requests[0].think <= Duration::from_secs(5), "users appear within two and a half pauses");
            assert!(requests.iter().all(|request| request.think > Duration::ZERO));
            let sessions = requests.chunk_by(|before, after| before.session == after.session);
            for session in sessions {
                assert_eq!(owners.insert(session[0].session, user), None, "a session is neither shared nor repeated");
            }
        }
    }
}
