//! What an answer says about itself: whether a token came, its text, how many there were, whether something went wrong.

use std::borrow::Cow;
use std::fmt;

use isotherm_report::{Failure, FailureKind};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The parts of a chat completion, or of a chunk of one, that a measurement needs.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    pub(crate) usage: Option<Usage>,
    error: Option<serde_json::Value>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Choice<'a> {
    /// Of a chunk.
    #[serde(borrow)]
    delta: Delta<'a>,
    /// Of a whole answer.
    #[serde(borrow)]
    message: Delta<'a>,
}

/// What a chunk adds.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Delta<'a> {
    /// Engines open a stream with it, some of them before there is a token.
    role: Option<IgnoredAny>,
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow)]
    reasoning: Content<'a>,
    #[serde(borrow)]
    reasoning_content: Content<'a>,
    #[serde(borrow)]
    tool_calls: Content<'a>,
}

/// Token counts as the engine gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptTokensDetails>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
struct PromptTokensDetails {
    cached_tokens: Option<u64>,
}

impl<'a> Answer<'a> {
    /// Reads a response body or the data of one event.
    pub(crate) fn parse(json: &'a [u8]) -> Result<Answer<'a>, Failure> {
        let answer: Answer = serde_json::from_slice(json).map_err(|error| Failure {
            kind: FailureKind::Malformed,
            detail: format!("not a chat completion: {error}: {}", excerpt(json)),
        })?;
        match &answer.error {
            Some(error) if !error.is_null() => {
                Err(Failure { kind: FailureKind::ErrorEvent, detail: excerpt(error.to_string().as_bytes()) })
            }
            _ => Ok(answer),
        }
    }

    /// Whether a chunk brings a token: content, reasoning or part of a tool call that is not empty.
    pub(crate) fn has_token(&self) -> bool {
        let filled = |delta: &Delta<'_>| {
            let parts = [&delta.content, &delta.reasoning, &delta.reasoning_content, &delta.tool_calls];
            parts.iter().any(|part| part.filled)
        };
        self.choices.iter().any(|choice| filled(&choice.delta))
    }

    /// Whether a chunk comes after the one that tells the role: a token, even one without text of its own (half a letter,
    /// a special token), or the end.
    pub(crate) fn is_generated(&self) -> bool {
        self.choices.iter().any(|choice| choice.delta.role.is_none())
    }

    /// The words of the first choice: what a client would show, and send back with the next question.
    pub(crate) fn text(&self) -> impl Iterator<Item = &str> {
        let choice = self.choices.iter().take(1);
        choice.flat_map(|choice| [&choice.delta, &choice.message]).map(|delta| delta.content.text.as_ref())
    }
}

impl Usage {
    pub(crate) fn cached_tokens(&self) -> Option<u64> {
        self.prompt_tokens_details?.cached_tokens
    }
}

/// The beginning of a body, for a message.
pub(crate) fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(200).collect()
}

/// What a JSON value holds: whether anything (a string or an array that is not empty, or an object), and a string's text.
#[derive(Clone, Debug, Default)]
struct Content<'a> {
    filled: bool,
    text: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content<'a>, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string, an array, an object or null")
    }

    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content { filled: !text.is_empty(), text: Cow::Borrowed(text) })
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content { filled: !text.is_empty(), text: Cow::Owned(text.to_owned()) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content<'de>, A::Error> {
        let mut filled = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            filled = true;
        }
        Ok(Content { filled, text: Cow::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content<'de>, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content { filled: true, text: Cow::default() })
    }
}

#[cfg(test)]
mod tests {
    use isotherm_report::FailureKind;

    use super::Answer;

    fn has_token(delta: &str) -> bool {
        Answer::parse(format!(r#"{{"id":"x","choices":[{{"index":0,"delta":{delta}}}],"usage":null}}"#).as_bytes())
            .unwrap()
            .has_token()
    }

    #[test]
    fn a_token_is_content_reasoning_or_a_tool_call_that_is_not_empty() {
        for delta in [r#"{"role":"assistant","content":""}"#, r#"{"content":null,"tool_calls":[]}"#, "{}"] {
            assert!(!has_token(delta), "{delta}");
        }
        for delta in [
            r#"{"content":"\n"}"#,
            r#"{"reasoning":"Hm"}"#,
            r#"{"content":"","reasoning_content":"Hm"}"#,
            r#"{"content":null,"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#,
            r#"{"content":[{"type":"text","text":"a"}]}"#,
        ] {
            assert!(has_token(delta), "{delta}");
        }
    }

    #[test]
    fn what_tells_the_role_is_not_generated_yet_and_what_follows_is() {
        let is_generated = |json: &str| Answer::parse(json.as_bytes()).unwrap().is_generated();
        assert!(!is_generated(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#));
        assert!(!is_generated(r#"{"choices":[],"usage":{"completion_tokens":1}}"#));
        assert!(is_generated(r#"{"choices":[{"delta":{"content":""}}]}"#));
        assert!(is_generated(r#"{"choices":[{"delta":{"role":null},"finish_reason":"stop"}]}"#));
    }

    #[test]
    fn the_text_is_that_of_the_first_choice_in_a_chunk_or_a_whole_answer() {
        let text = |json: &str| Answer::parse(json.as_bytes()).unwrap().text().collect::<String>();
        assert_eq!(
            text(r#"{"choices":[{"delta":{"content":"two \"words\""}},{"delta":{"content":"no"}}]}"#),
            "two \"words\""
        );
        assert_eq!(text(r#"{"choices":[{"message":{"role":"assistant","content":"warm"}}]}"#), "warm");
        assert_eq!(text(r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}"#), "");
        assert_eq!(text(r#"{"choices":[],"usage":null}"#), "");
    }

    #[test]
    fn reads_usage_with_and_without_cached_tokens() {
        let usage = |json: &str| Answer::parse(json.as_bytes()).unwrap().usage.unwrap();
        let full = usage(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2,
                "prompt_tokens_details":{"cached_tokens":4,"audio_tokens":null}}}"#,
        );
        assert_eq!((full.prompt_tokens, full.completion_tokens, full.cached_tokens()), (Some(9), Some(2), Some(4)));
        let bare = usage(r#"{"usage":{"prompt_tokens":9,"prompt_tokens_details":null}}"#);
        assert_eq!((bare.prompt_tokens, bare.completion_tokens, bare.cached_tokens()), (Some(9), None, None));
    }

    #[test]
    fn errors_and_nonsense_are_failures() {
        let failure = |json: &str| Answer::parse(json.as_bytes()).unwrap_err();
        let error = failure(r#"{"error":{"message":"out of memory","code":500}}"#);
        assert_eq!(error.kind, FailureKind::ErrorEvent);
        assert!(error.detail.contains("out of memory"));
        assert_eq!(failure(r#"{"error":"broken"}"#).kind, FailureKind::ErrorEvent);
        assert_eq!(failure("<html>").kind, FailureKind::Malformed);
        assert!(Answer::parse(br#"{"error":null,"choices":[]}"#).is_ok());
    }
}
