//! The end of a chunked body, found while its bytes pass.

/// How far a chunked body has come.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes of data so far.
    pub(crate) data: u64,
    /// The last of them.
    tail: Vec<u8>,
}

/// How many of the last bytes are kept.
const TAIL: usize = 16;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the line of a chunk's size, which has come to this.
    #[default]
    Start,
    Size(u64),
    Extension(u64),
    /// In a chunk's data: so many bytes are left.
    Data(u64),
    /// Behind the data: the line's end.
    DataEnd,
    /// Behind the last chunk: in a line that holds nothing so far.
    Trailer,
    TrailerLine,
    Done,
}

impl Chunked {
    /// Takes the next bytes; what belongs behind the body is not read.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if let State::Data(left) = self.state {
                let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.data += taken as u64;
                self.tail.extend_from_slice(&bytes[taken.saturating_sub(TAIL)..taken]);
                self.tail.drain(..self.tail.len().saturating_sub(TAIL));
                self.state = if taken as u64 == left { State::DataEnd } else { State::Data(left - taken as u64) };
                bytes = &bytes[taken..];
                continue;
            }
            self.state = self.next(byte)?;
            if self.state == State::Done {
                return Ok(());
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Whether the data so far ends with these few bytes, wherever its chunks part them.
    pub(crate) fn ends_with(&self, end: &[u8]) -> bool {
        self.tail.ends_with(end)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn next(&self, byte: u8) -> Result<State, String> {
        Ok(match (self.state, byte) {
            (State::Start, _) => State::Size(digit(byte)?),
            (State::Size(size) | State::Extension(size), b'\n') => {
                if size == 0 {
                    State::Trailer
                } else {
                    State::Data(size)
                }
            }
            (State::Size(size), b'\r' | b';' | b' ') | (State::Extension(size), _) => State::Extension(size),
            (State::Size(size), _) => State::Size(size << 4 | digit(byte)?),
            (State::DataEnd, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Start,
            (State::Trailer, b'\n') => State::Done,
            (State::Trailer, b'\r') => State::Trailer,
            (State::TrailerLine, b'\n') => State::Trailer,
            (State::Trailer | State::TrailerLine, _) => State::TrailerLine,
            (state, _) => return Err(format!("byte {byte:#04x} in {state:?} of a chunked body")),
        })
    }
}

fn digit(byte: u8) -> Result<u64, String> {
    char::from(byte).to_digit(16).map(u64::from).ok_or_else(|| format!("byte {byte:#04x} in the size of a chunk"))
}

#[cfg(test)]
mod tests {
    use super::Chunked;

    #[test]
    fn the_end_is_found_however_the_bytes_are_cut() {
        let body = b"5\r\nhello\r\n19;x=y\r\n0\r\n\r\nabcdefghijklmnopqrst\r\n1\r\nu\r\n0\r\nX: y\r\n\r\n";
        for cut in 1..body.len() {
            let mut chunked = Chunked::default();
            chunked.pass(&body[..cut]).unwrap();
            assert!(!chunked.is_done(), "{cut}");
            chunked.pass(&body[cut..]).unwrap();
            assert!(chunked.is_done() && chunked.data == 31 && chunked.ends_with(b"tu"), "{cut}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        assert!(Chunked::default().pass(b"hello").is_err());
        assert!(Chunked::default().pass(b"1\r\nab").is_err());
    }
}
