//! The thread that writes the access log: gathers the lines that are there and writes them at once. A full disk or a
//! closed pipe costs lines, which are counted, and one message; nothing else.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use prometheus_client::metrics::counter::Counter;

use super::AccessLogEntry;

/// Lines are gathered until this many bytes are there.
const BATCH: usize = 64 * 1024;

/// Opens what is written to, at start and whenever it shall be opened anew.
pub(super) type Open = Box<dyn Fn() -> io::Result<Box<dyn Write + Send>> + Send>;

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Message {
    /// Write a line.
    Line(Box<AccessLogEntry>),
    /// Say when everything before is written.
    Flush(SyncSender<()>),
}

pub(super) struct Writer {
    open: Open,
    output: Box<dyn Write + Send>,
    reopen: Arc<AtomicBool>,
    errors: Counter,
    /// Lines lost since writing last went well.
    lost: u64,
}

impl Writer {
    pub(super) fn new(open: Open, reopen: Arc<AtomicBool>, errors: Counter) -> io::Result<Writer> {
        Ok(Writer { output: open()?, open, reopen, errors, lost: 0 })
    }

    /// Writes until every handle on the log is gone.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Ok(first) = messages.recv() {
            let mut lines = 0;
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Line(entry) => {
                        entry.write_line(&mut batch);
                        lines += 1;
                    }
                    Message::Flush(done) => {
                        self.write(&mut batch, &mut lines);
                        // Whoever asked may have given up waiting.
                        let _ = done.try_send(());
                    }
                }
                next = if batch.len() < BATCH { messages.try_recv().ok() } else { None };
            }
            self.write(&mut batch, &mut lines);
        }
    }

    /// Writes the batch and empties it.
    fn write(&mut self, batch: &mut Vec<u8>, lines: &mut u64) {
        if batch.is_empty() {
            return;
        }
        match self.try_write(batch) {
            Ok(()) if self.lost > 0 => {
                tracing::info!(lost = self.lost, "the access log is written again");
                self.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.lost == 0 {
                    tracing::warn!(%error, "the access log cannot be written; its lines are dropped until it can");
                }
                self.lost += *lines;
                self.errors.inc_by(*lines);
            }
        }
        batch.clear();
        *lines = 0;
    }

    fn try_write(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.reopen.swap(false, Ordering::Relaxed) {
            self.output = (self.open)()?;
        }
        if self.lost > 0 {
            // The last attempt may have left half a line.
            self.output.write_all(b"\n")?;
        }
        self.output.write_all(batch)?;
        self.output.flush()
    }
}
