//! Token counts of a request, and their JSON in the forms of the APIs.

use bytes::BytesMut;
use serde_json::{Value, json};

use crate::json::{push, push_number};

/// How many tokens a request took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// Of the prompt, cached ones included.
    pub(crate) prompt: u32,
    /// Of these, out of the prefix cache.
    pub(crate) cached: u32,
    /// Generated.
    pub(crate) output: u32,
    /// Whether how much was cached is kept quiet.
    pub(crate) hides_cached: bool,
}

impl Usage {
    /// Chat, completions, embeddings: vLLM's `UsageInfo` as with `--enable-prompt-tokens-details`.
    pub(crate) fn openai(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.output,
            "completion_tokens": self.output,
            "prompt_tokens_details": (!self.hides_cached).then(|| json!({"cached_tokens": self.cached})),
        })
    }

    /// The same, appended to a stream.
    pub(crate) fn push_openai(self, out: &mut BytesMut) {
        push(out, "{\"prompt_tokens\":");
        push_number(out, self.prompt);
        push(out, ",\"total_tokens\":");
        push_number(out, self.prompt + self.output);
        push(out, ",\"completion_tokens\":");
        push_number(out, self.output);
        if self.hides_cached {
            push(out, ",\"prompt_tokens_details\":null}");
        } else {
            push(out, ",\"prompt_tokens_details\":{\"cached_tokens\":");
            push_number(out, self.cached);
            push(out, "}}");
        }
    }

    /// `/v1/responses`.
    pub(crate) fn responses(self) -> Value {
        json!({
            "input_tokens": self.prompt,
            "input_tokens_details": {"cached_tokens": self.cached},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.prompt + self.output,
        })
    }

    /// `/v1/messages`: `input_tokens` leaves out what was read from the cache.
    pub(crate) fn anthropic(self) -> Value {
        json!({
            "input_tokens": self.prompt - self.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached,
            "output_tokens": self.output,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pushed_form_equals_the_built_one() {
        let usage = Usage { prompt: 100, cached: 96, output: 12, hides_cached: false };
        for usage in [usage, Usage { hides_cached: true, ..usage }] {
            let mut out = BytesMut::new();
            usage.push_openai(&mut out);
            assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), usage.openai());
            assert_eq!(usage.openai()["prompt_tokens_details"].is_null(), usage.hides_cached);
        }
        assert_eq!(usage.anthropic()["input_tokens"], 4);
    }
}
