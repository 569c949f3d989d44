//! The signals that end or change a running router.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM: both ask for an orderly end.
pub(crate) struct Termination {
    interrupt: Signal,
    terminate: Signal,
}

impl Termination {
    /// Listens from now on; must be called within a runtime.
    pub(crate) fn listen() -> io::Result<Termination> {
        Ok(Termination { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next of the two.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// SIGHUP: read the configuration again, open the access log again (its file may have been rotated).
pub(crate) struct Hangups {
    signal: Signal,
}

impl Hangups {
    /// Listens from now on; must be called within a runtime.
    pub(crate) fn listen() -> io::Result<Hangups> {
        Ok(Hangups { signal: signal(SignalKind::hangup())? })
    }

    /// Waits for the next one.
    pub(crate) async fn wait(&mut self) {
        self.signal.recv().await;
    }
}
