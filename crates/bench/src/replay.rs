//! Drives a plan against a target for a stretch of time: users in closed loop, or sessions that arrive whatever became
//! of those before.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::Full;
use isotherm_workload::{
    Arrival, CHARACTERS_PER_TOKEN, Load, OpenLoop, Plan, PlannedRequest, Session, TextWriter, TraceError,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::connection::Connection;
use crate::conversation::Conversation;
use crate::exchange::Exchange;
use crate::record::Recorder;
use crate::run::{RunError, TIMER_STEP, current_thread_runtime, http_request};
use crate::validity::Lag;
use crate::work::{Work, WorkLog};
use crate::{Arm, Options, Progress, chat};

/// When a run begins to count and when it ends, in the engines' time since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// Requests sent before this only warm the fleet.
    pub warm_up: Duration,
    /// From here on nothing more is sent. After `warm_up`.
    pub duration: Duration,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Every request, and what the fleet did.
    pub run: isotherm_report::Run,
    /// How late requests were sent: how late the load generator was altogether.
    pub client_lag: Lag,
    /// Measured requests, and how many of them failed.
    pub requests: u64,
    pub errors: u64,
    /// What the first failure was.
    pub first_failure: Option<isotherm_report::Failure>,
}

/// Sends what the plan says until the time is up, and waits for the last answers. `work` is asked what the fleet has
/// done since its start, at the borders of the parts of the measured time.
///
/// In open loop every session's first request leaves at its own time after the start; the others, and all in closed
/// loop, leave their think time after the answer before. Blocks; must not be called inside an asynchronous runtime.
///
/// # Errors
/// When the target cannot be reached at all, or the plan's trace cannot be read. Requests that fail are observations
/// like all others.
pub fn replay(
    arm: &Arm,
    plan: &Plan,
    timetable: Timetable,
    options: &Options,
    progress: &dyn Progress,
    work: &dyn Fn() -> Option<Work>,
) -> Result<Replay, RunError> {
    let runtime = current_thread_runtime().map_err(RunError::Runtime)?;
    runtime.block_on(drive(arm, plan, timetable, options, progress, work))
}

/// How long before its time, on the wall clock, the text of an arriving session's first request is written: the time
/// itself must only send.
const AHEAD: Duration = Duration::from_millis(250);

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(200);

/// What all senders of a run share.
struct Shared {
    arm: Arm,
    options: Options,
    writer: TextWriter,
    clock: Clock,
    /// From here on nothing more is sent.
    end: Instant,
    idle: Mutex<Vec<Connection>>,
}

/// A request that ended.
pub(crate) struct Ended {
    pub(crate) planned: PlannedRequest,
    pub(crate) exchange: Exchange,
    pub(crate) late: Duration,
}

async fn drive(
    arm: &Arm,
    plan: &Plan,
    timetable: Timetable,
    options: &Options,
    progress: &dyn Progress,
    work: &dyn Fn() -> Option<Work>,
) -> Result<Replay, RunError> {
    let mut first = Connection::new(Arc::new(arm.target.clone()), options.connect_timeout);
    let sender = first.take().await.map_err(|failure| RunError::Unreachable(failure.detail))?;
    first.keep(sender);

    let clock = Clock::start(options.speed);
    let shared = Arc::new(Shared {
        writer: TextWriter::new(arm.text_seed)
            .with_characters_per_token(options.characters_per_token.unwrap_or(CHARACTERS_PER_TOKEN)),
        end: clock.at(timetable.duration),
        clock,
        idle: Mutex::new(vec![first]),
        arm: arm.clone(),
        options: options.clone(),
    });
    let (ended, results) = unbounded_channel();
    let arrivals = start(plan.load(), &shared, ended);
    let mut recorder = Recorder::new(timetable, &arm.instances);
    let mut log = WorkLog::new(recorder.window(), arm);
    listen(results, &mut recorder, &mut log, &shared, progress, work).await;
    match arrivals.await {
        Ok(read) => read?,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
    Ok(recorder.into_replay(log.into_parts(work)))
}

/// Sets all senders going. The task that is returned ends when the last session has arrived.
fn start(load: Load, shared: &Arc<Shared>, ended: UnboundedSender<Ended>) -> JoinHandle<Result<(), TraceError>> {
    match load {
        Load::Open(arrivals) => tokio::spawn(let_arrive(arrivals, Arc::clone(shared), ended)),
        Load::Closed(users) => {
            for user in users {
                tokio::spawn(send_all(user, shared.clock.start, Arc::clone(shared), ended.clone()));
            }
            tokio::spawn(std::future::ready(Ok(())))
        }
    }
}

/// Starts a sender for each session, a moment before its first request is due.
async fn let_arrive(arrivals: OpenLoop, shared: Arc<Shared>, ended: UnboundedSender<Ended>) -> Result<(), TraceError> {
    for arrival in arrivals {
        let Arrival { at, requests } = arrival?;
        let due = shared.clock.at(at);
        if due >= shared.end {
            break;
        }
        if let Some(begin) = due.checked_sub(AHEAD) {
            tokio::time::sleep_until(begin.into()).await;
        }
        tokio::spawn(send_all(requests, due, Arc::clone(&shared), ended.clone()));
    }
    Ok(())
}

/// One user's or one session's life: think, send, read, and again, until there is nothing more to ask or the time is
/// up. `free` is when its first think time begins. The text is written before a request is due.
async fn send_all(requests: Session, mut free: Instant, shared: Arc<Shared>, ended: UnboundedSender<Ended>) {
    let mut conversation = Conversation::default();
    for planned in requests {
        let due = free + shared.clock.wall(planned.think);
        if due >= shared.end {
            return;
        }
        let request = shared.request(&planned, &mut conversation);
        tokio::time::sleep_until(due.into()).await;
        let late = Instant::now().saturating_duration_since(due + TIMER_STEP);
        let mut connection = shared.connection();
        let timeout = shared.options.request_timeout;
        let mut exchange = Exchange::perform(&mut connection, request, &shared.clock, timeout).await;
        free = Instant::now();
        shared.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        let said = std::mem::take(&mut exchange.text);
        conversation.answered(planned.output, if exchange.failure.is_none() { said } else { String::new() });
        if ended.send(Ended { planned, exchange, late }).is_err() {
            return;
        }
    }
}

/// Takes in what senders report until all are gone, reads the fleet's work when it is time, and shows progress.
async fn listen(
    mut results: UnboundedReceiver<Ended>,
    recorder: &mut Recorder,
    log: &mut WorkLog,
    shared: &Shared,
    progress: &dyn Progress,
    work: &dyn Fn() -> Option<Work>,
) {
    let mut tick = tokio::time::interval(TICK);
    loop {
        let border = log.next_border().map(|border| shared.clock.at(border));
        let at_border = async {
            match border {
                Some(border) => tokio::time::sleep_until(border.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = at_border => log.read(work()),
            ended = results.recv() => match ended {
                Some(ended) => {
                    progress.request_ended(ended.exchange.failure.is_some());
                    recorder.add(ended);
                }
                None => return,
            },
            _ = tick.tick() => progress.passed(shared.clock.now()),
        }
    }
}

impl Shared {
    fn request(&self, planned: &PlannedRequest, conversation: &mut Conversation) -> Request<Full<bytes::Bytes>> {
        let messages = conversation.messages(planned, &self.writer);
        let body = chat::conversation(&messages, planned.output_tokens, self.arm.target.model(), &self.options);
        http_request(&self.arm.target, body, planned.tenant.name().as_deref())
    }

    /// An idle connection, the one used last, or a new one.
    fn connection(&self) -> Connection {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Connection::new(Arc::new(self.arm.target.clone()), self.options.connect_timeout))
    }
}

#[cfg(test)]
mod tests;
