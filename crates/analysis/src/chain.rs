//! Prompts as chains of blocks: equal hashes are equal beginnings.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Tokens are counted in parts of this size, so that a block of text can have a fraction of one.
pub(crate) const UNITS_PER_TOKEN: u32 = 256;

/// How many bytes of text make a block: about 15 tokens, as vLLM's blocks have 16.
pub(crate) const TEXT_BLOCK_BYTES: usize = 64;

/// A part of a prompt, within its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Names the prompt from its beginning to the end of this block.
    pub(crate) hash: u64,
    /// Its length, in units of 1/[`UNITS_PER_TOKEN`] token.
    pub(crate) units: u32,
    /// How many characters of it are text of the request, which is what a router's prefix is cut from.
    pub(crate) characters: u32,
    /// An engine generated it as the answer to an earlier request, so it has been computed.
    pub(crate) generated: bool,
}

/// Names a prompt that goes on with these bytes.
pub(crate) fn extend(chain: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, chain)
}

/// Names a prompt that goes on with the block of this id.
pub(crate) fn extend_by_id(chain: u64, id: u64) -> u64 {
    extend(chain, &id.to_le_bytes())
}

/// Tokens as units; more than fit are cut.
pub(crate) fn units(tokens: u32) -> u32 {
    tokens.saturating_mul(UNITS_PER_TOKEN)
}

/// Units as tokens.
pub(crate) fn tokens(units: u64) -> f64 {
    units as f64 / f64::from(UNITS_PER_TOKEN)
}

/// How many units a text has in most tokenizers: a token is 4.2 characters of ASCII, or 1.5 of other scripts.
pub(crate) fn text_units(bytes: &[u8]) -> u32 {
    let ascii = bytes.iter().filter(|byte| byte.is_ascii()).count();
    let others = bytes.iter().filter(|byte| **byte >= 0xC0 && **byte < 0xF8).count();
    let tokens = ascii as f64 / isotherm_workload::CHARACTERS_PER_TOKEN + others as f64 / 1.5;
    (tokens * f64::from(UNITS_PER_TOKEN)).round() as u32
}

/// How many characters begin in these bytes.
pub(crate) fn characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000 && **byte != 0xFF).count() as u32
}
