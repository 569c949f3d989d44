//! One serving thread: a runtime of its own, whose connections and their requests never leave it.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use isotherm_fleet::Fleet;
use isotherm_telemetry::{AccessLog, Metrics};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use crate::asynchronous::{self, Backlog};
use crate::aws::FrontDoor;
use crate::connection;
use crate::settings::SharedRules;
use crate::stop::Phase;
use crate::worker::Worker;

/// How often idle connections to instances are looked through, and memory that is not used any more is looked after.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How long to wait when no connection can be accepted because descriptors or memory are used up.
const PAUSE: Duration = Duration::from_millis(50);

/// What a thread is given to serve with.
#[derive(Debug, Clone)]
pub(crate) struct Equipment {
    /// The instances.
    pub(crate) fleet: Fleet,
    /// The instruments.
    pub(crate) metrics: Arc<Metrics>,
    /// The access log.
    pub(crate) access_log: AccessLog,
    /// What answers AWS's other services, where something does.
    pub(crate) aws: Option<FrontDoor>,
    /// What was accepted to be run by and by, where that is done.
    pub(crate) asynchronous: Option<Arc<Backlog>>,
    /// The rules in force.
    pub(crate) rules: SharedRules,
    /// One permit for each connection that there may be.
    pub(crate) connections: Arc<Semaphore>,
    /// The phase, as the data plane's owner sets it.
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Serves on this thread until the phase is over, or draining has come to its end.
///
/// # Errors
///
/// When the runtime can't be made or the socket can't be used.
pub(crate) fn run(equipment: Equipment, socket: std::net::TcpListener, seed: [u8; 32]) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(serve(equipment, socket, seed))
}

async fn serve(equipment: Equipment, socket: std::net::TcpListener, seed: [u8; 32]) -> io::Result<()> {
    let Equipment { fleet, metrics, access_log, aws, asynchronous, rules, connections, mut phase } = equipment;
    let listener = TcpListener::from_std(socket)?;
    let worker = Rc::new(Worker::new(fleet, metrics, access_log, aws, asynchronous, rules, Pcg64::from_seed(seed)));
    tokio::task::spawn_local(asynchronous::resume(Rc::clone(&worker)));
    let open = Rc::new(Open::default());
    let acceptor = Acceptor { worker: Rc::clone(&worker), open: Rc::clone(&open), connections };
    tokio::select! {
        () = acceptor.accept_all(&listener) => {}
        () = sweep(&worker) => {}
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => {}
    }
    // Who was let in by the kernel already must not be turned away.
    acceptor.accept_waiting(&listener.into_std()?);
    loop {
        let now = *phase.borrow_and_update();
        if now == Phase::Over {
            break;
        }
        worker.stop.enter(now);
        tokio::select! {
            () = open.none() => break,
            changed = phase.changed() => if changed.is_err() { break },
        }
    }
    worker.pool.clear();
    Ok(())
}

async fn sweep(worker: &Worker) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        worker.pool.sweep(worker.now(), worker.rules().timeouts.pool_idle);
        worker.leftover.look();
    }
}

struct Acceptor {
    worker: Rc<Worker>,
    open: Rc<Open>,
    connections: Arc<Semaphore>,
}

impl Acceptor {
    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            // Never closed; but if it were, there would be nothing to wait for.
            let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, client)) => self.serve(stream, client, permit),
                // A client that left before it was accepted, or a machine at its limits.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn accept_waiting(&self, listener: &std::net::TcpListener) {
        while let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() {
            let Ok((stream, client)) = listener.accept() else { return };
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                self.serve(stream, client, permit);
            }
        }
    }

    fn serve(&self, stream: TcpStream, client: std::net::SocketAddr, permit: OwnedSemaphorePermit) {
        let (worker, open) = (Rc::clone(&self.worker), Open::one_more(&self.open));
        tokio::task::spawn_local(async move {
            worker.metrics.client_connections().inc();
            let counted = Counted { worker: Rc::clone(&worker), _open: open, _permit: permit };
            connection::serve(stream, client, worker).await;
            drop(counted);
        });
    }
}

/// Counts a connection until it is dropped.
struct Counted {
    worker: Rc<Worker>,
    _open: OneOpen,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.worker.metrics.client_connections().dec();
    }
}

/// How many connections of this thread are open.
#[derive(Debug, Default)]
struct Open {
    count: Cell<usize>,
    none: Notify,
}

struct OneOpen(Rc<Open>);

impl Open {
    fn one_more(open: &Rc<Open>) -> OneOpen {
        open.count.set(open.count.get() + 1);
        OneOpen(Rc::clone(open))
    }

    /// Resolves when none is open.
    async fn none(&self) {
        while self.count.get() > 0 {
            self.none.notified().await;
        }
    }
}

impl Drop for OneOpen {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        if self.0.count.get() == 0 {
            self.0.none.notify_one();
        }
    }
}
