//! One request inside the engine: how much of it is computed, and where.

use crate::block::{BLOCK_TOKENS, BlockChain};
use crate::cache::{BlockId, BlockPool};
use crate::request::{EngineRequest, RequestId};

/// A request from its submission to its end, with the blocks that it holds.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
    chain: BlockChain,
    /// Tokens generated so far.
    pub(super) generated: u32,
    /// Tokens whose keys and values are in `blocks`. The token generated last is not computed yet.
    pub(super) computed: u32,
    /// Tokens that the running step computes.
    pub(super) planned: u32,
    /// Full blocks that can be found by others already.
    stored: usize,
    pub(super) blocks: Vec<BlockId>,
    /// Prompt tokens found in the cache when it was first scheduled; preemption does not change it (vLLM's
    /// `num_cached_tokens`).
    pub(super) cached_tokens: Option<u32>,
    /// It was aborted or is finished, and leaves when the running step ends.
    pub(super) leaves: bool,
}

impl Sequence {
    pub(super) fn new(request: EngineRequest) -> Self {
        Self {
            id: request.id,
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            chain: request.chain,
            generated: 0,
            computed: 0,
            planned: 0,
            stored: 0,
            blocks: Vec::new(),
            cached_tokens: None,
            leaves: false,
        }
    }

    /// Tokens known so far: the prompt and what was generated.
    pub(super) fn known(&self) -> u32 {
        self.prompt_tokens + self.generated
    }

    /// Known tokens that are not computed: 1 for a decoding request, more for one whose prompt is not done.
    pub(super) fn missing(&self) -> u32 {
        self.known() - self.computed
    }

    /// Blocks lacking to hold `tokens` tokens in all.
    pub(super) fn lacking_blocks(&self, tokens: u32) -> usize {
        (tokens.div_ceil(BLOCK_TOKENS) as usize).saturating_sub(self.blocks.len())
    }

    /// Looks its beginning up in the cache. At least one token stays to be computed, for the next token comes out of
    /// that computation; and since only full blocks are found, that can be a whole block.
    pub(super) fn find_cached(&mut self, pool: &BlockPool) {
        let findable = ((self.known() - 1) / BLOCK_TOKENS) as usize;
        let chain = self.chain.hashes();
        pool.find(&chain[..findable.min(chain.len())], &mut self.blocks);
        self.stored = self.blocks.len();
        self.computed = self.stored as u32 * BLOCK_TOKENS;
    }

    /// Undoes [`find_cached`](Self::find_cached) when there is no room for the rest.
    pub(super) fn forget_found(&mut self) {
        self.blocks.clear();
        self.stored = 0;
        self.computed = 0;
    }

    /// Lets others find the blocks that are full with the first `tokens` tokens.
    pub(super) fn store_full_blocks(&mut self, tokens: u32, pool: &mut BlockPool) {
        let full = ((tokens / BLOCK_TOKENS) as usize).min(self.chain.hashes().len());
        if self.stored < full {
            pool.store(&self.chain.hashes()[..full], &self.blocks[..full], self.stored);
            self.stored = full;
        }
    }

    /// Gives all blocks back; what it computed is lost to it, though others may still find it.
    pub(super) fn release_blocks(&mut self, pool: &mut BlockPool) {
        pool.release(&self.blocks);
        self.forget_found();
    }
}
