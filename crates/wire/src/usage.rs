//! Token counts as engines report them.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json::{Cursor, Malformed, Value};

/// What one response cost, in tokens. What the engine does not say is `None`, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the whole prompt, those from the cache included.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the prompt that came from the prefix cache.
    pub cached_tokens: Option<u64>,
    /// Tokens generated.
    pub completion_tokens: Option<u64>,
}

impl Usage {
    /// The usage in a whole JSON response, or in the JSON of one event: `usage` at the top, in `response` (events of the
    /// responses API) or in `message` (Anthropic's `message_start`). `None` when there is none.
    pub fn from_json(json: &[u8]) -> Option<Usage> {
        let mut tally = Tally::default();
        if !tally.read_last(json) {
            tally.read_json(json);
        }
        tally.usage()
    }
}

/// A usage stands under this key in an object under this key (empty at the top).
pub(crate) fn is_place_of_usage(parent: &[u8], key: &[u8]) -> bool {
    key == b"usage" && matches!(parent, b"" | b"response" | b"message")
}

/// The counts read so far. Anthropic's streams tell the prompt in `message_start` and the rest in `message_delta`: what
/// comes later adds to what came before and replaces it field by field.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// OpenAI's `prompt_tokens`: the whole prompt.
    prompt: Option<u64>,
    /// `input_tokens`: the whole prompt in OpenAI's responses, only what no cache was involved in at Anthropic's.
    input: Option<u64>,
    /// Anthropic's `cache_read_input_tokens`.
    cache_read: Option<u64>,
    /// Anthropic's `cache_creation_input_tokens`.
    cache_creation: Option<u64>,
    /// `cached_tokens` in OpenAI's details.
    cached: Option<u64>,
    /// `completion_tokens` or `output_tokens`.
    completion: Option<u64>,
}

impl Tally {
    /// Reads the usage out of a response's or event's JSON. Where that breaks off, what stood before it counts.
    pub(crate) fn read_json(&mut self, json: &[u8]) {
        // The engine's JSON is not ours to judge.
        let _: Result<(), Malformed> = self.read_around(&mut Cursor::new(json), true);
    }

    /// Reads the usage of a whole response where the only one stands among its last members, as engines write it: so that
    /// what is before it need not be walked through.
    fn read_last(&mut self, json: &[u8]) -> bool {
        static KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""usage""#));
        let mut keys = KEY.find_iter(json);
        let (Some(at), None) = (keys.next(), keys.next()) else { return false };
        // In a string, its quotes would be escaped: it is a key, or a string of its own, behind which there is no colon.
        let mut read = *self;
        let outcome = Cursor::within(json, at).last_members(|usage| read.read_at(usage));
        if outcome.is_ok() {
            *self = read;
        }
        outcome.is_ok()
    }

    fn read_around(&mut self, cursor: &mut Cursor<'_>, at_top: bool) -> Result<(), Malformed> {
        let Some(mut members) = cursor.members() else { return Ok(()) };
        while let Some(key) = members.next_key()? {
            match key.decoded().as_ref() {
                b"usage" => {
                    let usage = members.value()?;
                    self.read(usage)?;
                }
                b"response" | b"message" if at_top => {
                    let inner = members.value()?;
                    self.read_around(&mut inner.cursor(), false)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a usage object. A count that is absent, `null` or no number leaves what is known.
    pub(crate) fn read(&mut self, usage: Value<'_>) -> Result<(), Malformed> {
        self.read_at(&mut usage.cursor())
    }

    /// Reads the usage object that begins here; anything else is left.
    fn read_at(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let Some(mut members) = cursor.members() else { return Ok(()) };
        while let Some(key) = members.next_key()? {
            let (count, value) = match key.decoded().as_ref() {
                b"prompt_tokens" => (&mut self.prompt, members.value()?),
                b"input_tokens" => (&mut self.input, members.value()?),
                b"cache_read_input_tokens" => (&mut self.cache_read, members.value()?),
                b"cache_creation_input_tokens" => (&mut self.cache_creation, members.value()?),
                b"completion_tokens" | b"output_tokens" => (&mut self.completion, members.value()?),
                b"prompt_tokens_details" | b"input_tokens_details" => {
                    match members.value()?.member(b"cached_tokens")? {
                        Some(cached) => (&mut self.cached, cached),
                        None => continue,
                    }
                }
                _ => continue,
            };
            *count = value.integer().or(*count);
        }
        Ok(())
    }

    /// What has been read; `None` when nothing has.
    ///
    /// Anthropic's `input_tokens` excludes what was read from the cache or written to it, so the three add up to the
    /// prompt (Messages API, "usage"; llama.cpp reports the same way).
    pub(crate) fn usage(&self) -> Option<Usage> {
        let beside_input = self.cache_read.unwrap_or(0).saturating_add(self.cache_creation.unwrap_or(0));
        let usage = Usage {
            prompt_tokens: self.prompt.or(self.input.map(|input| input.saturating_add(beside_input))),
            cached_tokens: self.cached.or(self.cache_read),
            completion_tokens: self.completion,
        };
        (usage != Usage::default()).then_some(usage)
    }
}

#[cfg(test)]
mod tests;
