//! The pool of KV blocks: reference counts, prefix hits, eviction of the least recently used.

/// Blocks of KV cache.
#[derive(Debug)]
pub struct BlockPool {}
