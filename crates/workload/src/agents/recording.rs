//! A recorded session as it is written down: JSON of kv-cache-tester.

use std::time::Duration;

use serde::Deserialize;

use super::session::AgentSession;
use super::tree::Prompt;

/// One session.
#[derive(Deserialize)]
pub(crate) struct Recording {
    /// Tokens of a block; each has one hash.
    block_size: u32,
    /// Tokens of the tool definitions, with which prompts begin.
    #[serde(default)]
    tool_tokens: u32,
    /// Tokens of the system prompt after them.
    #[serde(default)]
    system_tokens: u32,
    requests: Vec<Entry>,
}

/// One request, or one sub-agent with its requests.
#[derive(Deserialize)]
struct Entry {
    /// Seconds since the session's start.
    t: f64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "in", default)]
    input_tokens: u32,
    #[serde(rename = "out", default)]
    output_tokens: u32,
    /// One for each full block of the prompt; equal ids are equal prompts up to there.
    #[serde(default)]
    hash_ids: Vec<u64>,
    /// Seconds between the end of the answer before and this request.
    think_time: Option<f64>,
    /// Seconds that the answer took.
    api_time: Option<f64>,
    #[serde(default)]
    requests: Vec<Entry>,
}

impl Recording {
    pub(crate) fn parse(line: &str) -> Result<Recording, String> {
        let recording: Recording = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if recording.block_size == 0 {
            return Err("block_size is 0; it must be at least 1".to_owned());
        }
        Ok(recording)
    }

    /// Makes hashes of blocks into pieces that prompts have in common.
    pub(crate) fn session(&self) -> Result<AgentSession, String> {
        let mut entries = Vec::new();
        self.requests.iter().for_each(|entry| entry.flatten(&mut entries));
        let prompts = entries.iter().map(|entry| entry.prompt(self.block_size)).collect::<Result<Vec<_>, _>>()?;
        let mut before = None;
        let thinks = entries.iter().map(|entry| entry.pause_after(before.replace(*entry))).collect();
        let opening = [self.tool_tokens, self.tool_tokens.saturating_add(self.system_tokens)];
        Ok(AgentSession::new(&prompts, thinks, self.block_size, opening))
    }
}

impl Entry {
    /// Appends the requests in the order in which they run.
    fn flatten<'a>(&'a self, requests: &mut Vec<&'a Entry>) {
        if self.kind == "subagent" {
            self.requests.iter().for_each(|entry| entry.flatten(requests));
        } else {
            requests.push(self);
        }
    }

    fn prompt(&self, block_tokens: u32) -> Result<Prompt<'_>, String> {
        let (found, full) = (self.hash_ids.len(), (self.input_tokens / block_tokens) as usize);
        let partial = usize::from(!self.input_tokens.is_multiple_of(block_tokens));
        if self.input_tokens == 0 || found < full || found > full + partial {
            return Err(format!(
                "the request at t = {} has {found} hash_ids for an input of {} tokens; it must have one for each of \
                 its {full} blocks of {block_tokens}, and at least 1 token",
                self.t, self.input_tokens
            ));
        }
        Ok(Prompt {
            blocks: &self.hash_ids[..full],
            tokens: self.input_tokens,
            output_tokens: self.output_tokens.max(1),
        })
    }

    /// The pause before this request. Where the recording does not know how long the answer before took, it counts
    /// pauses from an earlier one: no pause is longer than the time between the two requests.
    fn pause_after(&self, before: Option<&Entry>) -> Duration {
        let Some(before) = before else { return Duration::ZERO };
        let apart = self.t - before.t;
        let pause = self.think_time.unwrap_or(apart - before.api_time.unwrap_or(0.0));
        Duration::try_from_secs_f64(pause.min(apart)).unwrap_or_default()
    }
}
