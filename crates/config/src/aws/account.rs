//! Accounts and regions, as they stand in ARNs.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::value::parsed;

/// The number of an account: twelve digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(Arc<str>);

impl AccountId {
    /// The number as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The account of AWS's own examples.
impl Default for AccountId {
    fn default() -> AccountId {
        AccountId("123456789012".into())
    }
}

/// A text that is no account's number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no account; allowed: twelve digits, such as 123456789012")]
pub struct AccountIdError(String);

impl FromStr for AccountId {
    type Err = AccountIdError;

    fn from_str(text: &str) -> Result<AccountId, AccountIdError> {
        if text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            Ok(AccountId(text.into()))
        } else {
            Err(AccountIdError(text.to_owned()))
        }
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<'de> Deserialize<'de> for AccountId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AccountId, D::Error> {
        parsed(deserializer)
    }
}

impl JsonSchema for AccountId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AccountId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{12}$" })
    }
}

/// The name of a region.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(Arc<str>);

impl Region {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Region {
    fn default() -> Region {
        Region("us-east-1".into())
    }
}

/// A text that is no region's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no region; allowed: 1 to 32 small letters, digits and hyphens, such as us-east-1")]
pub struct RegionError(String);

impl FromStr for Region {
    type Err = RegionError;

    fn from_str(text: &str) -> Result<Region, RegionError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=32).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Region(text.into()))
        } else {
            Err(RegionError(text.to_owned()))
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<'de> Deserialize<'de> for Region {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Region, D::Error> {
        parsed(deserializer)
    }
}

impl JsonSchema for Region {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Region".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z0-9-]{1,32}$" })
    }
}
