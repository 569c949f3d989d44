//! Mooncake's traces: one id for each block of 512 tokens, equal for equal prompts up to there.

use serde::Deserialize;

use super::{Reading, wrong};
use crate::chain::{Block, extend_by_id, units};
use crate::entry::{Content, Entry};

/// Tokens in one block of the trace.
const BLOCK_TOKENS: u32 = 512;

#[derive(Deserialize)]
struct Record {
    /// Milliseconds since the trace's start.
    timestamp: f64,
    input_length: u32,
    #[serde(default)]
    output_length: u32,
    hash_ids: Vec<u64>,
}

pub(super) fn read(record: &[u8], each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    let record: Record = serde_json::from_slice(record).map_err(wrong)?;
    let (found, blocks) = (record.hash_ids.len(), record.input_length.div_ceil(BLOCK_TOKENS) as usize);
    if found != blocks || blocks == 0 {
        return Err(format!(
            "hash_ids has {found} entries for an input of {} tokens; it must have one for each block of \
             {BLOCK_TOKENS}, {blocks} here, and at least one",
            record.input_length
        ));
    }
    let mut hash = 0;
    let block = |(place, id): (u32, &u64)| {
        hash = extend_by_id(hash, *id);
        of_tokens(hash, (record.input_length - place * BLOCK_TOKENS).min(BLOCK_TOKENS))
    };
    each(Entry {
        at: Some((record.timestamp * 1e3) as i64),
        content: Content::Chain((0..).zip(&record.hash_ids).map(block).collect()),
        output_tokens: Some(record.output_length.max(1)),
        prompt_tokens: Some(record.input_length.into()),
        cached_tokens: None,
        believed_tokens: None,
        session: None,
    });
    Ok(Reading::Requests)
}

/// A block of which only the length is known: ordinary text.
pub(super) fn of_tokens(hash: u64, tokens: u32) -> Block {
    let characters = (f64::from(tokens) * isotherm_workload::CHARACTERS_PER_TOKEN).round() as u32;
    Block { hash, units: units(tokens), characters, generated: false }
}
