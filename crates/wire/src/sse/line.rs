//! One line of an event stream.

use memchr::memchr;

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    /// Nothing: the event is complete.
    Blank,
    /// `data`
    Data(&'a [u8]),
    /// `event`
    Event(&'a [u8]),
    /// `error`: no field of the standard, but how older llama.cpp servers send the JSON of an error.
    Error(&'a [u8]),
    /// A comment, or a field that does not matter here.
    Ignored,
}

/// Reads a line without its end. The `first` line of a stream may begin with a byte order mark.
pub(super) fn field(line: &[u8], first: bool) -> Field<'_> {
    let line = if first { without_mark(line, first) } else { line };
    if line.is_empty() {
        return Field::Blank;
    }
    // Nearly every line is one of data.
    if let Some(value) = line.strip_prefix(b"data:") {
        return Field::Data(value.strip_prefix(b" ").unwrap_or(value));
    }
    let (name, value) = match memchr(b':', line) {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, &line[line.len()..]),
    };
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match name {
        b"data" => Field::Data(value),
        b"event" => Field::Event(value),
        b"error" => Field::Error(value),
        _ => Field::Ignored,
    }
}

/// A line that begins so is a data line, whatever follows.
pub(super) fn is_data(beginning: &[u8], first: bool) -> bool {
    without_mark(beginning, first).starts_with(b"data:")
}

fn without_mark(line: &[u8], first: bool) -> &[u8] {
    line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| first).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_as_the_standard_does() {
        let cases: [(&[u8], Field<'_>); 11] = [
            (b"", Field::Blank),
            (b"data: x", Field::Data(b"x")),
            (b"data:x", Field::Data(b"x")),
            (b"data:  x ", Field::Data(b" x ")),
            (b"data", Field::Data(b"")),
            (b"data:", Field::Data(b"")),
            (b"data: a: b", Field::Data(b"a: b")),
            (b"event: error", Field::Event(b"error")),
            (b": ping", Field::Ignored),
            (b"id: 7", Field::Ignored),
            (b"database: x", Field::Ignored),
        ];
        for (line, expected) in cases {
            assert_eq!(field(line, false), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_beginning() {
        assert_eq!(field(b"\xEF\xBB\xBFdata: x", true), Field::Data(b"x"));
        assert_eq!(field(b"\xEF\xBB\xBFdata: x", false), Field::Ignored);
    }
}
