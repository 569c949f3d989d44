//! What routing needs to know of a request, read from the body as it came.

use std::borrow::Cow;

use crate::api::Api;
use crate::json::{Cursor, Name, Value, valid_parts};

mod cache_salt;
mod canonical;
mod include_usage;
mod prefix;
mod sink;
mod splice;
mod template;
mod text;

pub use crate::json::{Found, Malformed};
pub use cache_salt::cache_salt;
pub use canonical::{NotCanonical, canonical};
pub use include_usage::include_usage;
pub use prefix::{Prefix, PrefixSink};
pub use sink::{CharacterCount, PromptSink, TextSink};
pub use splice::Splice;
pub use template::Mark;

/// What routing needs of a request, borrowed from the body. A field that is absent, `null` or of the wrong type is
/// `None` (or `false`): whether that is an error is for the engine to say. Of a key that stands twice the last counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described<'a> {
    /// `model`; may be empty.
    pub model: Option<Cow<'a, str>>,
    /// `stream` is `true`.
    pub stream: bool,
    /// `stream_options.include_usage` is `true`: the client expects a last event with the usage.
    pub include_usage: bool,
    /// `prompt_cache_key`: OpenAI's counterpart of SageMaker's prefix-aware id.
    pub prompt_cache_key: Option<Cow<'a, str>>,
    /// `cache_salt`: vLLM and SGLang share cached blocks only between requests with the same salt.
    pub cache_salt: Option<Cow<'a, str>>,
    /// `extra_key`: SGLang's second salt.
    pub extra_key: Option<Cow<'a, str>>,
    /// `lora_path`: the adapter by which SGLang computes (vLLM names an adapter in `model`).
    pub adapter: Option<Cow<'a, str>>,
    /// `previous_response_id`: a response stored on the instance that made it.
    pub previous_response_id: Option<Cow<'a, str>>,
    /// `priority`: who waits with a lower one goes first (vLLM's order).
    pub priority: Option<i64>,
}

/// Describes the request `body` of `api` and gives its text to `sink`, piece by piece and without separators, in the
/// order in which the engine will see it, whatever the order of keys in the body:
///
/// | API | text |
/// |---|---|
/// | chat completions | `messages` |
/// | completions | `prompt` |
/// | responses | `instructions`, `input` |
/// | embeddings | `input`, or `messages` (vLLM) |
/// | messages, counting tokens | `system`, `messages` |
/// | rerank | `query` |
/// | score | `text_1`, else `queries`, else `data_1` |
/// | invocations | none: its prefix is the body's bytes |
///
/// Of messages and items: string contents and the text of parts, of all roles, tool results included; images, tool
/// calls and reasoning signatures have no text. Token ids count as decimal text with one space between them; an array
/// of prompts counts by its first. Invalid UTF-8 and lone surrogates read as U+FFFD; behind 256 times of that within four
/// kibibytes the rest of them is left out.
///
/// An object under `cache_control` or `prompt_cache_breakpoint` in a message, an item or a part tells the sink of a
/// [breakpoint](TextSink::breakpoint) behind it. Breakpoints of tools mark no text.
///
/// The whole body is read once to find the fields; the text is then decoded only as far as `sink` wants it. Nothing is
/// allocated unless a string that is needed holds escapes.
///
/// A body of more than 131,072 values (little but brackets, commas and digits, or as many token ids) would take long to look
/// into: its text is the body as it came.
///
/// # Errors
///
/// [`Malformed`] when the body is not one JSON object (UTF-8, with or without a byte order mark), or one of more than 65,536
/// members; what is wrong behind 131,072 values is left for the engine to judge. As tolerant as Python's
/// `json`, with which engines read: `NaN`, `Infinity`, any depth, lone surrogates. What is wrong inside of a string (an
/// escape, a control character, UTF-8) is left for the engine to judge. [`Api::Invocations`] takes any body, and
/// describes what is no JSON object as nothing.
pub fn describe<'a>(body: &'a [u8], api: Api, sink: &mut dyn TextSink) -> Result<Described<'a>, Malformed> {
    match Fields::find(body) {
        Ok(fields) => {
            if !fields.too_many {
                text::give(&fields, api, sink)?;
            } else if api != Api::Invocations {
                valid_parts(body, &mut |part| sink.text(part));
            }
            fields.describe()
        }
        Err(_) if api == Api::Invocations => Ok(Described::default()),
        Err(malformed) => Err(malformed),
    }
}

/// Describes the request `body` of `api` and gives its prompt to `sink`, in the order in which a chat template puts it
/// together: prompts that begin with equal tokens begin with equal bytes, and prompts that differ in what is given differ
/// in their bytes.
///
/// First the template and its arguments, then tools, then `instructions` or `system`, then per message its role, name and
/// reasoning, the parts of its content, and its calls of tools. Tools, calls and other parts that are no text are given
/// as they are written, except that clients' breakpoints are left out; media go to [`PromptSink::media`]. Prompts without a
/// template (completions, embeddings, rerank's query, score's first text): the text, or token ids as decimal text; of an
/// array, each. [`Api::Invocations`]: what has `messages`, `prompt` or `input` is read like those, anything else is
/// given as it came.
///
/// Every piece begins with a byte that UTF-8 cannot hold, and a letter that tells what it is ([`Mark`]), both given at once.
/// Lengths stand nowhere, so
/// that a text which goes on begins like the shorter one.
///
/// # Errors
///
/// As [`describe`].
pub fn render<'a>(body: &'a [u8], api: Api, sink: &mut dyn PromptSink) -> Result<Described<'a>, Malformed> {
    match Fields::find(body) {
        Ok(fields) => {
            if fields.too_many {
                template::give_bytes(body, sink);
            } else {
                template::give(&fields, body, api, sink)?;
            }
            fields.describe()
        }
        Err(_) if api == Api::Invocations => {
            template::give_bytes(body, sink);
            Ok(Described::default())
        }
        Err(malformed) => Err(malformed),
    }
}

/// The most members of a body: a hundred times those of any API, and still looked through in a moment.
const MOST_MEMBERS: usize = 65_536;

/// The values of the top-level keys that mean something to routing, not yet looked into.
#[derive(Debug, Default)]
struct Fields<'a> {
    model: Option<Value<'a>>,
    stream: Option<Value<'a>>,
    stream_options: Option<Value<'a>>,
    prompt_cache_key: Option<Value<'a>>,
    cache_salt: Option<Value<'a>>,
    extra_key: Option<Value<'a>>,
    lora_path: Option<Value<'a>>,
    previous_response_id: Option<Value<'a>>,
    priority: Option<Value<'a>>,
    instructions: Option<Value<'a>>,
    system: Option<Value<'a>>,
    messages: Option<Value<'a>>,
    input: Option<Value<'a>>,
    prompt: Option<Value<'a>>,
    query: Option<Value<'a>>,
    text_1: Option<Value<'a>>,
    queries: Option<Value<'a>>,
    data_1: Option<Value<'a>>,
    chat_template: Option<Value<'a>>,
    chat_template_kwargs: Option<Value<'a>>,
    reasoning_effort: Option<Value<'a>>,
    documents: Option<Value<'a>>,
    tools: Option<Value<'a>>,
    functions: Option<Value<'a>>,
    /// The body holds too many values to be looked into.
    too_many: bool,
}

impl<'a> Fields<'a> {
    /// One pass over the whole body, which checks its structure too.
    fn find(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::default();
        let mut cursor = Cursor::new(body);
        let Some(mut members) = cursor.members() else {
            return Err(cursor.malformed("a JSON object"));
        };
        let (mut space, mut count) = (Name::default(), 0);
        while let Some(key) = members.next_key()? {
            count += 1;
            if count > MOST_MEMBERS {
                return Err(members.cursor().malformed("at most 65536 members"));
            }
            let field = match key.name(&mut space) {
                b"model" => &mut fields.model,
                b"stream" => &mut fields.stream,
                b"stream_options" => &mut fields.stream_options,
                b"prompt_cache_key" => &mut fields.prompt_cache_key,
                b"cache_salt" => &mut fields.cache_salt,
                b"extra_key" => &mut fields.extra_key,
                b"lora_path" => &mut fields.lora_path,
                b"previous_response_id" => &mut fields.previous_response_id,
                b"priority" => &mut fields.priority,
                b"instructions" => &mut fields.instructions,
                b"system" => &mut fields.system,
                b"messages" => &mut fields.messages,
                b"input" => &mut fields.input,
                b"prompt" => &mut fields.prompt,
                b"query" => &mut fields.query,
                b"text_1" => &mut fields.text_1,
                b"queries" => &mut fields.queries,
                b"data_1" => &mut fields.data_1,
                b"chat_template" => &mut fields.chat_template,
                b"chat_template_kwargs" => &mut fields.chat_template_kwargs,
                b"reasoning_effort" => &mut fields.reasoning_effort,
                b"documents" => &mut fields.documents,
                b"tools" => &mut fields.tools,
                b"functions" => &mut fields.functions,
                _ => continue,
            };
            *field = Some(members.value()?);
        }
        cursor.end()?;
        fields.too_many = cursor.passed_many();
        Ok(fields)
    }

    fn describe(&self) -> Result<Described<'a>, Malformed> {
        Ok(Described {
            model: string(self.model),
            stream: self.stream.is_some_and(Value::is_true),
            include_usage: match self.stream_options {
                Some(options) => options.member(b"include_usage")?.is_some_and(Value::is_true),
                None => false,
            },
            prompt_cache_key: string(self.prompt_cache_key),
            cache_salt: string(self.cache_salt),
            extra_key: string(self.extra_key),
            adapter: string(self.lora_path),
            previous_response_id: string(self.previous_response_id),
            priority: self.priority.and_then(Value::signed_integer),
        })
    }
}

fn string(value: Option<Value<'_>>) -> Option<Cow<'_, str>> {
    value?.string().map(|raw| raw.decode())
}

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod tests;
