//! `guards`: the most that a request may ask an engine for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most that a request may ask an engine for; one that asks for more is answered with 400 and reaches none. What is
/// absent has no bound here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// The most tokens to generate, by any of the names for it (`max_tokens`, `max_completion_tokens`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub max_tokens: Option<u64>,
    /// The most choices (`n`, `best_of`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub choices: Option<u64>,
    /// The most likely tokens told for each (`logprobs`, `top_logprobs`, `prompt_logprobs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub logprobs: Option<u64>,
    /// Where media may lie that a message names.
    pub media_urls: MediaUrls,
}

/// Where media may lie that a message names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MediaUrls {
    /// Anywhere.
    #[default]
    Any,
    /// In the message itself, or at a host of the internet: no file, no address or name of a private network.
    Public,
    /// In the message itself, as a `data:` URL.
    Data,
}
