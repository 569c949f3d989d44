//! What a prompt made of pieces looks like to a router: its beginnings, and the key of its prefix.

use isotherm_core::{BLOCK_BYTES, BlockHash, HashSeed, KeyScope, PrefixHasher, PrefixKey, PrefixLength, prefix_key};
use isotherm_workload::{Piece, PlannedRequest};

/// A prompt up to the end of one of its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Names it: equal beginnings have equal hashes.
    pub(crate) hash: u64,
    /// Its length.
    pub(crate) tokens: u32,
}

/// Writes down the beginnings of a prompt, the shortest first and the whole prompt last.
pub(crate) fn beginnings(prompt: &[Piece], into: &mut Vec<Beginning>) {
    into.clear();
    let mut last = Beginning { hash: 0, tokens: 0 };
    for piece in prompt {
        last = Beginning {
            hash: mix(last.hash ^ mix(piece.id.0)) ^ u64::from(piece.tokens),
            tokens: last.tokens + piece.tokens,
        };
        into.push(last);
    }
}

/// The key of the prompt's first `length` characters, each tenant's for itself.
///
/// No text is hashed but the names of the pieces and how many characters of each the prefix covers: two prefixes that
/// are equal as text are equal as such a list, and the other way round.
pub(crate) fn key(seed: HashSeed, length: PrefixLength, request: &PlannedRequest) -> Option<PrefixKey> {
    let mut hasher = PrefixHasher::new(seed);
    let beginning = request.beginning(u64::from(length.get()));
    for piece in beginning.whole {
        hasher.update(&piece.id.0.to_le_bytes());
        hasher.update(&u64::from(piece.characters).to_le_bytes());
    }
    if let Some(cut) = beginning.cut {
        hasher.update(&cut.piece.0.to_le_bytes());
        hasher.update(&cut.characters.to_le_bytes());
    }
    let tenant = request.tenant.name();
    Some(prefix_key(seed, &KeyScope::default(), tenant.as_deref(), None, &hasher.finish()?))
}

/// Writes down the chained hashes of the prompt's whole blocks of [`BLOCK_BYTES`], and returns the hash of all of it and
/// its length in bytes. Characters count as bytes.
pub(crate) fn blocks(request: &PlannedRequest, into: &mut Vec<BlockHash>) -> (u64, u64) {
    let block = u64::from(BLOCK_BYTES);
    let (mut hash, mut filled, mut bytes) = (0, 0, 0);
    for piece in &request.prompt {
        let mut used = 0;
        let length = u64::from(piece.characters);
        while used < length {
            let part = (length - used).min(block - filled);
            // Which part of which piece stands here: equal lists of parts are equal text.
            hash = mix(hash ^ mix(piece.id.0 ^ mix(used << 32 | part)));
            used += part;
            filled += part;
            if filled == block {
                into.push(BlockHash(hash));
                filled = 0;
            }
        }
        bytes += length;
    }
    (hash, bytes)
}

/// The finaliser of SplitMix64: spreads the bits of a number.
pub(crate) fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_workload::{PieceId, SessionId, TenantId};

    use super::*;

    fn piece(id: u64, tokens: u32) -> Piece {
        Piece::new(PieceId(id), tokens)
    }

    fn request(prompt: &[Piece]) -> PlannedRequest {
        PlannedRequest {
            session: SessionId(0),
            tenant: TenantId(0),
            think: Duration::ZERO,
            prompt: prompt.to_vec(),
            output: PieceId(99),
            output_tokens: 1,
        }
    }

    fn key_of(length: u64, prompt: &[Piece]) -> Option<PrefixKey> {
        key(HashSeed(1), PrefixLength::new(length).unwrap(), &request(prompt))
    }

    #[test]
    fn prompts_with_equal_first_characters_have_one_key_and_others_do_not() {
        let (long, short) = (piece(1, 1_000), piece(2, 100));
        assert_eq!(key_of(4_096, &[long, piece(3, 50)]), key_of(4_096, &[long, piece(4, 50)]));
        assert_ne!(key_of(4_300, &[long, piece(3, 50)]), key_of(4_300, &[long, piece(4, 50)]));
        assert_ne!(key_of(4_096, &[short]), key_of(4_096, &[short, piece(3, 50)]), "a short text is used whole");
        assert_eq!(key_of(420, &[short]), key_of(420, &[short, piece(3, 50)]), "cut exactly at a piece's end");
        assert_eq!(key_of(4_096, &[]), None);
    }

    #[test]
    fn tenants_with_equal_prompts_have_keys_of_their_own() {
        let of = |tenant| {
            let request = PlannedRequest { tenant: TenantId(tenant), ..request(&[piece(1, 1_000)]) };
            key(HashSeed(1), PrefixLength::default(), &request)
        };
        assert_eq!(of(1), of(1));
        assert!(of(0) != of(1) && of(1) != of(2));
    }

    #[test]
    fn blocks_are_equal_exactly_as_far_as_the_text_is() {
        let of = |prompt: &[Piece]| {
            let mut hashes = Vec::new();
            let whole = blocks(&request(prompt), &mut hashes);
            (hashes, whole)
        };
        let (left, (left_whole, bytes)) = of(&[piece(1, 1_000), piece(2, 100)]);
        let (right, (right_whole, _)) = of(&[piece(1, 1_000), piece(3, 100)]);
        assert_eq!((left.len(), bytes), (4_620 / BLOCK_BYTES as usize, 4_620));
        let shared = 4_200 / BLOCK_BYTES as usize;
        assert_eq!(left[..shared], right[..shared]);
        assert!(left[shared..].iter().zip(&right[shared..]).all(|(left, right)| left != right));
        assert_ne!(left_whole, right_whole);
    }

    #[test]
    fn beginnings_grow_and_are_equal_exactly_as_far_as_the_prompts_are() {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        beginnings(&[piece(1, 10), piece(2, 20), piece(3, 30)], &mut left);
        beginnings(&[piece(1, 10), piece(2, 20), piece(4, 30)], &mut right);
        assert_eq!(left.iter().map(|beginning| beginning.tokens).collect::<Vec<_>>(), [10, 30, 60]);
        assert_eq!(left[..2], right[..2]);
        assert_ne!(left[2], right[2]);
    }
}
