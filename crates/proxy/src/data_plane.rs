//! The data plane as its owner sees it: started, told new rules, drained.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use isotherm_fleet::Fleet;
use isotherm_telemetry::{AccessLog, Metrics};
use isotherm_wire::aws::AwsService;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::asynchronous::Backlog;
use crate::aws::FrontDoor;
use crate::listener::{listen, share};
use crate::runtime::{self, Equipment};
use crate::settings::{Rules, Settings, SharedRules};
use crate::stop::Phase;

/// How long streams are given to bring their last words to their clients, once they are told to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The serving threads. When it is dropped, everything that is under way is dropped with it; to let it finish, call
/// [`DataPlane::drain`].
#[derive(Debug)]
pub struct DataPlane {
    address: SocketAddr,
    rules: SharedRules,
    phase: watch::Sender<Phase>,
    threads: Vec<Serving>,
}

#[derive(Debug)]
struct Serving {
    thread: JoinHandle<()>,
    ended: oneshot::Receiver<()>,
}

/// Changes the rules of a data plane, also when that is draining.
#[derive(Debug, Clone)]
pub struct RulesHandle {
    rules: SharedRules,
}

impl RulesHandle {
    /// The rules in force now.
    pub fn get(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Sets new rules; requests that have arrived keep those they came under.
    pub fn set(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }
}

/// How draining ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// All requests were answered whole.
    Completely,
    /// Some were still under way after the grace period, and were ended.
    Truncating,
}

impl DataPlane {
    /// Listens and serves, on threads of its own; the caller may be on any runtime, or none. `aws` answers what is asked
    /// of SageMaker's control plane and of AWS's other services; without it their paths are not served.
    ///
    /// # Errors
    ///
    /// When the address can't be listened on, or a thread can't be started.
    pub fn start(
        settings: Settings,
        fleet: Fleet,
        metrics: Arc<Metrics>,
        access_log: AccessLog,
        aws: Option<Arc<dyn AwsService>>,
    ) -> io::Result<DataPlane> {
        let threads = match settings.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let sockets = match &settings.inherited {
            Some(socket) => share(socket, threads)?,
            None => listen(settings.listen, threads)?,
        };
        let address = sockets.first().ok_or(io::ErrorKind::InvalidInput)?.local_addr()?;
        let connections = Arc::new(Semaphore::new(settings.rules.limits.connections as usize));
        let rules = Arc::new(ArcSwap::from_pointee(settings.rules));
        let (phase, watched) = watch::channel(Phase::Serving);
        let equipment = Equipment {
            fleet,
            metrics,
            access_log,
            aws: aws.map(FrontDoor),
            asynchronous: settings.async_dir.map(|directory| Arc::new(Backlog::in_directory(directory))),
            rules: Arc::clone(&rules),
            connections,
            phase: watched,
        };
        let threads =
            sockets.into_iter().map(|socket| Serving::start(equipment.clone(), socket)).collect::<io::Result<_>>()?;
        Ok(DataPlane { address, rules, phase, threads })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The handle by which the rules are changed while it serves.
    pub fn rules(&self) -> RulesHandle {
        RulesHandle { rules: Arc::clone(&self.rules) }
    }

    /// Stops: accepts nothing new, lets what is under way finish for `grace`, then ends it with an error that says so.
    pub async fn drain(mut self, grace: Duration) -> Drained {
        self.phase.send_replace(Phase::Draining);
        if tokio::time::timeout(grace, self.ended()).await.is_ok() {
            return Drained::Completely;
        }
        self.phase.send_replace(Phase::Truncating);
        // What does not end by then is dropped with the threads.
        let _ = tokio::time::timeout(LAST_WORDS, self.ended()).await;
        Drained::Truncating
    }

    async fn ended(&mut self) {
        for serving in &mut self.threads {
            // A thread that has gone without a word has ended, too.
            let _ = (&mut serving.ended).await;
        }
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Over);
        for serving in self.threads.drain(..) {
            // It drops what it has and ends at once; a panic of its has been told on standard error.
            let _ = serving.thread.join();
        }
    }
}

impl Serving {
    fn start(equipment: Equipment, socket: std::net::TcpListener) -> io::Result<Serving> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let (over, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("data-plane".into()).spawn(move || {
            if let Err(error) = runtime::run(equipment, socket, seed) {
                tracing::error!(%error, "a thread of the data plane cannot serve");
            }
            drop(over);
        })?;
        Ok(Serving { thread, ended })
    }
}
