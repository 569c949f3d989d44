//! A prompt as a short list of hashes: enough to find how far two prompts are equal and in which part they part, and
//! nothing of what they say.

use isotherm_core::{BlockHash, HashSeed, PromptDigest};
use sha2::{Digest, Sha256};

/// How many blocks are kept one by one before every second one is, then every fourth, and so on: where two prompts part is
/// known to within a 64th of its distance from their beginning.
const PER_STRIDE: usize = 64;

/// Blocks of this length were not cut short by the end of a message.
const WHOLE_BLOCK: u32 = isotherm_core::BLOCK_BYTES;

/// The most ends of messages that are kept beyond those.
const MOST_SHORT_BLOCKS: usize = 512;

/// A prompt as hashes. All are made with the router's hash seed; none is of text alone that others could have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trail {
    /// The hash of the authenticated tenant; 0 without one. Nothing is ever compared across tenants.
    pub tenant: u64,
    /// The hash of the model's name; 0 without one.
    pub model: u64,
    /// The hash of the adapter's name; 0 without one.
    pub adapter: u64,
    /// The hash of the salts; 0 without one.
    pub salt: u64,
    /// The hash of the tenant id, which orders placement and separates no cache; 0 without one.
    pub tenant_id: u64,
    /// Chained hashes of the prompt up to the ends of some of its blocks, dense at its beginning: equal prompts keep
    /// equal ones, whatever follows.
    pub blocks: Box<[BlockHash]>,
    /// Where these end, in bytes.
    pub ends: Box<[u32]>,
    /// Where its parts end.
    pub parts: Box<[PartEnd]>,
}

/// Where a part of a prompt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartEnd {
    /// Names the prompt up to here.
    pub chain: BlockHash,
    /// How many bytes that is.
    pub end: u32,
    /// Names the part alone, whatever stands before it.
    pub own: u64,
    /// What ends here.
    pub part: Part,
}

/// A part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Who speaks, within a message.
    pub role: Role,
    /// The message's number from 0; [`Part::NO_MESSAGE`] outside of messages.
    pub message: u16,
}

impl Part {
    /// Not within a message.
    pub const NO_MESSAGE: u16 = u16::MAX;
}

/// What a part of a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A chat template of the request's own, its arguments, or how much the model is to reason.
    Template,
    /// Documents for the template.
    Documents,
    /// Definitions of tools.
    Tools,
    /// The response that is continued.
    Continued,
    /// `system` or `instructions`.
    System,
    /// Role and name of a message.
    Head,
    /// Text.
    Text,
    /// Reasoning.
    Reasoning,
    /// A call of a tool, or another part that is no text.
    Call,
    /// The result of a tool.
    ToolResult,
    /// An image, a sound or a file.
    Medium,
    /// Everything in a message, where parts are too many to be kept one by one.
    Message,
    /// A prompt without a template.
    Prompt,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nobody: the part is in no message.
    Nobody,
    /// `system`, `developer`.
    System,
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `tool`, `function`.
    Tool,
    /// Any other word.
    Other,
}

impl Role {
    /// The role that a message names.
    pub fn of(word: &[u8]) -> Role {
        match word {
            b"system" | b"developer" => Role::System,
            b"user" => Role::User,
            b"assistant" | b"model" => Role::Assistant,
            b"tool" | b"function" => Role::Tool,
            _ => Role::Other,
        }
    }

    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Nobody => "",
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other => "other",
        }
    }
}

impl Trail {
    /// The blocks of a prompt and where its parts end.
    pub fn new(digest: &PromptDigest, parts: Box<[PartEnd]>) -> Trail {
        let (blocks, ends) = (digest.blocks(), digest.ends());
        let mut kept = Vec::new();
        let mut short = 0;
        let (mut next, mut stride, mut at_stride) = (0, 1, 0);
        for (index, (block, end)) in blocks.iter().zip(ends).enumerate() {
            let begin = index.checked_sub(1).map_or(0, |before| ends[before]);
            let due = index == next;
            if due {
                at_stride += 1;
                if at_stride == PER_STRIDE {
                    (stride, at_stride) = (2 * stride, 0);
                }
                next += stride;
            }
            // Ends of messages are where a conversation goes on.
            let ends_message = end - begin < WHOLE_BLOCK && short < MOST_SHORT_BLOCKS;
            short += usize::from(ends_message);
            if due || ends_message || index + 1 == blocks.len() {
                kept.push((*block, *end));
            }
        }
        let (blocks, ends): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        Trail { blocks: blocks.into(), ends: ends.into(), parts, ..Trail::default() }
    }

    /// The prompt's length in bytes.
    pub fn bytes(&self) -> u32 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// From which of the blocks to which the model itself has spoken, the last one not included.
    pub fn answers(&self) -> Vec<(usize, usize)> {
        let mut answers: Vec<(usize, usize)> = Vec::new();
        let mut before = (0, Part::NO_MESSAGE);
        for part in &self.parts {
            let at = |bytes: u32| self.ends.partition_point(|end| *end <= bytes);
            if part.part.role == Role::Assistant {
                let (from, to) = (at(before.0), at(part.end));
                match answers.last_mut().filter(|_| before.1 == part.part.message) {
                    Some(last) => last.1 = to,
                    None => answers.push((from, to)),
                }
            }
            before = (part.end, part.part.message);
        }
        answers.retain(|(from, to)| from < to);
        answers
    }

    /// What separates caches of an engine: model, adapter and salts.
    pub fn scope(&self) -> u64 {
        mix(mix(mix(self.model) ^ self.adapter) ^ self.salt)
    }

    /// A block's hash within what separates caches.
    pub fn scoped(&self, block: BlockHash) -> u64 {
        mix(block.0 ^ mix(self.scope() ^ mix(self.tenant)))
    }

    /// About how much memory it takes, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Trail>() + size_of_val(&*self.blocks) + size_of_val(&*self.ends) + size_of_val(&*self.parts)
    }
}

/// Hashes as they may leave the process: without the seed nobody can find out which text one is of, by trying either.
#[derive(Debug)]
pub struct Published(Sha256);

impl Published {
    /// Publishes under a seed.
    pub fn new(seed: HashSeed) -> Published {
        Published(Sha256::new().chain_update(b"isotherm blocks\0").chain_update(seed.0.to_le_bytes()))
    }

    /// A block of a trail as it may be told.
    pub fn block(&self, trail: &Trail, block: BlockHash) -> u64 {
        let digest = self.0.clone().chain_update(trail.scoped(block).to_le_bytes()).finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// The finaliser of SplitMix64: spreads the bits of a number.
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use isotherm_core::BlockHasher;

    use super::*;

    fn trail(messages: &[&str]) -> Trail {
        let mut hasher = BlockHasher::new(HashSeed(1));
        for message in messages {
            hasher.update(message.as_bytes());
            hasher.end_message();
        }
        Trail::new(&hasher.finish().unwrap(), Box::default())
    }

    #[test]
    fn a_long_prompt_is_kept_in_few_hashes_which_are_those_of_the_shorter_one_as_far_as_it_goes() {
        let long = "abcdefg ".repeat(128 << 10);
        let (whole, beginning) = (trail(&[&long]), trail(&[&long[..300_000]]));
        assert_eq!(whole.bytes(), 1 << 20);
        assert!((400..600).contains(&whole.blocks.len()), "{}", whole.blocks.len());
        let kept = beginning.blocks.len() - 1;
        assert_eq!(whole.blocks[..kept], beginning.blocks[..kept]);
        let gaps = whole.ends.windows(2).filter(|pair| pair[1] > 8_192);
        assert!(gaps.clone().count() > 0 && gaps.into_iter().all(|pair| pair[1] - pair[0] <= pair[1] / 32));
    }

    #[test]
    fn the_ends_of_messages_are_kept_however_deep_they_lie() {
        let long = "abcdefg ".repeat(2_000);
        let (first, second) = (trail(&[&long, "Hello"]), trail(&[&long, "Hello", "Good morning!", "Again"]));
        assert!(second.blocks.contains(first.blocks.last().unwrap()));
    }

    #[test]
    fn what_is_published_needs_the_seed_and_tells_scopes_apart() {
        let plain = trail(&["Hello"]);
        let other = Trail { model: 7, ..plain.clone() };
        let block = plain.blocks[0];
        let of = |seed, trail: &Trail| Published::new(HashSeed(seed)).block(trail, block);
        assert_eq!(of(1, &plain), of(1, &plain));
        assert!(of(1, &plain) != of(2, &plain) && of(1, &plain) != of(1, &other) && of(1, &plain) != block.0);
    }
}
