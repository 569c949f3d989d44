//! Cuts a stream of server-sent events into the data of its events, whatever the pieces in which it comes.

/// Keeps what is not yet a whole event. Understands LF, CRLF and CR as line ends, comments, and data over several
/// lines (WHATWG HTML, section 9.2.6).
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    after_carriage_return: bool,
}

impl EventReader {
    /// Takes the next piece of the stream and hands the data of every event that it completes to `event`.
    pub(crate) fn read<E>(&mut self, mut piece: &[u8], mut event: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        loop {
            if self.after_carriage_return && !piece.is_empty() {
                self.after_carriage_return = false;
                piece = piece.strip_prefix(b"\n").unwrap_or(piece);
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', piece) else {
                self.line.extend_from_slice(piece);
                return Ok(());
            };
            self.line.extend_from_slice(&piece[..end]);
            self.after_carriage_return = piece[end] == b'\r';
            piece = &piece[end + 1..];
            if self.line.is_empty() {
                if let Some(data) = self.data.strip_suffix(b"\n") {
                    event(data)?;
                }
                self.data.clear();
            } else if let Some(data) = self.line.strip_prefix(b"data:") {
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                self.data.push(b'\n');
            }
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::EventReader;

    fn events(stream: &str, size: usize) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        for piece in stream.as_bytes().chunks(size) {
            let taken: Result<(), Infallible> = reader.read(piece, |data| {
                events.push(String::from_utf8(data.to_vec()).unwrap());
                Ok(())
            });
            taken.unwrap();
        }
        events
    }

    #[test]
    fn finds_the_same_events_under_any_chunking_and_line_end() {
        let stream = ": ping\nevent: x\ndata: {\"a\": 1}\n\ndata:two\ndata: lines\nid: 7\n\n\ndata: é\n\ndata: [DONE]\n\ndata: lost";
        let expected = ["{\"a\": 1}", "two\nlines", "é", "[DONE]"];
        for line_end in ["\n", "\r\n", "\r"] {
            let stream = stream.replace('\n', line_end);
            for size in 1..=stream.len() {
                let expected = expected.map(str::to_owned);
                assert_eq!(events(&stream, size), expected, "{line_end:?} in pieces of {size}");
            }
        }
    }
}
