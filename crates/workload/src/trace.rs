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
