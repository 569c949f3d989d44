//! Cuts a log into its records: lines, or the elements of one array.

use std::io::{self, BufRead, Read};

/// The longest record that is read, in bytes.
const LONGEST_RECORD: usize = 256 << 20;

/// How much is looked at to tell what a log is.
const PEEKED: u64 = 4 << 10;

/// Editors put it in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What stands in front of UTF-16, which nothing here reads.
const UTF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// A log with the record last read. Memory is that of the longest record.
pub(crate) struct Records<'w> {
    reader: Box<dyn BufRead + 'w>,
    shape: Shape,
    record: Vec<u8>,
    number: u64,
}

/// How records follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Lines,
    /// In the array that begins next at the top, or under `entries` at a HAR's second level.
    Array {
        har: bool,
    },
    InArray,
    Ended,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r> {
    /// As it is written, without white space around it.
    pub(crate) bytes: &'r [u8],
    /// Its line, or its place in the array, from 1.
    pub(crate) number: u64,
}

impl<'w> Records<'w> {
    pub(crate) fn new(mut reader: Box<dyn BufRead + 'w>) -> io::Result<Records<'w>> {
        let mut beginning = Vec::new();
        match reader.by_ref().take(PEEKED).read_to_end(&mut beginning) {
            // Whoever reads on meets it again.
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => {}
        }
        if UTF_16.iter().any(|mark| beginning.starts_with(mark)) {
            let what = "it is in UTF-16; JSON is UTF-8: iconv -f UTF-16 -t UTF-8 makes it that";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let shape = shape(&beginning);
        let marked = if beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let reader = Box::new(io::Cursor::new(beginning.split_off(marked)).chain(reader));
        Ok(Records { reader, shape, record: Vec::new(), number: 0 })
    }

    /// The records are the entries of a HAR.
    pub(crate) fn is_har(&self) -> bool {
        self.shape == Shape::Array { har: true }
    }

    /// The next record that is not empty; `None` at the end.
    ///
    /// # Errors
    /// When nothing can be read, a record is longer than 256 MiB, or an array breaks off.
    pub(crate) fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        if let Shape::Array { har } = self.shape {
            let found = self.enter(har)?;
            self.shape = if found { Shape::InArray } else { Shape::Ended };
        }
        let found = match self.shape {
            Shape::Lines => self.line()?,
            Shape::InArray => self.element()?,
            Shape::Array { .. } | Shape::Ended => false,
        };
        Ok(found.then(|| Record { bytes: self.record.trim_ascii(), number: self.number }))
    }

    fn line(&mut self) -> io::Result<bool> {
        loop {
            self.number += 1;
            self.record.clear();
            let read = self.reader.by_ref().take(LONGEST_RECORD as u64).read_until(b'\n', &mut self.record)?;
            if read == LONGEST_RECORD {
                return Err(too_long());
            }
            if read == 0 || !self.record.trim_ascii().is_empty() {
                return Ok(read > 0);
            }
        }
    }

    /// Goes into the array that holds the records.
    fn enter(&mut self, har: bool) -> io::Result<bool> {
        let (mut scan, mut last) = (Scan::default(), Vec::new());
        let wanted = if har { 2 } else { 0 };
        while let Some(byte) = self.byte()? {
            if byte == b'[' && scan.depth == wanted && !scan.in_string && (!har || last == b"entries") {
                return Ok(true);
            }
            let was_in_string = scan.in_string;
            scan.take(byte);
            match (was_in_string, scan.in_string) {
                (false, true) => last.clear(),
                (true, true) if last.len() < 16 => last.push(byte),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Reads one element; the reader stands behind the array's bracket or behind an element.
    fn element(&mut self) -> io::Result<bool> {
        self.record.clear();
        let mut scan = Scan::default();
        while let Some(byte) = self.byte()? {
            if scan.depth == 0 && !scan.in_string {
                match byte {
                    b',' if self.record.is_empty() => continue,
                    b']' => {
                        self.shape = Shape::Ended;
                        self.number += u64::from(!self.record.is_empty());
                        return Ok(!self.record.is_empty());
                    }
                    b',' => {
                        self.number += 1;
                        return Ok(true);
                    }
                    byte if byte.is_ascii_whitespace() => continue,
                    _ => {}
                }
            }
            scan.take(byte);
            self.record.push(byte);
            if self.record.len() > LONGEST_RECORD {
                return Err(too_long());
            }
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the array breaks off; the file is not whole"))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.reader.fill_buf()?.first().copied();
        self.reader.consume(usize::from(byte.is_some()));
        Ok(byte)
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a record is longer than {LONGEST_RECORD} bytes"))
}

/// What a log's beginning tells of its records.
fn shape(beginning: &[u8]) -> Shape {
    let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
    let squeezed: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(8).collect();
    if squeezed.starts_with(br#"{"log":{"#) {
        Shape::Array { har: true }
    } else if squeezed.starts_with(b"[") {
        Shape::Array { har: false }
    } else {
        Shape::Lines
    }
}

/// Where in a JSON text one is.
#[derive(Debug, Default)]
struct Scan {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    fn take(&mut self, byte: u8) {
        if self.in_string {
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !ends;
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &'static str) -> (Vec<(u64, String)>, Option<String>) {
        let mut records = Records::new(Box::new(log.as_bytes())).unwrap();
        let mut found = Vec::new();
        loop {
            match records.next() {
                Ok(Some(record)) => found.push((record.number, String::from_utf8_lossy(record.bytes).into_owned())),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    fn numbered(records: &[&str]) -> Vec<(u64, String)> {
        (1..).zip(records).map(|(number, record)| (number, (*record).to_owned())).collect()
    }

    #[test]
    fn lines_are_numbered_and_empty_ones_passed_over() {
        let (found, error) = read("{\"a\":1}\n\n {\"b\":2}\r\n");
        assert_eq!((found, error), (vec![(1, "{\"a\":1}".to_owned()), (3, "{\"b\":2}".to_owned())], None));
    }

    #[test]
    fn marks_of_the_encoding_are_no_part_of_a_record() {
        assert_eq!(read("\u{FEFF}{\"a\":1}\n{\"b\":2}").0, numbered(&["{\"a\":1}", "{\"b\":2}"]));
        assert_eq!(read("\u{FEFF}[{\"a\":1}]").0, numbered(&["{\"a\":1}"]));
        let error = Records::new(Box::new(&b"\xFF\xFE{\0"[..])).err().unwrap();
        assert!(error.to_string().contains("UTF-16"), "{error}");
    }

    #[test]
    fn the_elements_of_an_array_are_records() {
        let (found, error) = read("[\n {\"a\": \"],\\\"\"},\n [1, {}] , {\"b\": 2}\n]\n");
        assert_eq!((found, error), (numbered(&["{\"a\": \"],\\\"\"}", "[1, {}]", "{\"b\": 2}"]), None));
        assert_eq!(read("[]"), (Vec::new(), None));
    }

    #[test]
    fn the_entries_of_a_har_are_records() {
        let har = r#"{"log": {"version": "1.2", "pages": [{"entries": [1]}], "creator": {"name": "entries"},
                     "entries": [{"request": {"method": "POST"}}, {}]}}"#;
        assert_eq!(read(har), (numbered(&[r#"{"request": {"method": "POST"}}"#, "{}"]), None));
        assert!(Records::new(Box::new(har.as_bytes())).unwrap().is_har());
    }

    #[test]
    fn an_array_that_breaks_off_is_told() {
        let (found, error) = read("[{\"a\": 1}, {\"b\"");
        assert_eq!(found.len(), 1);
        assert!(error.is_some_and(|error| error.contains("not whole")));
    }
}
