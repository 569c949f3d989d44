//! One request as a log has it, whatever the log's format.

use isotherm_wire::api::Api;

use crate::chain::Block;

/// When something happened: microseconds since 1970, or since a trace's own start.
pub(crate) type Microseconds = i64;

/// A request of a log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// When it was sent; `None` where the log does not say.
    pub(crate) at: Option<Microseconds>,
    /// What is known of its prompt.
    pub(crate) content: Content,
    /// Tokens of its answer.
    pub(crate) output_tokens: Option<u32>,
    /// Tokens of its prompt, as the engine counted them.
    pub(crate) prompt_tokens: Option<u64>,
    /// How many of these the engine found in its cache.
    pub(crate) cached_tokens: Option<u64>,
    /// How many of these the router had believed to be there.
    pub(crate) believed_tokens: Option<u64>,
    /// Requests of one session follow each other; `None` where the log does not say.
    pub(crate) session: Option<Session>,
}

/// Which session a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) number: u64,
    /// How long its client waited after the answer before, in microseconds.
    pub(crate) think: u64,
}

/// What a log has of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// All of it.
    Body { api: Api, bytes: Vec<u8> },
    /// The hashes of its blocks.
    Chain(Vec<Block>),
    /// The same, and the first 64 bits of the key by which a router knows its prefix.
    KeyedChain(Vec<Block>, u64),
    /// Which prefix it has, and not how long that is.
    Key(u64),
}

impl Content {
    /// About how much memory it takes, in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Content::Body { bytes, .. } => bytes.len(),
            Content::Chain(blocks) | Content::KeyedChain(blocks, _) => size_of_val(blocks.as_slice()),
            Content::Key(_) => 0,
        }
    }
}
