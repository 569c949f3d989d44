//! `auth`: who may call.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::keys::KeyRing;
use crate::problem::{Origin, Problems};
use crate::yaml::Located;

/// Who may call the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Anyone who reaches the listener. Beyond loopback only where `auth: none` is written out.
    None,
    /// Who sends one of these keys.
    Keys {
        /// The file that they were read from, to be watched for changes.
        file: PathBuf,
        /// The keys.
        ring: KeyRing,
    },
}

impl Auth {
    /// Reads the keys of a file; what is wrong with them is noted as problems.
    pub(crate) fn from_keys_file(file: &Path, named_at: &Origin, problems: &mut Problems) -> Option<Auth> {
        let read = std::fs::read_to_string(file)
            .map_err(|error| format!("the keys file {} cannot be read: {error}", file.display()));
        let text = problems.take(named_at, read)?;
        Some(Auth::Keys { file: file.to_owned(), ring: KeyRing::parse(file, &text, problems)? })
    }
}

/// `auth` as written in the file: `none`, or a mapping.
#[derive(Debug)]
pub(crate) enum AuthElement {
    None,
    Keys(KeysElement),
}

/// The keys by which clients are known.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Keys")]
pub(crate) struct KeysElement {
    /// A file with one key a line, as `name sha256:HEX`; relative to the directory of this file. Read again when it
    /// changes.
    #[schemars(with = "String")]
    pub(crate) keys_file: Located<PathBuf>,
}

impl<'de> Deserialize<'de> for AuthElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AuthElement, D::Error> {
        deserializer.deserialize_any(AuthVisitor)
    }
}

struct AuthVisitor;

impl<'de> Visitor<'de> for AuthVisitor {
    type Value = AuthElement;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`none` or a mapping with keys_file")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<AuthElement, E> {
        match word {
            "none" => Ok(AuthElement::None),
            _ => Err(E::unknown_variant(word, &["none", "{ keys_file: PATH }"])),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<AuthElement, A::Error> {
        KeysElement::deserialize(MapAccessDeserializer::new(entries)).map(AuthElement::Keys)
    }
}

impl JsonSchema for AuthElement {
    fn schema_name() -> Cow<'static, str> {
        "Auth".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "none" }, generator.subschema_for::<KeysElement>()] })
    }
}
