//! Several logs as one stream of requests in the order of their times.

use std::collections::{BinaryHeap, VecDeque};
use std::io;

use serde::Serialize;

use crate::Watch;
use crate::entry::{Entry, Microseconds};
use crate::format::Format;
use crate::read::{Reading, read};
use crate::records::Records;
use crate::source::Input;

/// Access logs are written when requests end; so many may have begun before one that stands before them.
const REORDERED: usize = 1_024;

/// What waits to be put into order takes at most about so much memory, in bytes.
const REORDERED_BYTES: usize = 64 << 20;

/// How many wrong records are told in full.
const TOLD: usize = 3;

/// Why logs cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file is not there or not for us.
    #[error("cannot open {log}: {source}")]
    Open {
        /// The file.
        log: String,
        /// What the system says.
        source: io::Error,
    },
    /// Reading broke off.
    #[error("{log}: {source}")]
    Read {
        /// The file.
        log: String,
        /// What the system says.
        source: io::Error,
    },
    /// No record could be read.
    #[error("{log}: no request in it, read as {format} (--format says otherwise); {why}")]
    NoRequests {
        /// The file.
        log: String,
        /// As what it was read.
        format: Format,
        /// What was wrong with the first record, or that there is none.
        why: String,
    },
}

/// What was found in one log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogCounts {
    /// The file.
    pub log: String,
    /// As what it was read; `None` for an empty one.
    pub format: Option<Format>,
    /// Requests with a prompt.
    pub requests: u64,
    /// Records that are something else.
    pub others: u64,
    /// Records that could not be read.
    pub wrong: u64,
    /// What was wrong with the first of them.
    pub what_was_wrong: Vec<String>,
}

/// All logs together.
pub(crate) struct Logs<'w> {
    logs: Vec<Log<'w>>,
    waiting: BinaryHeap<Waiting>,
    waiting_bytes: usize,
    sequence: u64,
    last: Option<Microseconds>,
    out_of_order: u64,
}

impl<'w> Logs<'w> {
    /// Opens them; nothing is read but the first bytes.
    pub(crate) fn open(inputs: &[Input], format: Option<Format>, watch: &'w dyn Watch) -> Result<Logs<'w>, LogError> {
        let logs = inputs.iter().map(|input| Log::open(input, format, watch)).collect::<Result<_, _>>()?;
        Ok(Logs { logs, waiting: BinaryHeap::new(), waiting_bytes: 0, sequence: 0, last: None, out_of_order: 0 })
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, LogError> {
        while self.waiting.len() < REORDERED && self.waiting_bytes < REORDERED_BYTES {
            let Some(entry) = self.first()? else { break };
            let Some(at) = entry.at else { return Ok(Some(entry)) };
            self.waiting_bytes += entry.content.size();
            self.sequence += 1;
            self.waiting.push(Waiting { at, sequence: self.sequence, entry });
        }
        Ok(self.waiting.pop().map(|Waiting { at, entry, .. }| {
            self.waiting_bytes -= entry.content.size();
            self.out_of_order += u64::from(self.last.is_some_and(|last| last > at));
            self.last = self.last.max(Some(at));
            entry
        }))
    }

    /// Requests that came although later ones had come before, further than could be put in order.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// What was in each.
    ///
    /// # Errors
    /// When one had records and no request among them.
    pub(crate) fn counts(self) -> Result<Vec<LogCounts>, LogError> {
        let counts: Vec<LogCounts> = self.logs.into_iter().map(|log| log.counts).collect();
        let nothing_at_all = counts.iter().all(|counts| counts.requests == 0);
        let useless = |counts: &&LogCounts| counts.requests == 0 && (nothing_at_all || counts.format.is_some());
        if let Some(counts) = counts.iter().find(useless) {
            let why = match (counts.what_was_wrong.first(), counts.others) {
                (Some(what), _) => what.clone(),
                (None, 0) => "it is empty".to_owned(),
                (None, others) => format!("its {others} records carry no prompt"),
            };
            let (log, format) = (counts.log.clone(), counts.format.unwrap_or(Format::Bodies));
            return Err(LogError::NoRequests { log, format, why });
        }
        Ok(counts)
    }

    /// The request that comes first of those that the logs have next; without a time it comes at once.
    fn first(&mut self) -> Result<Option<Entry>, LogError> {
        for log in &mut self.logs {
            log.fill()?;
        }
        let next = |log: &Log<'_>| log.ready.front().map(|entry| entry.at);
        let first = self.logs.iter_mut().filter(|log| next(log).is_some()).min_by_key(|log| next(log));
        Ok(first.and_then(|log| log.ready.pop_front()))
    }
}

/// One log.
struct Log<'w> {
    records: Records<'w>,
    counts: LogCounts,
    /// Requests of the record read last.
    ready: VecDeque<Entry>,
    ended: bool,
}

impl<'w> Log<'w> {
    fn open(input: &Input, format: Option<Format>, watch: &'w dyn Watch) -> Result<Log<'w>, LogError> {
        let log = input.to_string();
        let records = input.open(watch).and_then(Records::new);
        let records = records.map_err(|source| LogError::Open { log: log.clone(), source })?;
        let format = format.or(records.is_har().then_some(Format::Har));
        let counts = LogCounts { log, format, requests: 0, others: 0, wrong: 0, what_was_wrong: Vec::new() };
        Ok(Log { records, counts, ready: VecDeque::new(), ended: false })
    }

    /// Reads on until a request is ready or the log ends.
    fn fill(&mut self) -> Result<(), LogError> {
        while self.ready.is_empty() && !self.ended {
            let counts = &mut self.counts;
            let record = match self.records.next() {
                Ok(record) => record,
                // What stands before the place where a log breaks off is worth as much.
                Err(cut) if cut.kind() == io::ErrorKind::UnexpectedEof => {
                    counts.wrong += 1;
                    counts.what_was_wrong.insert(0, "the log breaks off, so it is not whole".to_owned());
                    None
                }
                Err(source) => return Err(LogError::Read { log: counts.log.clone(), source }),
            };
            let Some(record) = record else {
                self.ended = true;
                break;
            };
            let format = *counts.format.get_or_insert_with(|| Format::of(record.bytes).unwrap_or(Format::Bodies));
            let ready = &mut self.ready;
            match read(record.bytes, record.number, format, &mut |entry| ready.push_back(entry)) {
                Ok(Reading::Requests) => counts.requests += ready.len() as u64,
                Ok(Reading::Other) => counts.others += 1,
                Err(what) => {
                    counts.wrong += 1;
                    if counts.what_was_wrong.len() < TOLD {
                        counts.what_was_wrong.push(format!("record {}: {what}", record.number));
                    }
                }
            }
        }
        Ok(())
    }
}

/// A request that waits for its turn: the earliest is the greatest, as the heap wants it.
struct Waiting {
    at: Microseconds,
    sequence: u64,
    entry: Entry,
}

impl Waiting {
    fn turn(&self) -> std::cmp::Reverse<(Microseconds, u64)> {
        std::cmp::Reverse((self.at, self.sequence))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.turn().cmp(&other.turn())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.turn() == other.turn()
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tempfile::TempDir;

    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> (TempDir, Vec<Input>) {
        let folder = tempfile::tempdir().unwrap();
        let write = |(name, content): &(&str, &[u8])| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            Input::File(path)
        };
        let inputs = files.iter().map(write).collect();
        (folder, inputs)
    }

    fn body(second: u32) -> String {
        format!(r#"{{"timestamp":{second},"body":{{"prompt":"p"}}}}"#)
    }

    fn times(inputs: &[Input]) -> (Vec<Option<i64>>, Result<Vec<LogCounts>, LogError>) {
        let mut logs = Logs::open(inputs, None, &()).unwrap();
        let mut times = Vec::new();
        while let Some(entry) = logs.next().unwrap() {
            times.push(entry.at.map(|at| at / 1_000_000));
        }
        (times, logs.counts())
    }

    #[test]
    fn logs_are_merged_by_their_times_and_unordered_ones_put_in_order() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(format!("{}\n{}\n", body(2), body(5)).as_bytes()).unwrap();
        let plain = [body(4), body(1), body(3)].join("\n");
        let (_folder, inputs) = folder(&[("a.jsonl", plain.as_bytes()), ("b", &gzip.finish().unwrap())]);
        let (times, counts) = times(&inputs);
        assert_eq!(times, [1, 2, 3, 4, 5].map(Some));
        assert_eq!(counts.unwrap().iter().map(|counts| counts.requests).collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn wrong_records_are_counted_and_a_log_of_nothing_else_is_refused() {
        let (_folder, inputs) = folder(&[("a", format!("oops\n{}\n", body(1)).as_bytes())]);
        let (found, counts) = times(&inputs);
        assert_eq!((found.len(), counts.unwrap()[0].wrong), (1, 1));
        let (_folder, inputs) = folder(&[("a", b"{\"level\":\"info\"}\n")]);
        let error = times(&inputs).1.unwrap_err().to_string();
        assert!(error.contains("no request in it, read as bodies") && error.contains("record 1: neither"), "{error}");
        let (_folder, inputs) = folder(&[("a", b"")]);
        assert!(times(&inputs).1.unwrap_err().to_string().contains("it is empty"));
        assert!(Logs::open(&[Input::File("/nowhere/log".into())], None, &()).is_err());
    }

    #[test]
    fn of_a_log_that_breaks_off_the_beginning_is_read_and_the_rest_told() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let lines: String = (0..5_000).map(|second| format!("{}\n", body(second))).collect();
        gzip.write_all(lines.as_bytes()).unwrap();
        let whole = gzip.finish().unwrap();
        let array = format!("[{},{},{}", body(1), body(2), &body(3)[..9]);
        for (log, least) in [(&whole[..whole.len() / 2], 1_000), (array.as_bytes(), 2)] {
            let (_folder, inputs) = folder(&[("a", log)]);
            let (found, counts) = times(&inputs);
            let counts = counts.unwrap().remove(0);
            assert!(found.len() >= least && counts.wrong >= 1, "{counts:?}");
            assert!(counts.what_was_wrong[0].contains("breaks off"), "{counts:?}");
        }
        let (_folder, inputs) = folder(&[("a", &whole[..12])]);
        let error = times(&inputs).1.unwrap_err().to_string();
        assert!(error.contains("breaks off"), "{error}");
    }
}
