//! The APIs, one file each: how a request becomes prompts, and how answers are spelt.

pub(crate) mod adapters;
pub(crate) mod chat;
pub(crate) mod chat_format;
pub(crate) mod completions;
pub(crate) mod completions_format;
pub(crate) mod embeddings;
pub(crate) mod invocations;
pub(crate) mod messages;
pub(crate) mod messages_format;
pub(crate) mod models;
pub(crate) mod rerank;
pub(crate) mod response_draft;
pub(crate) mod responses;
pub(crate) mod responses_format;
pub(crate) mod score;
pub(crate) mod sessions;
pub(crate) mod tokenize;
