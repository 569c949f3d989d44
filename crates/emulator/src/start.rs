//! Starts an emulator on a thread of its own, and the handle through which others see and stop them.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use isotherm_engine_model::Statistics;
use thiserror::Error;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};

use crate::config::{EmulatorConfig, InvalidConfig};
use crate::faults::Faults;
use crate::lag::LagReport;
use crate::port::Port;
use crate::run::{Command, Shared, run};

/// Why an emulator did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The configured address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No thread or runtime could be made.
    #[error("cannot start the emulator's thread: {0}")]
    Thread(#[source] io::Error),
}

/// Starts an emulator on a thread of its own; returns when it listens.
///
/// A thread for each, even where there are more emulators than cores: on two cores seven of them on one thread cost as
/// much time and handed tokens out ten times later.
///
/// ```no_run
/// # async fn example() -> Result<(), isotherm_emulator::StartError> {
/// use isotherm_emulator::{EmulatorConfig, start};
///
/// let engine = start(EmulatorConfig { speed: 10.0, ..EmulatorConfig::default() })?;
/// println!("{} at {}", engine.summary(), engine.base_url());
/// engine.kill().await;
/// # Ok(())
/// # }
/// ```
pub fn start(config: EmulatorConfig) -> Result<RunningEmulator, StartError> {
    config.check()?;
    let (report, started) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("emulator".to_owned())
        .spawn(move || host(config, &report))
        .map_err(StartError::Thread)?;
    started.recv().map_err(|_| StartError::Thread(io::Error::other("the thread ended early")))?
}

/// The thread, from the start of its emulator to the end.
fn host(config: EmulatorConfig, report: &SyncSender<Result<RunningEmulator, StartError>>) {
    let runtime = match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = report.send(Err(StartError::Thread(error)));
            return;
        }
    };
    runtime.block_on(async {
        let port = match Port::bind(config.listen) {
            Ok(port) => port,
            Err(source) => {
                let _ = report.send(Err(StartError::Bind { address: config.listen, source }));
                return;
            }
        };
        let address = port.address();
        let shared = Arc::new(Shared::new());
        let (commands, receiver) = mpsc::unbounded_channel();
        let handle = RunningEmulator { address, summary: config.summary(), shared: Arc::clone(&shared), commands };
        let _ = report.send(Ok(handle));
        let identity = RandomState::new().hash_one(address);
        if let Err(error) = run(config, identity, port, shared, receiver).await {
            tracing::error!(%address, %error, "an emulator failed");
        }
    });
}

/// A running emulator. Dropping it stops the emulator at once.
#[derive(Debug)]
pub struct RunningEmulator {
    address: SocketAddr,
    summary: String,
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
}

impl RunningEmulator {
    /// The address bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://` and the address.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// One line for people: what it pretends to be.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// How late tokens were handed out, since the start or the last [`reset_lag`](Self::reset_lag).
    pub fn lag(&self) -> LagReport {
        self.shared.lag.report()
    }

    /// Begins a new measurement of lag.
    pub fn reset_lag(&self) {
        self.shared.lag.reset();
    }

    /// The engine's figures as of the last step.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// Replaces all faults; resolves when they are in force.
    pub async fn set_faults(&self, faults: Faults) {
        self.tell(|done| Command::SetFaults(faults, done)).await;
    }

    /// Stops accepting, lets requests under way end for at most `grace`, then stops.
    pub async fn shutdown(self, grace: Duration) {
        self.tell(|done| Command::Shutdown(grace, done)).await;
    }

    /// Closes all sockets at once, as a killed process does; resolves when that is done.
    pub async fn kill(self) {
        self.tell(Command::Kill).await;
    }

    /// An emulator that has ended already does what every command wants: nothing.
    async fn tell(&self, command: impl FnOnce(oneshot::Sender<()>) -> Command) {
        let (done, told) = oneshot::channel();
        if self.commands.send(command(done)).is_ok() {
            let _ = told.await;
        }
    }
}
