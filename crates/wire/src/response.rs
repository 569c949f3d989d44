//! Watching a JSON response while it passes: its usage and its id, without keeping it.

use crate::json::{Cursor, Watch};
use crate::usage::{Tally, Usage, is_place_of_usage};

/// Watches one JSON response body, in pieces of any size. Needs a few kilobytes at most, however long the body is.
#[derive(Debug)]
pub struct Scanner {
    watch: Watch,
    findings: Findings,
}

impl Scanner {
    /// A scanner at the beginning of a body.
    pub fn new() -> Self {
        let watch = Watch::new(|parent, key| is_place_of_usage(parent, key) || (parent, key) == (b"", b"id"));
        Scanner { watch, findings: Findings::default() }
    }

    /// Watches the next piece of the body.
    pub fn scan(&mut self, piece: &[u8]) {
        self.findings.follow(&mut self.watch, piece);
    }

    /// The usage; `None` until it has passed, and when there is none.
    pub fn usage(&self) -> Option<Usage> {
        self.findings.tally.usage()
    }

    /// The response's `id`, by which a later request names it as `previous_response_id`.
    pub fn id(&self) -> Option<&str> {
        self.findings.id.as_deref()
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner::new()
    }
}

/// What is found in a response, or in the events of a stream.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) tally: Tally,
    pub(crate) id: Option<String>,
}

impl Findings {
    /// Follows a JSON text that passes in pieces.
    pub(crate) fn follow(&mut self, watch: &mut Watch, piece: &[u8]) {
        watch.follow(piece, &mut |key, value| {
            let Ok(value) = Cursor::new(value).value() else { return };
            if key == b"usage" {
                // A usage that is no JSON tells nothing.
                let _ = self.tally.read(value);
            } else if self.id.is_none() {
                self.id = value.string().map(|id| id.decode().into_owned());
            }
        });
    }
}

#[cfg(test)]
mod tests;
