//! What the JSON of one event tells.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json::{Cursor, Malformed};

/// What the first event of a stream tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    /// It has a top-level `error` that is not `null`, or says that it is an error (`"type": "error"` in Anthropic's and
    /// OpenAI's responses API, `"object": "error"` in older vLLM and SGLang).
    pub(super) is_error: bool,
    /// The `id` in its `response`.
    pub(super) response_id: Option<String>,
}

/// Reads the first event. Where its data breaks off, what stood before it counts.
pub(super) fn opening(data: &[u8]) -> Opening {
    let mut opening = Opening::default();
    // Data that is no JSON is data all the same.
    let _: Result<(), Malformed> = read_opening(data, &mut opening);
    opening
}

fn read_opening(data: &[u8], opening: &mut Opening) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(data);
    let Some(mut members) = cursor.members() else { return Ok(()) };
    while let Some(key) = members.next_key()? {
        match key.decoded().as_ref() {
            // Seen before it is read, so that an error counts whose end is missing.
            b"error" => opening.is_error |= members.cursor().peek().is_some_and(|byte| byte != b'n'),
            b"type" | b"object" => {
                let kind = members.value()?.string();
                opening.is_error |= kind.is_some_and(|kind| kind.decoded().as_ref() == b"error");
            }
            b"response" => {
                let id = members.value()?.member(b"id")?.and_then(|id| id.string());
                opening.response_id = id.map(|id| id.decode().into_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

/// The event may hold a usage object. Cheap enough to ask of every event: those without one are not read at all.
pub(super) fn has_usage(data: &[u8]) -> bool {
    static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""usage""#));
    // In a string the quotes would be escaped. `"usage": null`, in every event of vLLM's, is none.
    USAGE.find_iter(data).any(|at| {
        let mut behind = data[at + br#""usage""#.len()..].iter().filter(|byte| !byte.is_ascii_whitespace());
        behind.next() == Some(&b':') && behind.next() == Some(&b'{')
    })
}

/// A whole event whose one line of data is a chunk that tells the usage and nothing else: no choice, no error.
pub(super) fn is_usage_only(event: &[u8]) -> bool {
    let mut lines = event.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let (mut data, mut others) = (None, 0);
    for line in lines.by_ref().filter(|line| !line.is_empty()) {
        match (line.strip_prefix(b"data:"), data) {
            (Some(found), None) => data = Some(found),
            _ => others += 1,
        }
    }
    others == 0 && data.is_some_and(|data| has_usage(data) && tells_usage_only(data).unwrap_or(false))
}

fn tells_usage_only(data: &[u8]) -> Result<bool, Malformed> {
    let mut cursor = Cursor::new(data);
    let (mut no_choice, mut usage) = (false, false);
    let Some(mut members) = cursor.members() else { return Ok(false) };
    while let Some(key) = members.next_key()? {
        match key.decoded().as_ref() {
            b"choices" => no_choice = members.value()?.bytes().iter().all(|byte| b"[] \t".contains(byte)),
            b"usage" => usage = members.cursor().peek() == Some(b'{'),
            b"error" => return Ok(false),
            _ => {}
        }
    }
    cursor.end()?;
    Ok(no_choice && usage)
}

/// The event carries a generated token.
///
/// | API | where |
/// |---|---|
/// | chat completions | `choices[].delta`: `content`, `reasoning`, `reasoning_content`, `refusal`, `tool_calls`, `function_call` |
/// | completions | `choices[].text` |
/// | responses | `delta`, a string, in every `response.….delta` |
/// | messages | `delta`: `text`, `thinking`, `partial_json` |
pub(super) fn has_token(data: &[u8]) -> bool {
    find_token(data).unwrap_or(false)
}

fn find_token(data: &[u8]) -> Result<bool, Malformed> {
    let mut cursor = Cursor::new(data);
    let Some(mut members) = cursor.members() else { return Ok(false) };
    while let Some(key) = members.next_key()? {
        let found = match key.decoded().as_ref() {
            b"choices" => token_in_choices(members.cursor())?,
            b"delta" => members.cursor().at_filled_string() || token_in_delta(members.cursor())?,
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn token_in_choices(cursor: &mut Cursor<'_>) -> Result<bool, Malformed> {
    let Some(mut choices) = cursor.elements() else { return Ok(false) };
    while let Some(choice) = choices.next_element()? {
        let Some(mut members) = choice.members() else { continue };
        while let Some(key) = members.next_key()? {
            let found = match key.decoded().as_ref() {
                b"text" => members.cursor().at_filled_string(),
                b"delta" => token_in_delta(members.cursor())?,
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn token_in_delta(cursor: &mut Cursor<'_>) -> Result<bool, Malformed> {
    let Some(mut members) = cursor.members() else { return Ok(false) };
    while let Some(key) = members.next_key()? {
        let found = match key.decoded().as_ref() {
            b"content" | b"reasoning" | b"reasoning_content" | b"refusal" | b"text" | b"thinking" | b"partial_json" => {
                members.cursor().at_filled_string()
            }
            b"tool_calls" | b"function_call" => members.cursor().at_filled_container(),
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
