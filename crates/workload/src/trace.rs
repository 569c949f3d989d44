//! Reads recorded traces line by line, shipped ones and files, and says in which line something is wrong.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

/// The longest line that is read: a session of an agent with thousands of requests is some 20 MB.
const LONGEST_LINE: u64 = 256 << 20;

/// Where a trace is read from. It is read anew for every run, one record at a time.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSource(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    Shipped { name: &'static str, gzip: &'static [u8] },
    File(PathBuf),
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("cannot open the trace {trace}: {source}")]
    Open { trace: String, source: io::Error },
    #[error("{trace}, line {line}: {source}")]
    Read { trace: String, line: u64, source: io::Error },
    #[error("{trace}, line {line}: longer than {LONGEST_LINE} bytes; every record needs its own line")]
    Endless { trace: String, line: u64 },
    #[error("{trace}, line {line}: {what}")]
    Record { trace: String, line: u64, what: String },
}

impl TraceSource {
    /// A file; one whose name ends in `.gz` is decompressed on the way.
    pub fn file(path: impl Into<PathBuf>) -> TraceSource {
        TraceSource(Place::File(path.into()))
    }

    pub(crate) const fn shipped(name: &'static str, gzip: &'static [u8]) -> TraceSource {
        TraceSource(Place::Shipped { name, gzip })
    }

    /// The records that `parse` makes of the lines, or what it says is wrong with one; `None` is no record. Ends after
    /// the first error.
    pub(crate) fn records<T, P>(&self, parse: P) -> Records<P>
    where
        P: FnMut(&str) -> Result<Option<T>, String>,
    {
        Records { state: State::Closed(self.clone()), parse }
    }

    fn open(&self) -> Result<Box<dyn BufRead + Send>, TraceError> {
        match &self.0 {
            Place::Shipped { gzip, .. } => Ok(Box::new(BufReader::new(MultiGzDecoder::new(*gzip)))),
            Place::File(path) => open_file(path).map_err(|source| TraceError::Open { trace: self.to_string(), source }),
        }
    }
}

fn open_file(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let file = BufReader::new(File::open(path)?);
    let compressed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(if compressed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

impl fmt::Display for TraceSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Shipped { name, .. } => formatter.write_str(name),
            Place::File(path) => path.display().fmt(formatter),
        }
    }
}

impl fmt::Debug for TraceSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TraceSource({self})")
    }
}

/// The records of a trace, in order.
pub(crate) struct Records<P> {
    state: State,
    parse: P,
}

enum State {
    Closed(TraceSource),
    Open(Lines),
    Ended,
}

impl<T, P: FnMut(&str) -> Result<Option<T>, String>> Iterator for Records<P> {
    type Item = Result<T, TraceError>;

    fn next(&mut self) -> Option<Result<T, TraceError>> {
        let record = self.read().transpose();
        if !matches!(record, Some(Ok(_))) {
            self.state = State::Ended;
        }
        record
    }
}

impl<T, P: FnMut(&str) -> Result<Option<T>, String>> Records<P> {
    fn read(&mut self) -> Result<Option<T>, TraceError> {
        if let State::Closed(source) = &self.state {
            self.state = State::Open(Lines::of(source)?);
        }
        let State::Open(lines) = &mut self.state else { return Ok(None) };
        while lines.advance()? {
            let text = lines.text.trim();
            match if text.is_empty() { Ok(None) } else { (self.parse)(text) } {
                Ok(None) => {}
                Ok(record) => return Ok(record),
                Err(what) => return Err(TraceError::Record { trace: lines.trace.clone(), line: lines.number, what }),
            }
        }
        Ok(None)
    }
}

/// An open trace with the line last read.
struct Lines {
    trace: String,
    reader: Box<dyn BufRead + Send>,
    text: String,
    number: u64,
}

impl Lines {
    fn of(source: &TraceSource) -> Result<Lines, TraceError> {
        Ok(Lines { trace: source.to_string(), reader: source.open()?, text: String::new(), number: 0 })
    }

    /// Reads the next line; false at the end.
    fn advance(&mut self) -> Result<bool, TraceError> {
        self.number += 1;
        self.text.clear();
        let (trace, line) = (|| self.trace.clone(), self.number);
        match self.reader.by_ref().take(LONGEST_LINE).read_line(&mut self.text) {
            Ok(length) if length as u64 == LONGEST_LINE => Err(TraceError::Endless { trace: trace(), line }),
            Ok(length) => Ok(length > 0),
            Err(source) => Err(TraceError::Read { trace: trace(), line, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tempfile::TempDir;

    use super::TraceSource;
    use crate::{Azure, Load, Mooncake, Plan, Workload};

    fn file(name: &str, content: &[u8]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn numbers(path: &Path) -> Vec<Result<u32, String>> {
        let parse = |line: &str| line.parse().map(Some).map_err(|_| format!("{line:?} is no number"));
        let shorter = |error: super::TraceError| error.to_string().replace(&path.display().to_string(), "FILE");
        TraceSource::file(path).records(parse).map(|number| number.map_err(shorter)).collect()
    }

    /// How many requests a trace in a file has before its end or the error.
    fn replay(workload: impl Fn(TraceSource) -> Workload, content: &str) -> (usize, Option<String>) {
        let (_folder, path) = file("trace", content.as_bytes());
        let plan = Plan::new(workload(TraceSource::file(&path)), 1).unwrap();
        let Load::Open(arrivals) = plan.load() else { panic!("a trace is no closed loop") };
        let mut arrivals: Vec<_> = arrivals.collect();
        let error = arrivals.pop_if(|last| last.is_err()).and_then(Result::err);
        let error = error.map(|error| error.to_string().replace(&path.display().to_string(), "FILE"));
        assert!(arrivals.iter().all(Result::is_ok));
        (arrivals.len(), error)
    }

    #[test]
    fn reading_ends_at_the_first_wrong_line_and_names_it() {
        let (_folder, path) = file("trace", b"1\n\n 2 \r\n3\nfour\n5\n");
        let error = "FILE, line 5: \"four\" is no number".to_owned();
        assert_eq!(numbers(&path), [Ok(1), Ok(2), Ok(3), Err(error)]);
    }

    #[test]
    fn a_compressed_file_is_read_like_a_plain_one() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"7\n8").unwrap();
        let (_folder, path) = file("trace.gz", &gzip.finish().unwrap());
        assert_eq!(numbers(&path), [Ok(7), Ok(8)]);
        std::fs::write(&path, b"7\n8").unwrap();
        assert!(numbers(&path)[0].as_ref().is_err_and(|error| error.starts_with("FILE, line 1: ")));
    }

    #[test]
    fn a_missing_file_is_the_first_and_last_record() {
        let (folder, _) = file("trace", b"");
        let numbers = numbers(&folder.path().join("other"));
        assert_eq!(numbers.len(), 1);
        assert!(numbers[0].as_ref().is_err_and(|error| error.starts_with("cannot open the trace ")), "{numbers:?}");
    }

    #[test]
    fn wrong_mooncake_records_are_named() {
        let replay = |content: &str| replay(|trace| Mooncake { trace }.into(), content);
        let good = r#"{"timestamp": 5, "input_length": 513, "output_length": 0, "hash_ids": [0, 1], "more": 1}"#;
        assert_eq!(replay(&format!("{good}\n{good}")), (2, None));
        let (count, error) = replay(&format!("{good}\n{}", good.replace("[0, 1]", "[0]")));
        assert_eq!((count, error.is_some_and(|error| error.contains("line 2: hash_ids has 1 entries"))), (1, true));
        let (count, error) = replay(&format!("{good}\n{}", good.replace(": 5,", ": 4,")));
        let expected = "FILE, line 2: the time stamp goes back from 5 to 4; sort the trace by time";
        assert_eq!((count, error.as_deref()), (1, Some(expected)));
        let (count, error) = replay(&good.replace("input_length", "input"));
        assert_eq!((count, error.is_some_and(|error| error.contains("missing field `input_length`"))), (0, true));
    }

    #[test]
    fn wrong_azure_records_are_named() {
        let replay = |content: &str| replay(|trace| Azure { trace }.into(), content);
        let header = "TIMESTAMP,ContextTokens,GeneratedTokens";
        let good = "2023-11-16 23:59:59.9,10,0";
        assert_eq!(replay(&format!("{header}\n{good}\n2023-11-17 00:00:00.1000000,0,3\n")), (2, None));
        for (line, what) in [
            ("2023-11-16 23:59:59.8,1,1", "the time goes back to 2023-11-16T23:59:59.8; sort the trace by time"),
            ("2023-11-17 00:00:00,1", "2 fields; the three of a trace are TIMESTAMP,ContextTokens,GeneratedTokens"),
            ("2023-11-17 00:00:00,-1,1", "ContextTokens is \"-1\"; it must be a whole number of tokens"),
        ] {
            let expected = format!("FILE, line 3: {what}");
            assert_eq!(replay(&format!("{header}\n{good}\n{line}\n")), (1, Some(expected)));
        }
        let (_, error) = replay("yesterday,1,1");
        assert!(error.is_some_and(|error| error.starts_with("FILE, line 1: TIMESTAMP is \"yesterday\": ")));
    }
}
