//! A prompt as blocks: its text as it is, of each medium a stand-in.

use isotherm_core::{BlockHash, BlockHasher, HashSeed, KeyScope, PrefixHasher, PromptDigest, prefix_key};
use isotherm_wire::request::PromptSink;

/// What a medium counts for, in bytes of text: engines make some hundred to some thousand tokens of an image, whatever
/// the length of its file.
const MEDIUM_BYTES: usize = 4096;

/// Cuts and hashes a prompt.
pub(super) struct Blocks {
    seed: HashSeed,
    hasher: BlockHasher,
    /// The medium that is being given.
    medium: Option<PrefixHasher>,
}

impl Blocks {
    pub(super) fn new(seed: HashSeed) -> Blocks {
        Blocks { seed, hasher: BlockHasher::new(seed), medium: None }
    }

    pub(super) fn finish(mut self) -> Option<PromptDigest> {
        self.end_medium();
        self.hasher.finish()
    }

    /// Names all that was given so far, and tells how much it counts for.
    pub(super) fn so_far(&mut self) -> (BlockHash, u32) {
        self.end_medium();
        self.hasher.so_far()
    }

    fn end_medium(&mut self) {
        let digest = self.medium.take().and_then(|medium| medium.finish());
        if let Some(digest) = digest {
            let hash = prefix_key(self.seed, &KeyScope::default(), None, None, &digest).as_u128().to_le_bytes();
            for _ in 0..MEDIUM_BYTES / hash.len() {
                self.hasher.update(&hash);
            }
        }
    }
}

impl PromptSink for Blocks {
    fn prompt(&mut self, bytes: &[u8]) {
        self.end_medium();
        self.hasher.update(bytes);
    }

    fn end_message(&mut self) {
        self.end_medium();
        self.hasher.end_message();
    }

    fn media(&mut self, bytes: &[u8]) {
        self.medium.get_or_insert_with(|| PrefixHasher::new(self.seed)).update(bytes);
    }
}
