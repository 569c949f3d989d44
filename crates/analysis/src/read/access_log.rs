//! Isotherm's access log: no text; the key of each prefix, what the engine reported, and sometimes a chain of hashes.

use serde::Deserialize;

use super::{Reading, wrong};
use crate::chain::{Block, extend_by_id, text_units};
use crate::entry::{Content, Entry};
use crate::timestamp;

/// Bytes of a prompt in one of the log's hashes, unless it says otherwise: `isotherm_core::BLOCK_BYTES`.
const BLOCK_BYTES: u32 = isotherm_core::BLOCK_BYTES;

#[derive(Deserialize)]
struct Line {
    time: String,
    status: u16,
    /// The prefix key in hexadecimal digits; absent where no prefix was looked at.
    key: Option<String>,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// The hashes of the prompt's blocks, each chained to the one before, in hexadecimal digits.
    blocks: Option<Vec<String>>,
    block_bytes: Option<u32>,
    /// Where these end, in bytes from the prompt's beginning.
    ends: Option<Vec<u32>>,
    /// From which of them to which the model itself has spoken, the last one not included.
    answers: Option<Vec<(usize, usize)>>,
    expected_cached_tokens: Option<u64>,
}

pub(super) fn read(record: &[u8], each: &mut dyn FnMut(Entry)) -> Result<Reading, String> {
    let line: Line = serde_json::from_slice(record).map_err(wrong)?;
    let content = match (&line.blocks, &line.key) {
        (Some(blocks), Some(key)) if !blocks.is_empty() => Content::KeyedChain(chain(blocks, &line)?, name(key)?),
        (Some(blocks), None) if !blocks.is_empty() => Content::Chain(chain(blocks, &line)?),
        (_, Some(key)) => Content::Key(hash(key)?),
        _ => return Ok(Reading::Other),
    };
    if !(200..300).contains(&line.status) {
        return Ok(Reading::Other);
    }
    each(Entry {
        at: timestamp::parse(&line.time.clone().into()),
        content,
        output_tokens: line.output_tokens.and_then(|tokens| u32::try_from(tokens).ok()),
        prompt_tokens: line.prompt_tokens,
        cached_tokens: line.cached_tokens,
        believed_tokens: line.expected_cached_tokens,
        session: None,
    });
    Ok(Reading::Requests)
}

fn chain(blocks: &[String], line: &Line) -> Result<Vec<Block>, String> {
    let each = line.block_bytes.unwrap_or(BLOCK_BYTES);
    let ends = line.ends.as_deref().filter(|ends| ends.len() == blocks.len() && ends.is_sorted());
    if line.ends.is_some() && ends.is_none() {
        return Err("`ends` must be as many rising numbers as `blocks`".to_owned());
    }
    let length = ends.and_then(<[u32]>::last).map_or(u64::from(each) * blocks.len() as u64, |last| u64::from(*last));
    // Spread the tokens that the engine counted; without them, text of ordinary length.
    let units_until = |end: u64| match line.prompt_tokens {
        // A log may hold any number; the product of three does not fit where each does.
        Some(tokens) => {
            let units = u128::from(tokens) * u128::from(crate::chain::UNITS_PER_TOKEN) * u128::from(end);
            u64::try_from(units / u128::from(length.max(1))).unwrap_or(u64::MAX)
        }
        None => end * u64::from(text_units(&[b'x'; 1_000])) / 1_000,
    };
    let end_of = |block: usize| ends.map_or(u64::from(each) * (block as u64 + 1), |ends| u64::from(ends[block]));
    let is_answer = |block: usize| line.answers.iter().flatten().any(|(from, to)| (*from..*to).contains(&block));
    let mut begin = 0;
    let mut chain = Vec::with_capacity(blocks.len());
    for (number, block) in blocks.iter().enumerate() {
        let end = end_of(number);
        chain.push(Block {
            hash: extend_by_id(0, hash(block)?),
            units: u32::try_from(units_until(end) - units_until(begin)).unwrap_or(u32::MAX),
            characters: (end - begin) as u32,
            generated: is_answer(number),
        });
        begin = end;
    }
    Ok(chain)
}

/// The first 64 bits of a key in hexadecimal digits: what people see of it.
fn name(key: &str) -> Result<u64, String> {
    hash(key.get(..16).unwrap_or(key))
}

/// The last 64 bits of a hash in hexadecimal digits.
fn hash(text: &str) -> Result<u64, String> {
    let digits = text.get(text.len().saturating_sub(16)..).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| "a hash has other than hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(more: &str, status: u16) -> (Reading, Option<Entry>) {
        let line = format!(
            r#"{{"time":"2026-11-30T00:00:00.000Z","request_id":"r","method":"POST","status":{status},"outcome":"ok"{more}}}"#
        );
        let mut entry = None;
        (read(line.as_bytes(), &mut |read| entry = Some(read)).unwrap(), entry)
    }

    #[test]
    fn numbers_of_any_size_are_read() {
        let more = format!(r#","blocks":["00ff","ab"],"ends":[64,{}],"prompt_tokens":{}"#, u32::MAX, u64::MAX);
        let Content::Chain(blocks) = read_line(&more, 200).1.unwrap().content else { panic!("a chain was there") };
        assert_eq!(blocks.last().map(|block| block.units), Some(u32::MAX));
    }

    #[test]
    fn a_line_has_a_chain_or_a_key_or_tells_nothing() {
        let (_, entry) = read_line(r#","key":"dcecc7806d1582cf14b78122ecb5c9b6","prompt_tokens":100"#, 200);
        assert_eq!(entry.unwrap().content, Content::Key(0x14b7_8122_ecb5_c9b6));
        let (_, entry) = read_line(r#","blocks":["00ff","ab"],"prompt_tokens":100"#, 200);
        let Content::Chain(blocks) = entry.unwrap().content else { panic!("a chain was there") };
        assert_eq!((blocks.len(), blocks[0].units), (2, 50 * 256));
        let keyed = r#","key":"dcecc7806d1582cf14b78122ecb5c9b6","blocks":["00ff","ab"],"prompt_tokens":100"#;
        let Content::KeyedChain(same, name) = read_line(keyed, 200).1.unwrap().content else { panic!("with its key") };
        assert_eq!((same, name), (blocks, 0xdcec_c780_6d15_82cf), "named as the dashboard names it");
        let more = r#","blocks":["00ff","ab","cd"],"ends":[64,70,100],"answers":[[1,2]],"prompt_tokens":100,
            "cached_tokens":64,"expected_cached_tokens":60"#;
        let entry = read_line(&more.replace('\n', ""), 200).1.unwrap();
        assert_eq!((entry.believed_tokens, entry.cached_tokens), (Some(60), Some(64)));
        let Content::Chain(blocks) = entry.content else { panic!("a chain was there") };
        let told: Vec<_> = blocks.iter().map(|block| (block.units / 256, block.characters, block.generated)).collect();
        assert_eq!(told, [(64, 64, false), (6, 6, true), (30, 30, false)]);
        assert_eq!(read_line("", 200).0, Reading::Other);
        assert_eq!(read_line(r#","key":"1f""#, 502).0, Reading::Other, "what was not answered filled no cache");
    }
}
