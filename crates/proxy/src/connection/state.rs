//! What is known of a connection: whether a request is under way, whom it waits for, and until when it may wait.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Version};
use hyper::body::{Body, Incoming};
use isotherm_core::Time;
use isotherm_fleet::Clock;

use super::preface::Protocol;
use super::refusal::HeadLimits;
use crate::worker::Worker;

/// How long a connection without requests is kept. Load balancers in front reuse theirs for 60 s, and must be the ones
/// that close.
const KEPT_IDLE: Duration = Duration::from_secs(75);

/// The state of one connection, shared by its stream, its driver and its requests.
#[derive(Debug)]
pub(crate) struct State {
    clock: Clock,
    protocol: Protocol,
    /// How long the head of a request may take, and a client to take what there is for it.
    head_limit: Duration,
    /// See `head_limit`.
    taking_limit: Duration,
    /// The requests under way, and whom each waits for; places of finished ones are used again.
    waits: RefCell<Vec<Wait>>,
    under_way: Cell<usize>,
    begun: Cell<bool>,
    /// Since when nothing is under way.
    quiet_since: Cell<Time>,
    /// When the first byte of a request came whose head is not whole.
    head_since: Cell<Option<Time>>,
    /// Whether whoever reads waits for the socket, so that the client's leaving wakes it.
    reading: Cell<bool>,
    /// Whether a request was answered whose body was not read.
    unread: Cell<bool>,
    /// Whether a body broke off whose client would take the connection's end for its end.
    broken_off: Cell<bool>,
    /// Whether all that was answered so far has been handed to the socket.
    flushed: Cell<bool>,
    head_limits: HeadLimits,
}

/// Whom a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Nobody: it has finished.
    Finished,
    /// The router or an instance.
    Router,
    /// Its client, to take what there is, since this time.
    Client(Time),
}

impl State {
    /// A connection of which the first bytes have come.
    pub(super) fn new(worker: &Worker, protocol: Protocol) -> State {
        let now = worker.now();
        let rules = worker.rules();
        let timeouts = &rules.timeouts;
        State {
            clock: worker.clock(),
            protocol,
            head_limit: timeouts.client_header,
            taking_limit: timeouts.idle,
            waits: RefCell::default(),
            under_way: Cell::new(0),
            begun: Cell::new(false),
            quiet_since: Cell::new(now),
            head_since: Cell::new((protocol == Protocol::Http1).then_some(now)),
            reading: Cell::new(false),
            unread: Cell::new(false),
            broken_off: Cell::new(false),
            flushed: Cell::new(true),
            head_limits: HeadLimits { headers: rules.limits.headers, uri: rules.limits.uri },
        }
    }

    /// The head of a request is whole.
    pub(super) fn begin_request(state: &Rc<State>, request: &Request<Incoming>) -> InFlight {
        state.under_way.set(state.under_way.get() + 1);
        state.begun.set(true);
        state.flushed.set(false);
        state.head_since.set(None);
        let mut waits = state.waits.borrow_mut();
        let place = waits.iter().position(|wait| *wait == Wait::Finished).unwrap_or_else(|| {
            waits.push(Wait::Finished);
            waits.len() - 1
        });
        waits[place] = Wait::Router;
        drop(waits);
        InFlight {
            state: Rc::clone(state),
            place,
            has_body: !request.body().is_end_stream(),
            ends_by_close: request.version() == Version::HTTP_10,
        }
    }

    /// Notes a read: whether it waits, and whether bytes came.
    pub(super) fn note_read(&self, waits: bool, came: bool) {
        self.reading.set(waits);
        let begins_head = self.protocol == Protocol::Http1 && self.is_quiet() && came;
        if begins_head && self.head_since.get().is_none() {
            self.head_since.set(Some(self.clock.now()));
        }
    }

    /// When the connection has waited for its client for too long, as things stand; `None` while it waits for nobody.
    pub(super) fn due(&self) -> Option<Time> {
        if self.is_quiet() {
            let head = self.head_since.get().map(|since| since + self.head_limit);
            return Some(head.unwrap_or(self.quiet_since.get() + KEPT_IDLE));
        }
        let waits = self.waits.borrow();
        let since = waits.iter().filter_map(|wait| if let Wait::Client(since) = wait { Some(*since) } else { None });
        since.min().map(|since| since + self.taking_limit)
    }

    /// How often to look whether a request waits for its client: streams of HTTP/2 go on without waking their
    /// connection.
    pub(super) fn look_every(&self) -> Duration {
        self.taking_limit
    }

    /// Whether no request is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.get() == 0
    }

    /// Whether nothing is under way, and no request has begun to come.
    pub(super) fn is_idle(&self) -> bool {
        self.is_quiet() && self.head_since.get().is_none()
    }

    /// Whether it may be closed behind what is under way without losing a request that its client has just sent: not
    /// before the first one.
    pub(super) fn may_close(&self) -> bool {
        self.begun.get() || self.protocol == Protocol::Http2
    }

    /// Whether the client could leave unseen: a request is under way, and nobody reads from the socket.
    pub(super) fn is_unobserved(&self) -> bool {
        self.protocol == Protocol::Http1 && !self.is_quiet() && !self.reading.get()
    }

    /// The protocol has handed all that it has to the socket.
    pub(super) fn note_flush(&self) {
        self.flushed.set(self.is_quiet());
    }

    /// The limits of a request's head, while whatever is written can only be a refusal of what is none: no request is
    /// under way, and every answer has gone.
    pub(super) fn refusing(&self) -> Option<HeadLimits> {
        (self.protocol == Protocol::Http1 && self.is_quiet() && self.flushed.get()).then_some(self.head_limits)
    }

    /// What is no request is refused; what follows it is not read.
    pub(super) fn refuse(&self) {
        self.unread.set(true);
    }

    /// Whether a request was answered whose body was not read.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.get()
    }

    /// Whether a body broke off whose client would take the connection's end for its end.
    pub(super) fn has_broken_off(&self) -> bool {
        self.broken_off.get()
    }
}

/// A request under way on its connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    state: Rc<State>,
    place: usize,
    has_body: bool,
    ends_by_close: bool,
}

impl InFlight {
    /// The client was handed something to take.
    pub(crate) fn wait_for_client(&self) {
        self.set(Wait::Client(self.state.clock.now()));
    }

    /// The client has taken what there was.
    pub(crate) fn wait_for_instance(&self) {
        self.set(Wait::Router);
    }

    /// The request is answered although its body was not read.
    pub(crate) fn leave_body_unread(&self) {
        self.state.unread.set(self.state.unread.get() || self.has_body);
    }

    /// The response breaks off.
    pub(crate) fn break_off(&self) {
        self.state.broken_off.set(self.state.broken_off.get() || self.ends_by_close);
    }

    fn set(&self, wait: Wait) {
        self.state.waits.borrow_mut()[self.place] = wait;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.set(Wait::Finished);
        self.state.under_way.set(self.state.under_way.get() - 1);
        if self.state.is_quiet() {
            self.state.quiet_since.set(self.state.clock.now());
        }
    }
}
