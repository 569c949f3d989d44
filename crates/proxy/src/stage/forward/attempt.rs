//! One attempt at one instance: a connection, the request, and the answer up to the first byte of its body.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use isotherm_core::{Evidence, Time};
use isotherm_fleet::{InstanceTls, Placement};
use isotherm_telemetry::{RetryKind, UpstreamErrorKind};

use super::Held;
use crate::rescue::Failure;
use crate::stage::finish::Record;
use crate::upstream::{ConnectError, Connection, Home, Outgoing, ResponseBody, SendError, connect};

/// An attempt to be made.
pub(super) struct Attempt<'r> {
    /// What is sent.
    pub(super) outgoing: &'r Outgoing,
    /// Where.
    pub(super) placement: &'r Placement,
    /// What is noted of the request.
    pub(super) record: &'r mut Record,
}

/// An attempt that brought no answer.
#[derive(Debug)]
pub(crate) struct Miss {
    /// What happened.
    pub(super) kind: MissKind,
    /// Whether the request had been sent to the instance, so that it may have begun to generate.
    pub(super) sent: bool,
}

/// What happened in place of an answer.
#[derive(Debug)]
pub(super) enum MissKind {
    /// There was no connection.
    Connect(ConnectError),
    /// The connection broke before the first byte of the body.
    Broken,
    /// What came is no HTTP.
    Bad(&'static str),
    /// No first byte in time.
    FirstByteTimeout,
    /// The request as a whole took too long.
    TotalTimeout,
}

impl MissKind {
    /// Whether nothing else may be tried.
    pub(super) fn ends_the_request(&self) -> bool {
        match self {
            MissKind::Connect(_) | MissKind::Broken => false,
            MissKind::Bad(_) | MissKind::FirstByteTimeout | MissKind::TotalTimeout => true,
        }
    }

    /// What it says about the instance.
    pub(super) fn evidence(&self) -> Option<Evidence> {
        match self {
            MissKind::Connect(error) => Some(error.evidence()),
            MissKind::Broken | MissKind::Bad(_) => Some(Evidence::RequestFailed),
            MissKind::FirstByteTimeout | MissKind::TotalTimeout => None,
        }
    }

    /// Its name in metrics.
    pub(super) fn error(&self) -> UpstreamErrorKind {
        match self {
            MissKind::Connect(ConnectError::Refused) => UpstreamErrorKind::ConnectRefused,
            MissKind::Connect(ConnectError::TimedOut(_)) => UpstreamErrorKind::ConnectTimeout,
            MissKind::Connect(ConnectError::Failed(_)) => UpstreamErrorKind::ConnectFailed,
            MissKind::Broken => UpstreamErrorKind::Broken,
            MissKind::Bad(_) => UpstreamErrorKind::Malformed,
            MissKind::FirstByteTimeout => UpstreamErrorKind::FirstByteTimeout,
            MissKind::TotalTimeout => UpstreamErrorKind::TotalTimeout,
        }
    }
}

impl Miss {
    /// What the client is told when nothing else may be tried.
    pub(super) fn failure(self, record: &Record) -> Failure {
        let timeouts = &record.rules.timeouts;
        match self.kind {
            // Nothing was generated: whoever comes back a second later may find an instance.
            MissKind::Connect(_) if !self.sent => Failure::Unavailable,
            MissKind::Connect(_) | MissKind::Broken => Failure::Broken,
            MissKind::Bad(what) => Failure::BadAnswer(what),
            MissKind::FirstByteTimeout => Failure::FirstByteTimeout(timeouts.first_byte),
            MissKind::TotalTimeout => Failure::TotalTimeout(record.total().unwrap_or(timeouts.first_byte)),
        }
    }
}

impl Attempt<'_> {
    /// Makes the attempt.
    pub(super) async fn run(mut self) -> Result<Box<Held>, Miss> {
        let head = self.outgoing.head(&self.placement.instance);
        let now = self.record.worker.now();
        let tls = self.placement.instance.tls();
        let home = self.home(tls.as_deref());
        let idle = home.take(now, self.record.rules.timeouts.pool_idle);
        if let Some(connection) = idle {
            match self.try_on(connection, home, &head, now).await {
                // The instance closed it just then, as engines do with connections that were idle for long.
                Err(Broke::Silent) => self.record.retry(RetryKind::ReusedConnection),
                Err(Broke::Otherwise(kind)) => return Err(Miss { kind, sent: true }),
                Ok(held) => return Ok(held),
            }
            return Box::pin(self.try_fresh(tls.as_deref(), &head, true)).await;
        }
        // Few requests open a connection; boxed, that takes no room of the others.
        Box::pin(self.try_fresh(tls.as_deref(), &head, false)).await
    }

    async fn try_fresh(&mut self, tls: Option<&InstanceTls>, head: &[u8], sent: bool) -> Result<Box<Held>, Miss> {
        let address = self.placement.instance.address();
        let limit = self.limit(self.record.rules.timeouts.connect, self.record.worker.now());
        let stream = connect(address, tls, limit.length).await;
        let stream = stream.map_err(|error| match (error, limit.is_total) {
            (ConnectError::TimedOut(_), true) => Miss { kind: MissKind::TotalTimeout, sent },
            (error, _) => Miss { kind: MissKind::Connect(error), sent },
        })?;
        let (home, now) = (self.home(tls), self.record.worker.now());
        self.try_on(Connection::new(stream), home, head, now).await.map_err(|broke| match broke {
            Broke::Silent => Miss { kind: MissKind::Broken, sent: true },
            Broke::Otherwise(kind) => Miss { kind, sent: true },
        })
    }

    /// Sends the request over a connection and waits for the first byte of the answer's body.
    async fn try_on(
        &mut self,
        mut connection: Connection,
        home: Home,
        head: &[u8],
        now: Time,
    ) -> Result<Box<Held>, Broke> {
        let reused = connection.is_reused();
        let limit = self.limit(self.record.rules.timeouts.first_byte, now);
        let (outgoing, placement) = (self.outgoing, self.placement);
        let clock = self.record.worker.clock();
        let mut answer = pin!(async {
            let answer =
                connection.send(head, &outgoing.body, &outgoing.head.method).await.map_err(|error| match error {
                    SendError::Silent(_) if reused => Broke::Silent,
                    SendError::Silent(_) | SendError::Broken(_) => Broke::Otherwise(MissKind::Broken),
                    SendError::Bad(bad) => Broke::Otherwise(MissKind::Bad(bad.0)),
                })?;
            let home = Some(home).filter(|_| answer.keeps_alive);
            let body = ResponseBody::new(connection, answer.framing, home, clock.now(), clock);
            let held = Held::hold(answer.status, answer.headers, body, &placement.instance).await;
            held.map_err(|_| Broke::Otherwise(MissKind::Broken))
        });
        let alarm = &mut self.record.alarm;
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Pending => alarm.poll(context, now + limit.length, clock).map(|()| {
                let late = if limit.is_total { MissKind::TotalTimeout } else { MissKind::FirstByteTimeout };
                Err(Broke::Otherwise(late))
            }),
            answered => answered,
        })
        .await
    }

    /// Where connections to the instance are kept.
    fn home(&self, tls: Option<&InstanceTls>) -> Home {
        let authority = self.placement.instance.address().authority();
        self.record.worker.pool.home(tls.map_or(authority, InstanceTls::pool_key))
    }

    /// A limit, or what is left for the request as a whole where that ends first.
    fn limit(&self, longest: Duration, now: Time) -> Limit {
        match self.record.deadline().map(|deadline| deadline.since(now)) {
            Some(left) if left < longest => Limit { length: left, is_total: true },
            _ => Limit { length: longest, is_total: false },
        }
    }
}

struct Limit {
    length: Duration,
    is_total: bool,
}

/// How sending over one connection failed.
enum Broke {
    /// A reused connection, before any byte of a response.
    Silent,
    /// Any other way.
    Otherwise(MissKind),
}
