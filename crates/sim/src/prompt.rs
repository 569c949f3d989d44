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

/// Writes down the chained hashes of the prompt's blocks and where they end, as routers make them of text. Characters
/// count as bytes, and pieces as messages.
pub(crate) fn blocks(request: &PlannedRequest, hashes: &mut Vec<BlockHash>, ends: &mut Vec<u32>) {
    hashes.clear();
    ends.clear();
    let (mut hash, mut end) = (0, 0);
    for piece in &request.prompt {
        let mut used = 0;
        while used < piece.characters {
            let part = (piece.characters - used).min(BLOCK_BYTES);
            // Which part of which piece stands here: equal lists of parts are equal text.
            hash = mix(hash ^ mix(piece.id.0 ^ mix(u64::from(used) << 32 | u64::from(part))));
            used += part;
            end += part;
            hashes.push(BlockHash(hash));
            ends.push(end);
        }
    }
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
            let (mut hashes, mut ends) = (Vec::new(), Vec::new());
            blocks(&request(prompt), &mut hashes, &mut ends);
            (hashes, ends)
        };
        let (left, ends) = of(&[piece(1, 1_000), piece(2, 100)]);
        let (right, _) = of(&[piece(1, 1_000), piece(3, 100)]);
        let shared = 4_200u32.div_ceil(BLOCK_BYTES) as usize;
        assert_eq!((left.len(), ends.len()), (shared + 7, shared + 7));
        assert_eq!((ends[shared - 1], ends.last()), (4_200, Some(&4_620)));
        assert_eq!(left[..shared], right[..shared]);
        assert!(left[shared..].iter().zip(&right[shared..]).all(|(left, right)| left != right));
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
