//! The access log: one line of JSON for each finished request, written beside the data plane and never in its way.

mod entry;
mod writer;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

pub use entry::AccessLogEntry;

use crate::Metrics;
use writer::{Message, Writer};

/// How many lines may wait to be written; further ones are dropped and counted.
const QUEUE: usize = 8_192;

/// A handle on the access log; clones write to the same place.
#[derive(Debug, Clone)]
pub struct AccessLog {
    on: Option<On>,
}

#[derive(Debug, Clone)]
struct On {
    queue: SyncSender<Message>,
    dropped: Counter,
    reopen: Arc<AtomicBool>,
}

impl AccessLog {
    /// A log that takes nothing.
    pub fn off() -> AccessLog {
        AccessLog { on: None }
    }

    /// A log to standard error.
    ///
    /// # Errors
    ///
    /// When the thread that writes can't be started.
    pub fn to_stderr(metrics: &Metrics) -> io::Result<AccessLog> {
        AccessLog::start(metrics, Box::new(|| Ok(Box::new(io::stderr()))))
    }

    /// A log to the end of a file, which is made when it is not there.
    ///
    /// # Errors
    ///
    /// When the file can't be opened for writing, or the thread that writes can't be started.
    pub fn to_file(path: &Path, metrics: &Metrics) -> io::Result<AccessLog> {
        let path = path.to_owned();
        let open = move || OpenOptions::new().create(true).append(true).open(&path);
        AccessLog::start(metrics, Box::new(move || open().map(|file: File| Box::new(file) as Box<dyn Write + Send>)))
    }

    fn start(metrics: &Metrics, open: writer::Open) -> io::Result<AccessLog> {
        let (queue, messages) = sync_channel(QUEUE);
        let reopen = Arc::new(AtomicBool::new(false));
        let writer = Writer::new(open, Arc::clone(&reopen), metrics.access_log_errors().clone())?;
        std::thread::Builder::new().name("access-log".into()).spawn(move || writer.run(&messages))?;
        Ok(AccessLog { on: Some(On { queue, dropped: metrics.access_log_dropped().clone(), reopen }) })
    }

    /// Writes a line, some time later. Never waits: where the writer does not keep up, the line is dropped and counted.
    /// The entry is only built when the log is on.
    pub fn log(&self, entry: impl FnOnce() -> AccessLogEntry) {
        if let Some(on) = &self.on
            && on.queue.try_send(Message::Line(Box::new(entry().bounded()))).is_err()
        {
            on.dropped.inc();
        }
    }

    /// Opens the file anew before the next line, after it was moved away by whoever rotates logs.
    pub fn reopen(&self) {
        if let Some(on) = &self.on {
            on.reopen.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until every line logged before is written, at most so long. Whether they were.
    pub fn flush(&self, at_most: Duration) -> bool {
        let Some(on) = &self.on else { return true };
        let (done, written) = sync_channel(1);
        on.queue.try_send(Message::Flush(done)).is_ok() && written.recv_timeout(at_most).is_ok()
    }
}

#[cfg(test)]
mod tests;
