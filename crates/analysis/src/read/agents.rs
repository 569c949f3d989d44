//! Recorded sessions of agents: one session a record, with ids of blocks that hold for this session only.

use serde::Deserialize;

use super::mooncake::of_tokens;
use super::{Reading, wrong};
use crate::chain::{Block, extend_by_id};
use crate::entry::{Content, Entry, Session};

#[derive(Deserialize)]
struct Recording {
    /// Tokens of a block; each full one has an id.
    block_size: u32,
    requests: Vec<Request>,
}

/// One request, or one sub-agent with its requests.
#[derive(Deserialize)]
struct Request {
    /// Seconds since the session's start.
    t: f64,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(rename = "in", default)]
    input_tokens: u32,
    #[serde(rename = "out", default)]
    output_tokens: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
    /// Seconds between the answer before and this request.
    think_time: Option<f64>,
    #[serde(default)]
    requests: Vec<Request>,
}

pub(super) fn read(record: &[u8], number: u64, each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    let recording: Recording = serde_json::from_slice(record).map_err(wrong)?;
    if recording.block_size == 0 {
        return Err("block_size is 0; it must be at least 1".to_owned());
    }
    let mut requests = Vec::new();
    recording.requests.iter().for_each(|request| request.flatten(&mut requests));
    // The requests of sub-agents run beside each other; by their times they stand as they were sent.
    requests.sort_by(|before, after| before.t.total_cmp(&after.t));
    // The prompt before, which most prompts of a session continue, and how long its answer was.
    let mut before: (usize, u32) = (0, 0);
    for request in requests {
        let blocks = request.blocks(number, recording.block_size, before)?;
        before = (blocks.len(), request.output_tokens);
        each(Entry {
            at: None,
            content: Content::Chain(blocks),
            output_tokens: Some(request.output_tokens.max(1)),
            prompt_tokens: Some(request.input_tokens.into()),
            cached_tokens: None,
            believed_tokens: None,
            session: Some(Session { number, think: request.think_time.map_or(0, |seconds| (seconds * 1e6) as u64) }),
        });
    }
    Ok(Reading::Requests)
}

impl Request {
    fn flatten<'a>(&'a self, requests: &mut Vec<&'a Request>) {
        if self.kind == "subagent" {
            self.requests.iter().for_each(|request| request.flatten(requests));
        } else {
            requests.push(self);
        }
    }

    /// The prompt's full blocks and what is behind them. `before` is how many blocks the prompt before had, and the
    /// tokens of its answer: where this prompt is longer, that answer stands there.
    fn blocks(&self, session: u64, block_tokens: u32, before: (usize, u32)) -> Result<Vec<Block>, String> {
        let (found, full) = (self.hash_ids.len(), (self.input_tokens / block_tokens) as usize);
        let partial = self.input_tokens % block_tokens;
        if self.input_tokens == 0 || found < full || found > full + usize::from(partial > 0) {
            return Err(format!(
                "the request at t = {} has {found} hash_ids for an input of {} tokens; it must have one for each of \
                 its {full} blocks of {block_tokens}, and at least 1 token",
                self.t, self.input_tokens
            ));
        }
        let mut hash = extend_by_id(0, session);
        let answered = before.0..before.0 + (before.1 / block_tokens) as usize;
        let mut blocks: Vec<Block> = (0..)
            .zip(&self.hash_ids[..full])
            .map(|(place, id): (usize, _)| {
                hash = extend_by_id(hash, *id);
                Block { generated: answered.contains(&place), ..of_tokens(hash, block_tokens) }
            })
            .collect();
        if partial > 0 {
            // What is behind the last full block has no id and is no block of the engine's either.
            blocks.push(of_tokens(extend_by_id(extend_by_id(hash, u64::MAX), self.t.to_bits()), partial));
        }
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(record: &str) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        read(record.as_bytes(), 3, &mut |entry| entries.push(entry)).map(|_| entries)
    }

    #[test]
    fn a_session_becomes_requests_in_the_order_of_their_times() {
        let record = r#"{"block_size":64,"requests":[
            {"t":0,"type":"n","in":130,"out":128,"hash_ids":[1,2]},
            {"t":9,"type":"n","in":320,"out":5,"hash_ids":[1,2,3,4,5],"think_time":2.5},
            {"t":4,"type":"subagent","requests":[{"t":5,"type":"n","in":64,"out":0,"hash_ids":[9]}]}]}"#;
        let entries = entries(record).unwrap();
        let lengths: Vec<_> = entries.iter().map(|entry| entry.prompt_tokens.unwrap()).collect();
        assert_eq!(lengths, [130, 64, 320]);
        let blocks = |entry: &Entry| match &entry.content {
            Content::Chain(blocks) => blocks.clone(),
            _ => Vec::new(),
        };
        assert_eq!(blocks(&entries[0])[..2], blocks(&entries[2])[..2]);
        assert_eq!(entries[2].session, Some(Session { number: 3, think: 2_500_000 }));
    }

    #[test]
    fn a_request_without_its_blocks_is_refused() {
        let error = entries(r#"{"block_size":64,"requests":[{"t":0,"in":130,"hash_ids":[1]}]}"#).unwrap_err();
        assert!(error.contains("has 1 hash_ids for an input of 130 tokens"), "{error}");
    }
}
