//! The prompt of a request as a chat template puts it together, in the order in which the engine computes it.

use super::{Fields, PromptSink};
use crate::api::Api;
use crate::json::{Cursor, Malformed, Name, RawString, Value, valid_parts};

/// How many levels of contents are looked into: a message, its parts, the result of a tool, the parts of that. What lies
/// deeper counts as it is written.
const LEVELS: u32 = 4;

/// What a piece of a rendered prompt is. Every piece begins with [`Mark::BYTE`] and the letter of its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Mark {
    /// A chat template of the request's own.
    Template = b'k',
    /// The arguments of the chat template.
    TemplateArguments = b'l',
    /// How much the model is to reason.
    ReasoningEffort = b'g',
    /// Documents for the chat template.
    Documents = b'd',
    /// Definitions of tools, or of functions.
    Tools = b'f',
    /// The response that this one continues; its text is with the instance.
    Continued = b'o',
    /// What stands before the messages: `system` or `instructions`.
    System = b's',
    /// A message, by its role.
    Message = b'm',
    /// Who speaks in a role.
    Name = b'n',
    /// What a message of a tool answers.
    Answers = b'a',
    /// The reasoning of a message.
    Reasoning = b'h',
    /// Text of a message.
    Text = b't',
    /// A call of a tool, or another part that is no text, as it is written.
    Call = b'c',
    /// The result of a tool begins, by the id of its call.
    Result = b'r',
    /// The result of a tool ends.
    ResultEnd = b'e',
    /// An image, a sound or a file.
    Medium = b'i',
    /// A prompt without a template.
    Prompt = b'p',
    /// Token ids as decimal text.
    TokenIds = b'x',
    /// A body of which nothing is known, as it came.
    Bytes = b'b',
}

impl Mark {
    /// Begins every piece of a prompt, before the letter that tells what it is. No UTF-8 text holds this byte, so no text
    /// can pass for a mark, and a piece needs no length in front, which would tell equal beginnings apart. Only what is
    /// given as [`Mark::Bytes`] may hold it too.
    pub const BYTE: u8 = 0xFF;

    /// Every mark.
    pub const ALL: [Mark; 19] = [
        Mark::Template,
        Mark::TemplateArguments,
        Mark::ReasoningEffort,
        Mark::Documents,
        Mark::Tools,
        Mark::Continued,
        Mark::System,
        Mark::Message,
        Mark::Name,
        Mark::Answers,
        Mark::Reasoning,
        Mark::Text,
        Mark::Call,
        Mark::Result,
        Mark::ResultEnd,
        Mark::Medium,
        Mark::Prompt,
        Mark::TokenIds,
        Mark::Bytes,
    ];

    /// The mark with this letter.
    pub fn of(letter: u8) -> Option<Mark> {
        Mark::ALL.into_iter().find(|mark| *mark as u8 == letter)
    }
}

/// Gives the prompt of a request of `api` to `sink`, as `render` documents it.
pub(super) fn give(fields: &Fields<'_>, body: &[u8], api: Api, sink: &mut dyn PromptSink) -> Result<(), Malformed> {
    let mut template = Template { sink, scratch: Vec::new() };
    match api {
        Api::Completions => template.prompts(fields.prompt),
        Api::Embeddings if fields.input.is_some() => template.prompts(fields.input),
        Api::Rerank => template.prompts(fields.query),
        Api::Score => template.prompts(fields.text_1.or(fields.queries).or(fields.data_1)),
        Api::Invocations if fields.messages.or(fields.prompt).or(fields.input).is_none() => {
            template.bytes(body);
            Ok(())
        }
        Api::Invocations if fields.messages.or(fields.input).is_none() => template.prompts(fields.prompt),
        Api::ChatCompletions
        | Api::Responses
        | Api::Messages
        | Api::CountTokens
        | Api::Embeddings
        | Api::Invocations => template.conversation(fields, api),
    }
}

/// Gives a body of which nothing is known.
pub(super) fn give_bytes(body: &[u8], sink: &mut dyn PromptSink) {
    Template { sink, scratch: Vec::new() }.bytes(body);
}

struct Template<'s> {
    sink: &'s mut dyn PromptSink,
    scratch: Vec<u8>,
}

impl Template<'_> {
    /// What stands before the messages, and the messages.
    fn conversation(&mut self, fields: &Fields<'_>, api: Api) -> Result<(), Malformed> {
        let native = api == Api::Invocations;
        self.written(Mark::Template, fields.chat_template);
        self.written(Mark::TemplateArguments, fields.chat_template_kwargs);
        self.written(Mark::ReasoningEffort, fields.reasoning_effort);
        self.written(Mark::Documents, fields.documents);
        self.written(Mark::Tools, fields.tools);
        self.written(Mark::Tools, fields.functions);
        if native || api == Api::Responses {
            self.string(Mark::Continued, fields.previous_response_id);
            self.system(fields.instructions)?;
        }
        if native || matches!(api, Api::Messages | Api::CountTokens) {
            self.system(fields.system)?;
        }
        match (api, fields.messages) {
            (Api::Responses, _) | (Api::Invocations, None) => self.content(fields.input, LEVELS),
            (_, messages) => messages.map_or(Ok(()), |messages| self.items(&mut messages.cursor(), LEVELS)),
        }
    }

    fn system(&mut self, system: Option<Value<'_>>) -> Result<(), Malformed> {
        if system.is_some() {
            self.mark(Mark::System);
        }
        self.content(system, LEVELS)
    }

    /// A content: a string, or parts, messages or items.
    fn content(&mut self, content: Option<Value<'_>>, levels: u32) -> Result<(), Malformed> {
        let Some(content) = content else { return Ok(()) };
        match content.bytes().first() {
            Some(b'"') => self.string(Mark::Text, Some(content)),
            Some(b'{') if levels > 0 => self.item(&mut content.cursor(), levels - 1)?,
            Some(b'[') if levels > 0 => self.items(&mut content.cursor(), levels)?,
            Some(b'{' | b'[') => self.written(Mark::Call, Some(content)),
            _ => {}
        }
        Ok(())
    }

    fn items(&mut self, cursor: &mut Cursor<'_>, levels: u32) -> Result<(), Malformed> {
        let Some(mut elements) = cursor.elements() else { return Ok(()) };
        while let Some(element) = elements.next_element()? {
            match element.peek() {
                Some(b'"') => {
                    let text = element.value()?;
                    self.string(Mark::Text, Some(text));
                }
                Some(b'{') => self.item(element, levels - 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn item(&mut self, cursor: &mut Cursor<'_>, levels: u32) -> Result<(), Malformed> {
        let (item, whole) = Item::read(cursor)?;
        if item.role.is_some() {
            return self.message(&item, levels);
        }
        if item.is_medium {
            self.mark(Mark::Medium);
            return each_member(whole, &mut |piece| self.sink.media(piece));
        }
        if item.is_result() {
            self.mark(Mark::Result);
            self.decoded(item.id);
            self.content(item.content.or(item.output), levels)?;
            self.mark(Mark::ResultEnd);
            return Ok(());
        }
        if item.text.and_then(Value::string).is_some() {
            self.string(Mark::Text, item.text);
            return Ok(());
        }
        self.mark(Mark::Call);
        each_member(whole, &mut |piece| as_text(piece, self.sink))
    }

    fn message(&mut self, item: &Item<'_>, levels: u32) -> Result<(), Malformed> {
        self.sink.end_message();
        self.mark(Mark::Message);
        self.decoded(item.role);
        self.string(Mark::Name, item.name);
        self.string(Mark::Answers, item.id);
        self.string(Mark::Reasoning, item.reasoning);
        self.content(item.content, levels)?;
        self.written(Mark::Call, item.calls);
        self.written(Mark::Call, item.call);
        Ok(())
    }

    /// Prompts without a template: a string, token ids, an object with a content, or an array of such.
    fn prompts(&mut self, prompts: Option<Value<'_>>) -> Result<(), Malformed> {
        let Some(prompts) = prompts else { return Ok(()) };
        let mut cursor = prompts.cursor();
        let Some(mut batch) = cursor.elements() else { return self.prompt(prompts) };
        while let Some(element) = batch.next_element()? {
            if let Some(b'-' | b'0'..=b'9') = element.peek() {
                return self.token_ids(prompts);
            }
            let prompt = element.value()?;
            self.prompt(prompt)?;
        }
        Ok(())
    }

    fn prompt(&mut self, prompt: Value<'_>) -> Result<(), Malformed> {
        match prompt.bytes().first() {
            Some(b'"') => self.string(Mark::Prompt, Some(prompt)),
            Some(b'{') => {
                self.mark(Mark::Prompt);
                self.item(&mut prompt.cursor(), LEVELS)?;
            }
            Some(b'[') => self.token_ids(prompt)?,
            _ => {}
        }
        Ok(())
    }

    /// Each number as it is written, with a space behind it.
    fn token_ids(&mut self, ids: Value<'_>) -> Result<(), Malformed> {
        self.mark(Mark::TokenIds);
        let mut cursor = ids.cursor();
        let Some(mut elements) = cursor.elements() else { return Ok(()) };
        while let Some(element) = elements.next_element()? {
            if let Some(b'-' | b'0'..=b'9') = element.peek() {
                self.sink.prompt(element.value()?.bytes());
                self.sink.prompt(b" ");
            }
        }
        Ok(())
    }

    /// A value as it is written, unless it is empty.
    fn written(&mut self, mark: Mark, value: Option<Value<'_>>) {
        let Some(value) = value else { return };
        let mut cursor = value.cursor();
        if cursor.at_filled_string() || cursor.at_filled_container() {
            self.mark(mark);
            as_text(value.bytes(), self.sink);
        }
    }

    /// A string, without its escapes. What is no string counts as absent.
    fn string(&mut self, mark: Mark, value: Option<Value<'_>>) {
        if let Some(string) = value.and_then(Value::string) {
            self.mark(mark);
            self.pieces(string);
        }
    }

    fn decoded(&mut self, value: Option<Value<'_>>) {
        if let Some(string) = value.and_then(Value::string) {
            self.pieces(string);
        }
    }

    fn pieces(&mut self, string: RawString<'_>) {
        string.pieces(&mut self.scratch, &mut |piece| {
            self.sink.prompt(piece.as_bytes());
            true
        });
    }

    fn bytes(&mut self, body: &[u8]) {
        if !body.is_empty() {
            self.mark(Mark::Bytes);
            self.sink.prompt(body);
        }
    }

    fn mark(&mut self, mark: Mark) {
        self.sink.prompt(&[Mark::BYTE, mark as u8]);
    }
}

/// What stands in a message, an item or a part; of a key that stands twice the last counts.
#[derive(Debug, Default)]
struct Item<'a> {
    role: Option<Value<'a>>,
    kind: Option<Value<'a>>,
    name: Option<Value<'a>>,
    /// The id of the call that it answers.
    id: Option<Value<'a>>,
    reasoning: Option<Value<'a>>,
    text: Option<Value<'a>>,
    content: Option<Value<'a>>,
    output: Option<Value<'a>>,
    calls: Option<Value<'a>>,
    call: Option<Value<'a>>,
    is_medium: bool,
}

impl<'a> Item<'a> {
    /// Reads the object that begins at the cursor; what was read, and the object as a whole.
    fn read(cursor: &mut Cursor<'a>) -> Result<(Item<'a>, Value<'a>), Malformed> {
        let (mut item, mut space) = (Item::default(), Name::default());
        let start = cursor.offset();
        let Some(mut members) = cursor.members() else { return Ok((item, cursor.since(start))) };
        while let Some(key) = members.next_key()? {
            let field = match key.name(&mut space) {
                b"role" => &mut item.role,
                b"type" => &mut item.kind,
                b"name" => &mut item.name,
                b"tool_call_id" | b"call_id" | b"tool_use_id" => &mut item.id,
                b"reasoning" | b"reasoning_content" => &mut item.reasoning,
                b"text" => &mut item.text,
                b"content" => &mut item.content,
                b"output" => &mut item.output,
                b"tool_calls" => &mut item.calls,
                b"function_call" => &mut item.call,
                b"image" | b"image_url" | b"image_embeds" | b"input_audio" | b"audio" | b"audio_url" | b"video"
                | b"video_url" | b"source" | b"file" | b"file_id" | b"file_data" | b"file_url" => {
                    item.is_medium = true;
                    continue;
                }
                _ => continue,
            };
            *field = Some(members.value()?);
        }
        Ok((item, cursor.since(start)))
    }

    /// The result of a tool: Anthropic's `tool_result`, and the items of the responses API that end so.
    fn is_result(&self) -> bool {
        let kind = self.kind.and_then(Value::string).map(RawString::decoded);
        kind.is_some_and(|kind| *kind == *b"tool_result" || kind.ends_with(b"_output"))
    }
}

/// The members of an object as they are written, without what never reaches the engine's prompt: clients move their
/// breakpoints from part to part as a conversation grows.
fn each_member(object: Value<'_>, take: &mut dyn FnMut(&[u8])) -> Result<(), Malformed> {
    let mut cursor = object.cursor();
    let Some(mut members) = cursor.members() else { return Ok(()) };
    let mut space = Name::default();
    while let Some(key) = members.next_key()? {
        if let b"cache_control" | b"prompt_cache_breakpoint" = key.name(&mut space) {
            continue;
        }
        take(b"\"");
        take(key.as_written());
        take(b"\":");
        take(members.value()?.bytes());
    }
    Ok(())
}

/// Gives bytes as text, with U+FFFD for what is none.
fn as_text(bytes: &[u8], sink: &mut dyn PromptSink) {
    valid_parts(bytes, &mut |part| {
        sink.prompt(part.as_bytes());
        true
    });
}

#[cfg(test)]
mod tests;
