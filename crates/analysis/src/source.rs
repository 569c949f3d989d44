//! Where a log is read from: a file or standard input, compressed or not.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use crate::Watch;

/// The first two bytes of everything that gzip compressed.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// One log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// `-`.
    Standard,
    /// A file, compressed with gzip or not.
    File(PathBuf),
    /// A log that is at hand, and what it is called.
    Text {
        /// What it is called.
        name: String,
        /// All of it.
        log: Arc<[u8]>,
    },
}

impl Input {
    /// `-` is standard input.
    pub fn new(path: &Path) -> Input {
        if path == Path::new("-") { Input::Standard } else { Input::File(path.to_owned()) }
    }

    /// How many bytes there are to read; `None` where nobody knows before.
    pub fn length(&self) -> Option<u64> {
        match self {
            Input::Standard => None,
            Input::File(path) => Some(std::fs::metadata(path).ok()?.len()),
            Input::Text { log, .. } => Some(log.len() as u64),
        }
    }

    /// Opens it. Whether it is compressed is told by its first bytes, not by its name.
    pub(crate) fn open<'w>(&self, watch: &'w dyn Watch) -> io::Result<Box<dyn BufRead + 'w>> {
        let raw: Box<dyn Read> = match self {
            Input::Standard => Box::new(io::stdin()),
            Input::File(path) => Box::new(File::open(path)?),
            Input::Text { log, .. } => Box::new(io::Cursor::new(Arc::clone(log))),
        };
        let mut reader = BufReader::with_capacity(1 << 16, Counted { raw, watch });
        Ok(if reader.fill_buf()?.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader)))
        } else {
            Box::new(reader)
        })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Standard => formatter.write_str("standard input"),
            Input::File(path) => path.display().fmt(formatter),
            Input::Text { name, .. } => formatter.write_str(name),
        }
    }
}

/// Tells how much was read.
struct Counted<'w> {
    raw: Box<dyn Read>,
    watch: &'w dyn Watch,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.watch.read(read as u64);
        Ok(read)
    }
}
