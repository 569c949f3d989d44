//! Block chains of prompts: the blocks of each piece are computed once for the beginning that it stands behind.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use isotherm_core::AlreadyHashed;
use isotherm_engine_model::{BlockChain, CacheScope, ChainBuilder};
use isotherm_workload::Piece;

use crate::prompt::Beginning;

/// When the remembered pieces have this many tokens, those not asked for since the last time are forgotten.
const GENERATION_TOKENS: u64 = 32 << 20;

/// Makes chains and remembers the parts of which they are made.
///
/// What was not asked for during a whole generation is forgotten, and computed again when it comes: the result is the
/// same, so memory is bounded without any effect on the simulation.
#[derive(Debug)]
pub(crate) struct Chains {
    empty: ChainBuilder,
    recent: HashMap<u64, ChainBuilder, BuildHasherDefault<AlreadyHashed>>,
    old: HashMap<u64, ChainBuilder, BuildHasherDefault<AlreadyHashed>>,
    recent_tokens: u64,
}

impl Chains {
    pub(crate) fn new() -> Chains {
        let empty = ChainBuilder::new(&CacheScope { model: "simulated", ..CacheScope::default() });
        Chains { empty, recent: HashMap::default(), old: HashMap::default(), recent_tokens: 0 }
    }

    /// The chain of a sequence of pieces with these beginnings.
    pub(crate) fn chain(&mut self, pieces: &[Piece], beginnings: &[Beginning]) -> BlockChain {
        let mut chain = self.empty.clone();
        for (piece, beginning) in pieces.iter().zip(beginnings) {
            if !self.recent.contains_key(&beginning.hash) {
                let part = self.old.remove(&beginning.hash).unwrap_or_else(|| {
                    let mut part = chain.continuation();
                    part.push_content(piece.id.0, piece.tokens);
                    part
                });
                self.remember(beginning.hash, piece.tokens, part);
            }
            if let Some(part) = self.recent.get(&beginning.hash) {
                chain.append(part);
            }
        }
        chain.build()
    }

    fn remember(&mut self, hash: u64, tokens: u32, part: ChainBuilder) {
        self.recent_tokens += u64::from(tokens);
        if self.recent_tokens > GENERATION_TOKENS {
            self.old = std::mem::take(&mut self.recent);
            self.recent_tokens = u64::from(tokens);
        }
        self.recent.insert(hash, part);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_workload::PieceId;

    use super::*;
    use crate::prompt::beginnings;

    #[test]
    fn remembered_parts_give_the_chain_that_the_whole_has() {
        let piece = |id, tokens| Piece::new(PieceId(id), tokens);
        let prompts = [
            vec![piece(1, 100), piece(2, 37)],
            vec![piece(1, 100), piece(3, 50), piece(4, 90)],
            vec![piece(1, 100), piece(2, 37), piece(5, 500)],
        ];
        let mut chains = Chains::new();
        for prompt in prompts.iter().chain(&prompts) {
            let mut whole = ChainBuilder::new(&CacheScope { model: "simulated", ..CacheScope::default() });
            prompt.iter().for_each(|piece| whole.push_content(piece.id.0, piece.tokens));
            let mut marks = Vec::new();
            beginnings(prompt, &mut marks);
            assert_eq!(chains.chain(prompt, &marks).hashes(), whole.build().hashes());
        }
        assert_eq!(chains.recent.len(), 5);
    }
}
