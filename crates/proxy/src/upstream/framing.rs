//! Where the body of an instance's response ends, and its bytes freed from the framing that carried them.

mod extension;

use bytes::{Buf, Bytes, BytesMut};

/// The longest line of a chunk's size and extensions, in bytes.
const LONGEST_SIZE_LINE: usize = 1_024;
/// All trailer lines together, in bytes; they are read and dropped.
const LONGEST_TRAILERS: usize = 16 * 1024;
/// A chunk that begins behind another in the same read is moved up to it when it is at most this long, so that small
/// chunks that came together leave as one piece; a longer one leaves as its own piece, uncopied.
const LONGEST_MOVED: usize = 4 * 1024;

/// How a body is framed (RFC 9112, section 6.3), and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Content-Length: this many bytes are left.
    Length(u64),
    /// Transfer-Encoding: chunked, as a server writes it: some leave blanks behind a chunk's size.
    Chunked(Chunked),
    /// Transfer-Encoding: chunked, to the letter. Of requests, since whoever reads one otherwise finds another one in it.
    StrictlyChunked(Chunked),
    /// Neither: until the connection is closed.
    UntilClose,
}

/// How far a chunked body has come (RFC 9112, section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunked {
    /// Before a size line.
    Size,
    /// Within a chunk: this many bytes are left of it.
    Data(u64),
    /// Before the line end that follows a chunk's data.
    DataEnd,
    /// Behind the last chunk; the trailers so far were this long.
    Trailers(usize),
    /// Behind the end.
    Ended,
}

/// What the bytes at hand hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of the body, at least one.
    Data(Bytes),
    /// Nothing yet: more must be read.
    NotYet,
    /// The body's end.
    End,
}

/// Bytes that are no chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunked framing is broken: {0}")]
pub(crate) struct BrokenFraming(&'static str);

impl Framing {
    /// A body that has no bytes.
    pub(crate) const EMPTY: Framing = Framing::Length(0);
    /// A chunked body at its beginning.
    pub(crate) const CHUNKED: Framing = Framing::Chunked(Chunked::Size);
    /// A request's chunked body at its beginning.
    pub(crate) const STRICTLY_CHUNKED: Framing = Framing::StrictlyChunked(Chunked::Size);

    /// Whether the body is known to have come to its end.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(Chunked::Ended) | Framing::StrictlyChunked(Chunked::Ended))
    }

    /// Whether the connection's end is the body's end.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self, Framing::UntilClose)
    }

    /// How many bytes are left, where that is known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match *self {
            Framing::Length(left) => Some(left),
            _ if self.has_ended() => Some(0),
            Framing::Chunked(_) | Framing::StrictlyChunked(_) | Framing::UntilClose => None,
        }
    }

    /// Takes the next piece of the body out of what was read.
    pub(crate) fn take(&mut self, read: &mut BytesMut) -> Result<Piece, BrokenFraming> {
        match self {
            _ if self.has_ended() => Ok(Piece::End),
            Framing::Length(left) => {
                let length = bounded(*left, read.len());
                *left -= length as u64;
                Ok(data(read.split_to(length)))
            }
            Framing::UntilClose => Ok(data(read.split())),
            Framing::Chunked(state) => state.take(read, Blanks::Passed),
            Framing::StrictlyChunked(state) => state.take(read, Blanks::Refused),
        }
    }
}

fn data(bytes: BytesMut) -> Piece {
    if bytes.is_empty() { Piece::NotYet } else { Piece::Data(bytes.freeze()) }
}

/// How much of `left` is there when `available` bytes are.
fn bounded(left: u64, available: usize) -> usize {
    usize::try_from(left).map_or(available, |left| left.min(available))
}

/// What becomes of blanks behind a chunk's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blanks {
    Passed,
    Refused,
}

impl Chunked {
    fn take(&mut self, read: &mut BytesMut, blanks: Blanks) -> Result<Piece, BrokenFraming> {
        // The data found so far stands at `start..end`; `at` is how far the bytes have been looked at.
        let (mut start, mut end, mut at) = (0, 0, 0);
        loop {
            let rest = &read[at..];
            match *self {
                Chunked::Size => match size_line(rest, blanks)? {
                    Some((0, length)) => {
                        at += length;
                        *self = Chunked::Trailers(0);
                    }
                    Some((size, length)) => {
                        at += length;
                        *self = Chunked::Data(size);
                    }
                    None => break,
                },
                Chunked::Data(left) => {
                    let length = bounded(left, rest.len());
                    if length == 0 || (end > start && length > LONGEST_MOVED) {
                        break;
                    }
                    if end == start {
                        (start, end) = (at, at);
                    }
                    if end < at {
                        read.copy_within(at..at + length, end);
                    }
                    (end, at) = (end + length, at + length);
                    let left = left - length as u64;
                    *self = if left == 0 { Chunked::DataEnd } else { Chunked::Data(left) };
                }
                Chunked::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        at += 2;
                        *self = Chunked::Size;
                    }
                    [] | [b'\r'] => break,
                    _ => return Err(BrokenFraming("a chunk is not followed by a line end")),
                },
                Chunked::Trailers(before) => match line(rest, LONGEST_TRAILERS - before)? {
                    Some([]) => {
                        at += 2;
                        *self = Chunked::Ended;
                    }
                    Some(trailer) if !is_header(trailer) => return Err(BrokenFraming("a trailer is no header")),
                    Some(trailer) => {
                        at += trailer.len() + 2;
                        *self = Chunked::Trailers((before + trailer.len() + 2).min(LONGEST_TRAILERS));
                    }
                    None => break,
                },
                Chunked::Ended => break,
            }
        }
        read.advance(start);
        let data = read.split_to(end - start);
        read.advance(at - end);
        match (data.is_empty(), *self) {
            (false, _) => Ok(Piece::Data(data.freeze())),
            (true, Chunked::Ended) => Ok(Piece::End),
            (true, _) => Ok(Piece::NotYet),
        }
    }
}

/// The size in a chunk's first line, and the line's length with its end; `None` while it is not whole.
fn size_line(bytes: &[u8], blanks: Blanks) -> Result<Option<(u64, usize)>, BrokenFraming> {
    let Some(line) = line(bytes, LONGEST_SIZE_LINE)? else { return Ok(None) };
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, rest) = line.split_at(digits);
    let extensions = if blanks == Blanks::Passed { without_blanks_behind(rest) } else { rest };
    if !(1..=16).contains(&digits) {
        return Err(BrokenFraming("a chunk does not begin with its size in hexadecimal"));
    }
    if !extension::are_sound(extensions) {
        return Err(BrokenFraming("what stands behind a chunk's size is no extension"));
    }
    let value = |digit: u8| u64::from(char::from(digit).to_digit(16).unwrap_or(0));
    Ok(Some((size.iter().fold(0, |size, &digit| size << 4 | value(digit)), line.len() + 2)))
}

fn without_blanks_behind(mut line: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\t'] = line {
        line = before;
    }
    line
}

/// Whether a line is a name and a value.
fn is_header(line: &[u8]) -> bool {
    let is_of_value = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
    colon > 0 && line[..colon].iter().copied().all(extension::is_of_token) && line[colon..].iter().all(is_of_value)
}

/// The bytes before the first CR LF; `None` while there is none.
fn line(bytes: &[u8], longest: usize) -> Result<Option<&[u8]>, BrokenFraming> {
    match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) if end <= longest && end > 0 && bytes[end - 1] == b'\r' => Ok(Some(&bytes[..end - 1])),
        Some(end) if end <= longest => Err(BrokenFraming("a line does not end with CR LF")),
        None if bytes.len() <= longest => Ok(None),
        _ => Err(BrokenFraming("a line is too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of a body that arrives in pieces of `step` bytes, and the pieces that it left in.
    fn decode(wire: &[u8], step: usize) -> Result<(Vec<u8>, usize), BrokenFraming> {
        let (mut framing, mut read) = (Framing::CHUNKED, BytesMut::new());
        let (mut body, mut pieces) = (Vec::new(), 0);
        for arrived in wire.chunks(step) {
            read.extend_from_slice(arrived);
            loop {
                match framing.take(&mut read)? {
                    Piece::Data(data) => {
                        body.extend_from_slice(&data);
                        pieces += 1;
                    }
                    Piece::NotYet => break,
                    Piece::End => {
                        assert!(read.is_empty(), "bytes are left: {read:?}");
                        return Ok((body, pieces));
                    }
                }
            }
        }
        panic!("no end in {:?}", String::from_utf8_lossy(wire))
    }

    #[test]
    fn chunks_come_out_the_same_however_they_arrive() {
        let wire = b"5\r\nhello\r\n1;ext=\"x\"\r\n,\r\n0006 \r\n world\r\n0\r\nx-trailer: 1\r\n\r\n";
        for step in 1..=wire.len() {
            let (body, pieces) = decode(wire, step).unwrap();
            assert_eq!(body, b"hello, world", "step {step}");
            assert!(step < wire.len() || pieces == 1, "chunks that came together leave as one piece");
        }
    }

    #[test]
    fn a_long_chunk_leaves_as_its_own_piece() {
        let long = "x".repeat(LONGEST_MOVED + 1);
        let wire = format!("2\r\nab\r\n{:x}\r\n{long}\r\n1\r\nc\r\n0\r\n\r\n", long.len());
        let (body, pieces) = decode(wire.as_bytes(), wire.len()).unwrap();
        assert_eq!(body, format!("ab{long}c").as_bytes());
        assert_eq!(pieces, 2);
    }

    #[test]
    fn what_is_no_chunked_body_is_refused() {
        let long_line = format!("1;{}", "x".repeat(2_000));
        for wire in ["\r\n", "x\r\n", "-1\r\n", "11111111111111111\r\n", "1\nx", "1\r\nxy\r\n", "1 x\r\n", &long_line] {
            let mut read = BytesMut::from(wire);
            let mut framing = Framing::CHUNKED;
            let mut outcome = framing.take(&mut read);
            if let Ok(Piece::Data(_)) = outcome {
                outcome = framing.take(&mut read);
            }
            assert!(outcome.is_err(), "{wire:?} gave {outcome:?}");
        }
    }

    #[test]
    fn blanks_behind_a_size_pass_in_answers_and_in_no_request() {
        let take = |mut framing: Framing| framing.take(&mut BytesMut::from("2 \r\nab\r\n"));
        assert_eq!(take(Framing::CHUNKED), Ok(Piece::Data(Bytes::from("ab"))));
        assert!(take(Framing::STRICTLY_CHUNKED).is_err());
    }

    #[test]
    fn trailers_are_bounded() {
        let mut read = BytesMut::from("0\r\n");
        let mut framing = Framing::CHUNKED;
        let refused = (0..LONGEST_TRAILERS).any(|_| {
            read.extend_from_slice(b"a: b\r\n");
            framing.take(&mut read).is_err()
        });
        assert!(refused);
    }

    #[test]
    fn a_length_takes_no_byte_too_many() {
        let mut read = BytesMut::from("hello, world");
        let mut framing = Framing::Length(5);
        assert_eq!(framing.take(&mut read), Ok(Piece::Data(Bytes::from("hello"))));
        assert_eq!(framing.take(&mut read), Ok(Piece::End));
        assert_eq!(read, ", world");
        let mut empty = Framing::EMPTY;
        assert_eq!(empty.take(&mut BytesMut::new()), Ok(Piece::End));
    }

    #[test]
    fn without_a_length_everything_belongs_to_the_body() {
        let mut read = BytesMut::from("hello");
        let mut framing = Framing::UntilClose;
        assert_eq!(framing.take(&mut read), Ok(Piece::Data(Bytes::from("hello"))));
        assert_eq!(framing.take(&mut read), Ok(Piece::NotYet));
        assert!(framing.ends_with_connection() && !framing.has_ended());
    }
}
