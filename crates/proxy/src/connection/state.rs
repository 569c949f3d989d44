//! What is known of a connection of HTTP/2: whether requests are under way, whom they wait for, and until when they may
//! wait.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use http::Request;
use hyper::body::{Body, Incoming};
use isotherm_core::Time;
use isotherm_fleet::Clock;

use super::KEPT_IDLE;
use crate::worker::Worker;

/// The state of one connection, shared by its driver and its requests.
#[derive(Debug)]
pub(crate) struct State {
    clock: Clock,
    /// How long a client may take to take what there is for it.
    taking_limit: Duration,
    /// The requests under way, and whom each waits for; places of finished ones are used again.
    waits: RefCell<Vec<Wait>>,
    under_way: Cell<usize>,
    /// Since when nothing is under way.
    quiet_since: Cell<Time>,
    /// Whether a request was answered whose body was not read.
    unread: Cell<bool>,
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
    pub(super) fn new(worker: &Worker) -> State {
        State {
            clock: worker.clock(),
            taking_limit: worker.rules().timeouts.idle,
            waits: RefCell::default(),
            under_way: Cell::new(0),
            quiet_since: Cell::new(worker.now()),
            unread: Cell::new(false),
        }
    }

    /// The head of a request is whole.
    pub(super) fn begin_request(state: &Rc<State>, request: &Request<Incoming>) -> InFlight {
        state.under_way.set(state.under_way.get() + 1);
        let mut waits = state.waits.borrow_mut();
        let place = waits.iter().position(|wait| *wait == Wait::Finished).unwrap_or_else(|| {
            waits.push(Wait::Finished);
            waits.len() - 1
        });
        waits[place] = Wait::Router;
        drop(waits);
        InFlight { state: Rc::clone(state), place, has_body: !request.body().is_end_stream() }
    }

    /// When the connection has waited for its client for too long, as things stand; `None` while it waits for nobody.
    pub(super) fn due(&self) -> Option<Time> {
        if self.is_quiet() {
            return Some(self.quiet_since.get() + KEPT_IDLE);
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

    /// Whether a request was answered whose body was not read.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.get()
    }
}

/// A request under way on its connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    state: Rc<State>,
    place: usize,
    has_body: bool,
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
