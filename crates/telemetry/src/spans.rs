//! Traces in the form of OpenTelemetry: which requests have one, how it goes on to the engine, and what of the finished
//! ones waits to be sent. Off, it costs one look at an atomic for each request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use crate::AccessLogEntry;

/// How many finished requests may wait to be sent.
const WAITING: usize = 2_048;

/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// A request's place in a trace (W3C Trace Context, level 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace; never 0.
    pub trace: u128,
    /// The client's span, where it told one.
    pub parent: Option<u64>,
    /// The router's span of the whole request.
    pub request: u64,
    /// Its span of asking the engine, whose child the engine's own is.
    pub engine: u64,
    /// Whether it is recorded.
    pub sampled: bool,
}

/// A finished request that is to be told as spans.
#[derive(Debug, Clone)]
pub struct FinishedSpan {
    /// Its place.
    pub context: SpanContext,
    /// What is known of it.
    pub entry: AccessLogEntry,
    /// From its arrival until an instance was chosen, where one was.
    pub placed_after: Option<Duration>,
}

/// Which requests are traced, and those that have ended.
#[derive(Default)]
pub struct Spans {
    /// Of traces that begin here, those are recorded whose random number is below; 0: tracing is off.
    below: AtomicU64,
    waiting: Mutex<VecDeque<FinishedSpan>>,
    dropped: Counter,
}

impl Spans {
    pub(crate) fn counting(dropped: Counter) -> Spans {
        Spans { dropped, ..Spans::default() }
    }

    /// Turns tracing on: of the traces that begin here, this share (0 to 1) is recorded; of others, what their parent
    /// says. `None` turns it off.
    pub fn set(&self, ratio: Option<f64>) {
        let below = ratio.map_or(0, |ratio| ((ratio * u64::MAX as f64) as u64).max(1));
        self.below.store(below, Ordering::Relaxed);
    }

    /// The place of a request that begins now, where tracing is on.
    pub fn begin<'h>(
        &self,
        traceparent: impl FnOnce() -> Option<&'h [u8]>,
        random: impl Fn() -> u64,
    ) -> Option<SpanContext> {
        let below = self.below.load(Ordering::Relaxed);
        if below == 0 {
            return None;
        }
        let (request, engine) = (random() | 1, random() | 1);
        let told = traceparent().and_then(read);
        Some(match told {
            Some((trace, parent, sampled)) => SpanContext { trace, parent: Some(parent), request, engine, sampled },
            None => {
                let trace = u128::from(random()) << 64 | u128::from(random() | 1);
                SpanContext { trace, parent: None, request, engine, sampled: random() <= below && below > 1 }
            }
        })
    }

    /// Leaves a finished request. Waits for nothing: it is dropped, and counted, where too many wait or another thread is
    /// at it.
    pub fn end(&self, finished: impl FnOnce() -> FinishedSpan) {
        match self.waiting.try_lock() {
            Some(mut waiting) if waiting.len() < WAITING => waiting.push_back(finished()),
            _ => _ = self.dropped.inc(),
        }
    }

    /// Takes at most so many finished requests, oldest first.
    pub fn take(&self, at_most: usize) -> Vec<FinishedSpan> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(at_most);
        waiting.drain(..count).collect()
    }

    /// Counts requests whose spans were dropped elsewhere: the receiver did not take them.
    pub fn drop_some(&self, count: u64) {
        self.dropped.inc_by(count);
    }
}

impl SpanContext {
    /// The `traceparent` header for the engine.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.engine, u8::from(self.sampled))
    }
}

/// The trace, the parent span and whether it is recorded, of a `traceparent` header. Later versions may be longer.
fn read(header: &[u8]) -> Option<(u128, u64, bool)> {
    let text = std::str::from_utf8(header).ok()?;
    let (known, rest) = (text.get(..LENGTH)?, &text[LENGTH..]);
    let mut parts = known.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let lower = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let shaped = [(version, 2), (trace, 32), (parent, 16), (flags, 2)];
    if !shaped.iter().all(|(part, length)| part.len() == *length && lower(part)) || version == "ff" {
        return None;
    }
    if !rest.is_empty() && (version == "00" || !rest.starts_with('-')) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let parent = u64::from_str_radix(parent, 16).ok().filter(|parent| *parent != 0)?;
    Some((trace, parent, u8::from_str_radix(flags, 16).ok()? & 1 == 1))
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_that_a_client_began_goes_on() {
        let spans = Spans::default();
        assert_eq!(spans.begin(|| Some(PARENT), || 7), None, "off");
        spans.set(Some(0.0));
        let context = spans.begin(|| Some(PARENT), || 7).unwrap();
        assert_eq!(
            (context.trace, context.parent),
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, Some(0x00f0_67aa_0ba9_02b7))
        );
        assert!(context.sampled, "its parent says so");
        assert_eq!(context.traceparent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
        let unsampled = [&PARENT[..PARENT.len() - 1], b"0"].concat();
        assert!(!spans.begin(|| Some(&unsampled), || 7).unwrap().sampled);
    }

    #[test]
    fn traces_that_begin_here_are_recorded_by_the_ratio() {
        let spans = Spans::default();
        for (ratio, random, sampled) in [(1.0, u64::MAX, true), (0.5, u64::MAX, false), (0.5, 1, true), (0.0, 0, false)]
        {
            spans.set(Some(ratio));
            let context = spans.begin(|| None, || random).unwrap();
            assert_eq!((context.sampled, context.parent), (sampled, None), "{ratio} {random}");
            assert_ne!(context.trace, 0);
        }
    }

    #[test]
    fn what_is_no_traceparent_begins_a_trace() {
        let spans = Spans::default();
        spans.set(Some(1.0));
        let bad: [&[u8]; 8] = [
            b"",
            b"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            b"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            b"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"\xff\xff",
        ];
        for header in bad {
            assert_eq!(spans.begin(|| Some(header), || 9).unwrap().parent, None, "{}", String::from_utf8_lossy(header));
        }
        let later = b"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert!(spans.begin(|| Some(later), || 9).unwrap().parent.is_some());
    }
}
