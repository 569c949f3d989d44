//! Watching a stream of server-sent events while it passes.

use memchr::memchr2;

use crate::error::status_of_error;
use crate::json::Watch;
use crate::response::Findings;
use crate::usage::{Usage, is_place_of_usage};

mod event;
mod line;
mod usage_filter;

use line::Field;
pub use usage_filter::UsageFilter;

/// How much of one event is looked at, in bytes of its data. A longer event is told by its beginning (and its usage, if
/// it is one line) and otherwise passes unread.
pub const EVENT_LIMIT: usize = 64 * 1024;

/// The longest beginning of a line that is kept: a byte order mark, the longest field's name, the data.
const LONGEST_LINE: usize = "\u{feff}error: ".len() + EVENT_LIMIT;

/// Watches one stream of server-sent events, in chunks of any size, as the HTML standard ("Server-sent events",
/// parsing an event stream) reads it: lines end with CR, LF or both, a colon begins a comment, several `data` lines are
/// one event.
///
/// It only looks on. It never decides where a stream ends: `[DONE]` is noted when it is an event of its own, and means
/// nothing inside of one. Events that arrive whole are read where they are; of those that do not, and of a first event
/// that is an error, at most three times [`EVENT_LIMIT`] bytes are kept.
#[derive(Debug, Default)]
pub struct Scanner {
    /// A byte was seen, so a byte order mark can no longer come.
    begun: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_carriage_return: bool,
    /// The beginning of the line in which the last chunk broke off.
    line: Vec<u8>,
    /// What becomes of the rest of that line.
    rest: Rest,
    /// The data of the event that is not complete, as far as it came in earlier chunks or in several lines.
    data: Option<Vec<u8>>,
    name: Name,
    /// The event that is not complete is over the limit and has been told by its beginning.
    told: bool,
    first: First,
    first_token_seen: bool,
    done_seen: bool,
    findings: Findings,
}

/// What becomes of the rest of a line that is not whole.
#[derive(Debug, Default)]
enum Rest {
    /// It is kept.
    #[default]
    Kept,
    /// It passes unread.
    Passed,
    /// It passes and is watched for the usage.
    Watched(Watch),
}

/// The events whose name (field `event`) tells something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Name {
    /// No `event` field.
    #[default]
    None,
    Error,
    /// The last event of a response or message.
    Last,
    Other,
}

impl Name {
    fn of(name: &[u8]) -> Name {
        match name {
            b"error" => Name::Error,
            b"message_stop" | b"response.completed" | b"response.failed" | b"response.incomplete" => Name::Last,
            _ => Name::Other,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum First {
    #[default]
    Awaited,
    Data,
    Error(StreamError),
}

/// The first data event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstEvent<'s> {
    /// No data line has begun; comments may have passed.
    Awaited,
    /// A data line has begun; the event is not complete.
    Begun,
    /// Complete (or over the limit), and no error.
    Data,
    /// Complete, and an error: nothing has been generated.
    Error(&'s StreamError),
}

/// An error that an engine sent as the first event of a stream, after a head that promised success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamError {
    /// The HTTP status that the engine meant, 400 to 599: see [`status_of_error`](crate::error::status_of_error).
    pub status: u16,
    /// The event's data as it came, most often JSON: at most [`EVENT_LIMIT`] bytes.
    pub data: Vec<u8>,
}

impl Scanner {
    /// A scanner at the beginning of a stream.
    pub fn new() -> Self {
        Scanner::default()
    }

    /// Watches the next chunk.
    pub fn scan(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        // The data of an event that is whole in this chunk: not copied.
        let mut fresh = None;
        while let Some(&byte) = rest.first() {
            if std::mem::take(&mut self.after_carriage_return) && byte == b'\n' {
                rest = &rest[1..];
                continue;
            }
            // Every other line is blank.
            let end = if byte == b'\n' { Some(0) } else { memchr2(b'\n', b'\r', rest) };
            let Some(end) = end else {
                self.hold_line(rest);
                break;
            };
            self.after_carriage_return = rest[end] == b'\r';
            if self.in_line() {
                self.hold_line(&rest[..end]);
                self.hold(fresh.take());
                self.finish_line();
            } else {
                self.line(&rest[..end], &mut fresh);
            }
            rest = &rest[end + 1..];
        }
        self.hold(fresh);
    }

    /// The stream has ended: what is left of it counts as an event, though the standard drops it.
    pub fn end(&mut self) {
        self.finish_line();
        self.complete(None);
    }

    /// How far the first data event has come.
    pub fn first_event(&self) -> FirstEvent<'_> {
        match &self.first {
            First::Error(error) => FirstEvent::Error(error),
            First::Data => FirstEvent::Data,
            First::Awaited if self.data.is_some() || line::is_data(&self.line, !self.begun) => FirstEvent::Begun,
            First::Awaited => FirstEvent::Awaited,
        }
    }

    /// A generated token has passed: non-empty content, reasoning, text or tool-call delta.
    pub fn first_token_seen(&self) -> bool {
        self.first_token_seen
    }

    /// The event that ends a complete stream has passed: `[DONE]`, `message_stop`, `response.completed` and its like.
    pub fn done_seen(&self) -> bool {
        self.done_seen
    }

    /// The last event is complete, so that an event of one's own can follow.
    pub fn between_events(&self) -> bool {
        !self.in_line() && self.data.is_none() && self.name == Name::None
    }

    /// The usage, as far as it has passed.
    pub fn usage(&self) -> Option<Usage> {
        self.findings.tally.usage()
    }

    /// The `id` of the response that the first event tells of (responses API).
    pub fn response_id(&self) -> Option<&str> {
        self.findings.id.as_deref()
    }

    fn in_line(&self) -> bool {
        !self.line.is_empty() || !matches!(self.rest, Rest::Kept)
    }

    /// A whole line.
    fn line<'c>(&mut self, line: &'c [u8], fresh: &mut Option<&'c [u8]>) {
        match line::field(line, !std::mem::replace(&mut self.begun, true)) {
            Field::Blank => self.complete(fresh.take()),
            Field::Event(name) => self.name = Name::of(name),
            Field::Error(data) => {
                self.name = Name::Error;
                self.data_line(data, fresh);
            }
            Field::Data(data) => self.data_line(data, fresh),
            Field::Ignored => {}
        }
    }

    fn data_line<'c>(&mut self, data: &'c [u8], fresh: &mut Option<&'c [u8]>) {
        if self.told {
            return;
        }
        if data.len() > EVENT_LIMIT {
            self.tell_overlong(data);
        } else if fresh.is_none() && self.data.is_none() {
            *fresh = Some(data);
        } else {
            self.hold(fresh.take());
            self.hold(Some(data));
        }
    }

    /// Keeps the next part of a line that is not whole, up to the limit.
    fn hold_line(&mut self, part: &[u8]) {
        match &mut self.rest {
            Rest::Passed => return,
            Rest::Watched(watch) => return self.findings.follow(watch, part),
            Rest::Kept => {}
        }
        let room = LONGEST_LINE - self.line.len();
        let (held, beyond) = part.split_at(part.len().min(room));
        self.line.extend_from_slice(held);
        if !beyond.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.rest = match line::field(&line, !std::mem::replace(&mut self.begun, true)) {
                field @ (Field::Data(data) | Field::Error(data)) if !self.told => {
                    if let Field::Error(_) = field {
                        self.name = Name::Error;
                    }
                    let mut watch = self.tell_overlong(data);
                    self.findings.follow(&mut watch, beyond);
                    Rest::Watched(watch)
                }
                _ => Rest::Passed,
            };
        }
    }

    /// The line that was held is whole.
    fn finish_line(&mut self) {
        if matches!(std::mem::take(&mut self.rest), Rest::Kept) && !self.line.is_empty() {
            let mut line = std::mem::take(&mut self.line);
            let mut fresh = None;
            self.line(&line, &mut fresh);
            self.hold(fresh);
            line.clear();
            self.line = line;
        }
    }

    /// Keeps data of an event that is not complete, up to the limit.
    fn hold(&mut self, data: Option<&[u8]>) {
        let Some(data) = data else { return };
        match &mut self.data {
            None => self.data = Some(data[..data.len().min(EVENT_LIMIT)].to_vec()),
            Some(held) => {
                held.push(b'\n');
                held.extend_from_slice(data);
                held.truncate(EVENT_LIMIT);
            }
        }
    }

    /// An event is over the limit: `data` is its beginning, of which the first [`EVENT_LIMIT`] bytes tell. The watch is
    /// for the rest.
    fn tell_overlong(&mut self, data: &[u8]) -> Watch {
        self.tell(&data[..data.len().min(EVENT_LIMIT)]);
        self.told = true;
        self.data = Some(Vec::new());
        let mut watch = Watch::new(is_place_of_usage);
        self.findings.follow(&mut watch, data);
        watch
    }

    /// A blank line: the event is complete.
    fn complete(&mut self, fresh: Option<&[u8]>) {
        let held = self.data.take();
        if let Some(data) = fresh.or(held.as_deref())
            && !self.told
        {
            self.tell(data);
        }
        self.told = false;
        self.name = Name::None;
    }

    /// Reads what an event's data tells.
    fn tell(&mut self, data: &[u8]) {
        self.done_seen |= self.name == Name::Last || data.starts_with(b"[DONE]");
        if matches!(self.first, First::Awaited) {
            self.tell_first(data);
        }
        self.first_token_seen = self.first_token_seen || event::has_token(data);
        if event::has_usage(data) {
            self.findings.tally.read_json(data);
        }
    }

    fn tell_first(&mut self, data: &[u8]) {
        let opening = event::opening(data);
        self.findings.id = opening.response_id;
        self.first = if opening.is_error || self.name == Name::Error {
            First::Error(StreamError { status: status_of_error(data), data: data.to_vec() })
        } else {
            First::Data
        };
    }
}

#[cfg(test)]
mod tests;
