//! Names of endpoints and variants, as SageMaker allows them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::value::parsed;

/// The name of an endpoint or a variant: 1 to 63 letters, digits and hyphens, a hyphen neither first nor last
/// (SageMaker's API reference, `EndpointName` and `VariantName`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// A name that this crate gives itself and that is known to fit.
    pub(crate) fn constant(name: &'static str) -> Name {
        Name(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as text that can be kept without a copy.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name; allowed: 1 to 63 letters, digits and hyphens, a hyphen neither first nor last")]
pub struct NameError(String);

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        let characters_fit = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let hyphens_fit = !text.starts_with('-') && !text.ends_with('-');
        if (1..=63).contains(&text.len()) && characters_fit && hyphens_fit {
            Ok(Name(text.into()))
        } else {
            Err(NameError(text.to_owned()))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        parsed(deserializer)
    }
}

impl JsonSchema for Name {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sagemakers_rule_holds() {
        let longest = "a".repeat(63);
        for text in ["chat", "AllTraffic", "a--b", "7", &longest] {
            assert_eq!(text.parse::<Name>().unwrap().as_str(), text);
        }
        let too_long = "a".repeat(64);
        for text in ["", "-a", "a-", "a_b", "a b", "ä", &too_long] {
            assert!(text.parse::<Name>().is_err(), "{text:?}");
        }
    }
}
