//! Takes the event with the usage out of a stream whose client has not asked for it.

use memchr::memchr;

use super::event;

/// The longest event that is examined, in bytes. A usage is much shorter; what is longer passes.
const LONGEST: usize = 16 * 1024;

/// Passes a stream on, event by event, without the event that only tells the usage: the one with no choices.
///
/// Every other byte passes as it came, comments and line ends included. What has come of an event waits for its end, but
/// never more than 16 KiB of it.
#[derive(Debug, Default)]
pub struct UsageFilter {
    /// The beginning of an event that is not whole.
    event: Vec<u8>,
    /// How far the event has been searched for its end.
    searched: usize,
    /// The event that is not whole is too long to be examined.
    passes: bool,
}

impl UsageFilter {
    /// A filter at the beginning of a stream.
    pub fn new() -> UsageFilter {
        UsageFilter::default()
    }

    /// Takes the next piece; what may pass now is appended to `out`.
    pub fn filter(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.event.extend_from_slice(piece);
        while let Some(end) = self.end_of_event() {
            if self.passes || end > LONGEST || !event::is_usage_only(&self.event[..end]) {
                out.extend_from_slice(&self.event[..end]);
            }
            self.event.drain(..end);
            (self.searched, self.passes) = (0, false);
        }
        if self.passes || self.event.len() > LONGEST {
            // The end of an event may begin in the last bytes.
            let kept = self.event.len().min(3);
            out.extend(self.event.drain(..self.event.len() - kept));
            (self.searched, self.passes) = (kept, true);
        }
    }

    /// The stream has ended: what is left of it, which is no whole event.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.event);
        *self = UsageFilter::default();
    }

    /// Where the event ends: behind its blank line.
    fn end_of_event(&mut self) -> Option<usize> {
        while let Some(distance) = memchr(b'\n', &self.event[self.searched..]) {
            let behind = self.searched + distance + 1;
            let line = &self.event[..behind - 1];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.searched = behind;
            if line.is_empty() || line.ends_with(b"\n") {
                return Some(behind);
            }
        }
        self.searched = self.event.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const DELTA: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{}\"}}],\"usage\":null}\n\n";
    const USAGE: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    fn filtered<'c>(pieces: impl IntoIterator<Item = &'c [u8]>) -> String {
        let (mut filter, mut out) = (UsageFilter::new(), Vec::new());
        pieces.into_iter().for_each(|piece| filter.filter(piece, &mut out));
        filter.end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn only_the_usage_is_taken_out() {
        let stream = [": hello\n\n", DELTA, USAGE, DONE].concat();
        assert_eq!(filtered([stream.as_bytes()]), [": hello\n\n", DELTA, DONE].concat());
        let carriage = stream.replace('\n', "\r\n");
        assert_eq!(filtered([carriage.as_bytes()]), [": hello\n\n", DELTA, DONE].concat().replace('\n', "\r\n"));
    }

    #[test]
    fn what_tells_more_than_the_usage_passes() {
        for event in [
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5}}\n\n",
            "data: {\"choices\":[],\"usage\":null}\n\n",
            "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n",
            "data: {\"error\":{},\"choices\":[],\"usage\":{}}\n\n",
            "data: {\"usage\":{\"prompt_tokens\":5}}\n\n",
            "event: x\ndata: {\"choices\":[],\"usage\":{}\n\n",
            "data: x\n\n\n\n",
            "data: {\"choices\":[],\"usage\":{}}",
        ] {
            assert_eq!(filtered([event.as_bytes()]), event);
        }
    }

    #[test]
    fn a_long_event_passes_before_its_end_and_what_follows_is_examined_again() {
        let long = format!("data: {{\"choices\":[],\"x\":\"{}\",\"usage\":{{}}}}\n\n", "y".repeat(LONGEST));
        let (mut filter, mut out) = (UsageFilter::new(), Vec::new());
        filter.filter(&long.as_bytes()[..LONGEST + 9], &mut out);
        assert!(out.len() > LONGEST);
        let stream = [&long, USAGE, DONE].concat();
        for size in [1, 2, 3, 1_000, stream.len()] {
            assert!(filtered(stream.as_bytes().chunks(size)) == long.clone() + DONE, "{size}");
        }
    }

    #[test]
    fn an_event_passes_as_soon_as_it_is_whole() {
        let (mut filter, mut out) = (UsageFilter::new(), Vec::new());
        filter.filter(DELTA.as_bytes(), &mut out);
        assert_eq!(out, DELTA.as_bytes());
    }

    proptest! {
        #[test]
        fn how_the_stream_is_cut_does_not_matter(
            events in vec(prop_oneof![Just(DELTA), Just(USAGE), Just(DONE), Just(": x\r\n\r\n"), Just("\n"), Just("data: y")], 0..8),
            size in 1usize..80,
        ) {
            let stream = events.concat();
            prop_assert_eq!(filtered(stream.as_bytes().chunks(size)), filtered([stream.as_bytes()]));
        }
    }
}
