//! The text of a request in logical order.

use super::{Fields, TextSink};
use crate::api::Api;
use crate::json::{Cursor, Malformed, Name, RawString, Value};

/// How many levels of contents are looked into: a message, its parts, the result of a tool, the parts of that.
const LEVELS: u32 = 4;

/// The length from which written token ids are given away, in bytes.
const IDS_PIECE: usize = 4096;

/// Gives the text of a request of `api` to `sink`, as `describe` documents it.
pub(super) fn give(fields: &Fields<'_>, api: Api, sink: &mut dyn TextSink) -> Result<(), Malformed> {
    let mut text = Text { sink, scratch: Vec::new(), wanted: true };
    match api {
        Api::ChatCompletions => text.conversation(fields.messages),
        Api::Responses => {
            text.content(fields.instructions)?;
            text.content(fields.input)
        }
        Api::Messages | Api::CountTokens => {
            text.content(fields.system)?;
            text.conversation(fields.messages)
        }
        Api::Completions => text.prompt(fields.prompt),
        Api::Embeddings if fields.input.is_none() => text.conversation(fields.messages),
        Api::Embeddings => text.prompt(fields.input),
        Api::Rerank => text.prompt(fields.query),
        Api::Score => text.prompt(fields.text_1.or(fields.queries).or(fields.data_1)),
        Api::Invocations => Ok(()),
    }
}

/// What the sink still wants.
struct Text<'s> {
    sink: &'s mut dyn TextSink,
    scratch: Vec<u8>,
    wanted: bool,
}

impl Text<'_> {
    /// Messages: an array, nothing else.
    fn conversation(&mut self, messages: Option<Value<'_>>) -> Result<(), Malformed> {
        match messages {
            Some(messages) => self.parts(&mut messages.cursor(), LEVELS),
            None => Ok(()),
        }
    }

    /// A content: a string, or an array of strings, parts, messages or items.
    fn content(&mut self, content: Option<Value<'_>>) -> Result<(), Malformed> {
        match content {
            Some(content) => self.content_within(content, LEVELS),
            None => Ok(()),
        }
    }

    fn content_within(&mut self, content: Value<'_>, levels: u32) -> Result<(), Malformed> {
        match content.string() {
            Some(string) => self.string(string),
            None => self.parts(&mut content.cursor(), levels)?,
        }
        Ok(())
    }

    fn parts(&mut self, cursor: &mut Cursor<'_>, levels: u32) -> Result<(), Malformed> {
        let Some(mut elements) = cursor.elements() else { return Ok(()) };
        while self.wanted
            && let Some(element) = elements.next_element()?
        {
            match element.peek() {
                Some(b'"') => {
                    if let Some(string) = element.value()?.string() {
                        self.string(string);
                    }
                }
                Some(b'{') => self.part(element, levels)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A message (`content`), a part (`text`), a result of a tool (`content` at Anthropic's, `output` at OpenAI's).
    fn part(&mut self, cursor: &mut Cursor<'_>, levels: u32) -> Result<(), Malformed> {
        let (mut text, mut content, mut output) = (None, None, None);
        let (mut role, mut breakpoint) = (None, None);
        let mut space = Name::default();
        if let Some(mut members) = cursor.members() {
            while let Some(key) = members.next_key()? {
                match key.name(&mut space) {
                    b"text" => text = Some(members.value()?),
                    b"content" => content = Some(members.value()?),
                    b"output" => output = Some(members.value()?),
                    b"role" => role = Some(members.value()?),
                    b"cache_control" | b"prompt_cache_breakpoint" => breakpoint = Some(members.value()?),
                    _ => {}
                }
            }
        }
        if role.is_some_and(|role| role.bytes() == b"\"assistant\"") {
            self.sink.answer();
        }
        match (text.and_then(Value::string), content.or(output)) {
            (Some(string), _) => self.string(string),
            (None, Some(content)) if levels > 1 => self.content_within(content, levels - 1)?,
            _ => {}
        }
        if self.wanted && breakpoint.is_some_and(|breakpoint| breakpoint.bytes().starts_with(b"{")) {
            self.sink.breakpoint();
        }
        Ok(())
    }

    /// A prompt: a string, token ids, an object with a content, or an array of such, which counts by its first.
    fn prompt(&mut self, prompt: Option<Value<'_>>) -> Result<(), Malformed> {
        let Some(prompt) = prompt else { return Ok(()) };
        let mut cursor = prompt.cursor();
        if let Some(mut batch) = cursor.elements() {
            let Some(first) = batch.next_element()? else { return Ok(()) };
            return match first.peek() {
                Some(b'-' | b'0'..=b'9') => self.token_ids(prompt),
                Some(b'[') => {
                    let ids = first.value()?;
                    self.token_ids(ids)
                }
                _ => {
                    let first = first.value()?;
                    self.single_prompt(first)
                }
            };
        }
        self.single_prompt(prompt)
    }

    fn single_prompt(&mut self, prompt: Value<'_>) -> Result<(), Malformed> {
        match prompt.string() {
            Some(string) => {
                self.string(string);
                Ok(())
            }
            None if prompt.bytes().starts_with(b"{") => self.part(&mut prompt.cursor(), LEVELS),
            None => Ok(()),
        }
    }

    /// The numbers of an array, as they are written, with one space between them.
    fn token_ids(&mut self, ids: Value<'_>) -> Result<(), Malformed> {
        let mut cursor = ids.cursor();
        let Some(mut elements) = cursor.elements() else { return Ok(()) };
        let mut line = String::new();
        let mut separator = "";
        while self.wanted
            && let Some(element) = elements.next_element()?
        {
            if let Some(b'-' | b'0'..=b'9') = element.peek() {
                line.push_str(separator);
                line.extend(element.value()?.bytes().iter().copied().map(char::from));
                separator = " ";
            }
            if line.len() >= IDS_PIECE {
                self.wanted = self.sink.text(&line);
                line.clear();
            }
        }
        if self.wanted && !line.is_empty() {
            self.wanted = self.sink.text(&line);
        }
        Ok(())
    }

    fn string(&mut self, string: RawString<'_>) {
        if self.wanted {
            self.wanted = string.pieces(&mut self.scratch, &mut |piece| self.sink.text(piece));
        }
    }
}
