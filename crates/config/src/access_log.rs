//! `access_log`: where the line of each finished request goes.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::suggest::closest;
use crate::value::parsed;

/// Where access log lines go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AccessLogTarget {
    /// Nowhere.
    #[default]
    Off,
    /// To standard error.
    Stderr,
    /// To the end of this file.
    File(PathBuf),
}

impl AccessLogTarget {
    /// A relative path counts from this directory.
    pub(crate) fn relative_to(self, directory: &Path) -> AccessLogTarget {
        match self {
            AccessLogTarget::File(path) => AccessLogTarget::File(directory.join(path)),
            other => other,
        }
    }
}

/// A text that names no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no target{}; allowed: off, stderr, or a file's path with a slash in it, such as ./access.log",
    suggestion.map(|word| format!(", did you mean {word:?}")).unwrap_or_default())]
pub struct AccessLogError {
    given: String,
    suggestion: Option<&'static str>,
}

impl FromStr for AccessLogTarget {
    type Err = AccessLogError;

    fn from_str(text: &str) -> Result<AccessLogTarget, AccessLogError> {
        match text {
            "off" => Ok(AccessLogTarget::Off),
            "stderr" => Ok(AccessLogTarget::Stderr),
            // Without the slash, a mistyped word would become a file.
            path if path.contains('/') => Ok(AccessLogTarget::File(path.into())),
            _ => {
                Err(AccessLogError { given: text.to_owned(), suggestion: closest(text, ["off", "stderr"].into_iter()) })
            }
        }
    }
}

impl<'de> Deserialize<'de> for AccessLogTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AccessLogTarget, D::Error> {
        parsed(deserializer)
    }
}

impl JsonSchema for AccessLogTarget {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AccessLog".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["off", "stderr"] }, { "type": "string", "pattern": "/" }] })
    }
}
