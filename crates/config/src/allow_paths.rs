//! `allow_paths`: further paths that pass to the default endpoint, but never those that administer an engine.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::value::parsed;

/// Paths that change or expose an engine's inner state (vLLM `docs/usage/security.md`, SGLang's HTTP server); whoever
/// reaches one of them can stop, empty or reprogram an engine.
const ADMINISTRATION: [&str; 37] = [
    "/abort_request",
    "/abort_requests",
    "/clear_hicache_storage_backend",
    "/close_session",
    "/collective_rpc",
    "/configure_logging",
    "/continue_generation",
    "/destroy_weights_update_group",
    "/dump_expert_distribution_record",
    "/flush_cache",
    "/get_weights_by_name",
    "/init_weight_transfer_engine",
    "/init_weights_update_group",
    "/is_scaling_elastic_ep",
    "/is_sleeping",
    "/pause",
    "/pause_generation",
    "/release_memory_occupation",
    "/reset_encoder_cache",
    "/reset_mm_cache",
    "/reset_prefix_cache",
    "/resume",
    "/resume_memory_occupation",
    "/scale_elastic_ep",
    "/server_info",
    "/set_internal_state",
    "/sleep",
    "/slow_down",
    "/start_profile",
    "/stop_profile",
    "/tokenizer_info",
    "/update_weights",
    "/update_weights_from_disk",
    "/update_weights_from_tensor",
    "/v1/load_lora_adapter",
    "/v1/unload_lora_adapter",
    "/wake_up",
];

/// A path that passes, or all paths below one: `/v1/audio/transcriptions`, `/v1/audio/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPath {
    /// The path itself, or what every path below it begins with (with the slash).
    path: String,
    below: bool,
}

impl AllowedPath {
    /// Whether a request's path (without its query) passes.
    pub fn matches(&self, path: &str) -> bool {
        if self.below { path.len() > self.path.len() && path.starts_with(&self.path) } else { path == self.path }
    }
}

impl fmt::Display for AllowedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.path, if self.below { "*" } else { "" })
    }
}

/// A text that cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowedPathError {
    /// Not a plain path.
    #[error("{0:?} is no path; allowed: /path, or /path/* for all paths below, without query, escapes or dot segments")]
    Form(String),
    /// An engine's administration would be reachable.
    #[error("{0:?} would let {1} through, which administers an engine and never passes")]
    Administration(String, &'static str),
}

impl FromStr for AllowedPath {
    type Err = AllowedPathError;

    fn from_str(text: &str) -> Result<AllowedPath, AllowedPathError> {
        let (path, below) = match text.strip_suffix("/*") {
            Some(parent) => (format!("{parent}/"), true),
            None => (text.to_owned(), false),
        };
        let segments = path.strip_prefix('/').map(|path| path.strip_suffix('/').unwrap_or(path));
        let plain = |segment: &str| {
            !matches!(segment, "" | "." | "..")
                && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~:@!$&'(),;=+".contains(&byte))
        };
        let fits = segments.is_some_and(|segments| segments.split('/').all(plain) || path == "/");
        if !fits {
            return Err(AllowedPathError::Form(text.to_owned()));
        }
        let allowed = AllowedPath { path, below };
        match ADMINISTRATION.into_iter().find(|path| allowed.matches(path)) {
            Some(path) => Err(AllowedPathError::Administration(text.to_owned(), path)),
            None => Ok(allowed),
        }
    }
}

impl<'de> Deserialize<'de> for AllowedPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AllowedPath, D::Error> {
        parsed(deserializer)
    }
}

impl JsonSchema for AllowedPath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AllowedPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^/[^?#% ]*$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_allows_itself_and_a_star_what_is_below() {
        let exact: AllowedPath = "/v1/audio/speech".parse().unwrap();
        assert!(exact.matches("/v1/audio/speech"));
        assert!(!exact.matches("/v1/audio/speech/x") && !exact.matches("/v1/audio"));
        let below: AllowedPath = "/v1/audio/*".parse().unwrap();
        assert!(below.matches("/v1/audio/speech") && below.matches("/v1/audio/a/b"));
        assert!(!below.matches("/v1/audio/") && !below.matches("/v1/audio") && !below.matches("/v1/audiobook"));
        assert_eq!((exact.to_string().as_str(), below.to_string().as_str()), ("/v1/audio/speech", "/v1/audio/*"));
    }

    #[test]
    fn what_is_no_plain_path_is_refused() {
        for text in ["", "v1/audio", "/v1/../sleep", "/v1//audio", "/v1/%2e", "/a?b", "/a/*/b", "/a*", "/./a"] {
            assert_eq!(text.parse::<AllowedPath>(), Err(AllowedPathError::Form(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn engine_administration_is_never_allowed_by_name_or_by_star() {
        for path in ADMINISTRATION {
            assert!(path.parse::<AllowedPath>().is_err(), "{path}");
        }
        for star in ["/*", "/v1/*"] {
            assert!(matches!(star.parse::<AllowedPath>(), Err(AllowedPathError::Administration(..))), "{star}");
        }
    }
}
