//! Requests that somebody recorded, held in memory: what the analysis of a log replays.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::generator::{Generator, NumberedSessions, Session, single};
use crate::invalid::check_count;
use crate::pacing::{first_appearance, think};
use crate::seed::{Purpose, mix, stream};
use crate::{Arrival, InvalidWorkload, OpenLoop, Piece, PieceId, PlannedRequest, SessionId, UserRequests};

/// A part of a log. Where every request has a time it comes at these times, in open loop. Otherwise users send it in
/// closed loop, session by session and in the log's order, again and again with other text.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// In the order of their times; requests of one session stand together where there are no times.
    pub requests: Arc<[RecordedRequest]>,
    /// Closed-loop users, at least 1.
    pub users: u32,
    /// Mean pause of a user between two sessions, in closed loop.
    pub think: Duration,
}

/// One request of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Since the first request; `None` where the log does not say.
    pub at: Option<Duration>,
    /// What was sent.
    pub request: PlannedRequest,
}

impl Recorded {
    /// Every request has a time.
    pub fn is_timed(&self) -> bool {
        self.requests.iter().all(|recorded| recorded.at.is_some())
    }

    /// Where the sessions stand: requests with one session id that follow each other.
    fn runs(&self) -> Vec<Range<usize>> {
        let mut begin = 0;
        let chunks = self.requests.chunk_by(|before, after| before.request.session == after.request.session);
        let run = |chunk: &[RecordedRequest]| {
            begin += chunk.len();
            begin - chunk.len()..begin
        };
        chunks.map(run).collect()
    }

    /// One session as it is sent in a round; the text of later rounds is other text of the same shape.
    fn session(&self, run: Range<usize>, round: u64) -> Vec<PlannedRequest> {
        let id = |id: u64| if round == 0 { id } else { mix(id ^ mix(round)) };
        let moved = |recorded: &RecordedRequest| {
            let request = &recorded.request;
            PlannedRequest {
                session: SessionId(id(request.session.0)),
                prompt: request.prompt.iter().map(|piece| Piece { id: PieceId(id(piece.id.0)), ..*piece }).collect(),
                output: PieceId(id(request.output.0)),
                ..request.clone()
            }
        };
        self.requests[run].iter().map(moved).collect()
    }
}

impl Generator for Recorded {
    fn name(&self) -> &'static str {
        "log"
    }

    fn check(&self) -> Result<(), InvalidWorkload> {
        check_count("the number of users", self.users)?;
        check_count("the number of recorded requests", u32::try_from(self.requests.len()).unwrap_or(u32::MAX))
    }

    fn has_users(&self) -> bool {
        !self.is_timed()
    }

    fn users(&self) -> u32 {
        self.users
    }

    fn user(&self, seed: u64, user: u32) -> UserRequests {
        let runs = self.runs();
        let (log, count, users) = (self.clone(), runs.len(), self.users.max(1) as usize);
        if count == 0 {
            return Box::new(std::iter::empty());
        }
        let mut rng = stream(seed, Purpose::User, u64::from(user));
        let mut started = false;
        Box::new((user as usize..).step_by(users).flat_map(move |place| {
            let mut session = log.session(runs[place % count].clone(), (place / count) as u64);
            let pause = if started { think } else { first_appearance };
            started = true;
            if let Some(first) = session.first_mut() {
                first.think = pause(&mut rng, log.think);
            }
            session
        }))
    }

    fn sessions(&self, _seed: u64) -> Option<NumberedSessions> {
        let log = self.clone();
        let sessions = self.runs().into_iter().map(move |run| {
            let session: Session = Box::new(log.session(run, 0).into_iter());
            Ok(session)
        });
        Some(Box::new(sessions))
    }

    fn recorded(&self, _seed: u64) -> Option<OpenLoop> {
        if !self.is_timed() {
            return None;
        }
        let requests = Arc::clone(&self.requests);
        Some(Box::new((0..requests.len()).filter_map(move |place| {
            let RecordedRequest { at, request } = &requests[place];
            Some(Ok(Arrival { at: (*at)?, requests: single(request.clone()) }))
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Plan, TenantId};

    fn log(sessions: &[u64], timed: bool) -> Recorded {
        let request = |(number, &session): (u64, &u64)| RecordedRequest {
            at: timed.then(|| Duration::from_secs(number)),
            request: PlannedRequest {
                session: SessionId(session),
                tenant: TenantId::default(),
                think: Duration::ZERO,
                prompt: vec![Piece::new(PieceId(7), 100), Piece::new(PieceId(100 + number), 10)],
                output: PieceId(200 + number),
                output_tokens: 5,
            },
        };
        Recorded { requests: (0..).zip(sessions).map(request).collect(), users: 2, think: Duration::from_secs(1) }
    }

    #[test]
    fn a_log_with_times_comes_at_its_times() {
        let plan = Plan::new(log(&[1, 2, 3], true), 1).unwrap();
        let Load::Open(arrivals) = plan.load() else { panic!("recorded times are an open loop") };
        let seconds: Vec<u64> = arrivals.map(|arrival| arrival.unwrap().at.as_secs()).collect();
        assert_eq!(seconds, [0, 1, 2]);
    }

    #[test]
    fn without_times_users_share_the_sessions_and_never_run_dry() {
        let plan = Plan::new(log(&[1, 1, 2, 3], false), 1).unwrap();
        assert_eq!(plan.users(), 2);
        let of = |user: u32, count: usize| plan.user(user).take(count).collect::<Vec<_>>();
        let first = of(0, 5);
        assert_eq!(first.iter().take(3).map(|request| request.session.0).collect::<Vec<_>>(), [1, 1, 3]);
        assert_eq!(of(1, 1)[0].session, SessionId(2));
        assert!(first[0].think > Duration::ZERO && first[1].think == Duration::ZERO);
        let shared = |request: &PlannedRequest| request.prompt[0].id;
        assert_eq!(shared(&first[0]), shared(&first[2]), "what requests share stays shared");
        assert_ne!(shared(&first[0]), shared(&first[3]), "the next round is other text");
    }

    #[test]
    fn an_empty_log_is_refused() {
        assert!(Plan::new(log(&[], true), 1).is_err());
    }
}
