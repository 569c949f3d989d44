//! What the requests of one thread share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use isotherm_core::Time;
use isotherm_fleet::{Clock, Fleet};
use isotherm_telemetry::{AccessLog, Metrics};
use rand::Rng;
use rand_pcg::Pcg64;
use tokio::sync::Semaphore;

use crate::alarm::Alarm;
use crate::asynchronous::Backlog;
use crate::aws::FrontDoor;
use crate::leftover::Leftover;
use crate::settings::{Rules, SharedRules};
use crate::stage::shadow::MOST_UNDER_WAY;
use crate::stop::Stop;
use crate::upstream::Pool;

/// One serving thread: everything here stays on it, except what says otherwise.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The instances; shared by all threads.
    pub(crate) fleet: Fleet,
    /// Shared by all threads.
    pub(crate) metrics: Arc<Metrics>,
    /// Shared by all threads.
    pub(crate) access_log: AccessLog,
    /// What answers AWS's other services, where something does.
    pub(crate) aws: Option<FrontDoor>,
    /// Idle connections to instances.
    pub(crate) pool: Rc<Pool>,
    /// What was accepted to be run by and by; shared by all threads. `None`: nothing is.
    pub(crate) asynchronous: Option<Arc<Backlog>>,
    /// One permit for each copy for a shadow variant that there may be.
    pub(crate) shadows: Arc<Semaphore>,
    /// What large bodies have left behind.
    pub(crate) leftover: Leftover,
    /// Whether the thread is to stop.
    pub(crate) stop: Stop,
    clock: Clock,
    rules: SharedRules,
    random: RefCell<Pcg64>,
    spare_alarms: RefCell<Vec<Alarm>>,
    /// The time of day as responses tell it, and until when it is right.
    date: RefCell<(String, Time)>,
}

/// How many alarms of finished requests one thread keeps for later ones.
const MOST_SPARE: usize = 256;

impl Worker {
    /// A thread's share; its random numbers follow from the seed.
    pub(crate) fn new(
        fleet: Fleet,
        metrics: Arc<Metrics>,
        access_log: AccessLog,
        aws: Option<FrontDoor>,
        asynchronous: Option<Arc<Backlog>>,
        rules: SharedRules,
        random: Pcg64,
    ) -> Worker {
        Worker {
            clock: fleet.clock(),
            fleet,
            metrics,
            access_log,
            aws,
            asynchronous,
            pool: Rc::default(),
            leftover: Leftover::default(),
            shadows: Arc::new(Semaphore::new(MOST_UNDER_WAY)),
            stop: Stop::new(),
            rules,
            random: RefCell::new(random),
            spare_alarms: RefCell::default(),
            date: RefCell::new((String::new(), Time::ZERO)),
        }
    }

    /// The fleet's time.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The fleet's clock.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The rules in force now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Lends the generator of random numbers.
    pub(crate) fn with_random<T>(&self, use_it: impl FnOnce(&mut Pcg64) -> T) -> T {
        use_it(&mut self.random.borrow_mut())
    }

    /// An alarm for a request, of a finished one where there is one: its timer is set already, and most often rings
    /// early enough to be left so.
    pub(crate) fn spare_alarm(&self) -> Alarm {
        self.spare_alarms.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back the alarm of a request that has finished.
    pub(crate) fn spare(&self, alarm: Alarm) {
        let mut alarms = self.spare_alarms.borrow_mut();
        if alarms.len() < MOST_SPARE {
            alarms.push(alarm);
        }
    }

    /// Lends the time of day as responses tell it (RFC 9110, section 5.6.7).
    pub(crate) fn with_date<T>(&self, use_it: impl FnOnce(&[u8]) -> T) -> T {
        let mut date = self.date.borrow_mut();
        let now = self.now();
        if now >= date.1 {
            let time = jiff::Timestamp::now();
            let rest = 1_000_000_000 - time.subsec_nanosecond().unsigned_abs();
            *date = (time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(), now + Duration::from_nanos(rest.into()));
        }
        use_it(date.0.as_bytes())
    }

    /// Any number.
    pub(crate) fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }
}
