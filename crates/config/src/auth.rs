//! `auth`: who may call.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
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
        let read = read(file).map_err(|error| format!("the keys file {} cannot be read: {error}", file.display()));
        let (text, owner, mode) = problems.take(named_at, read)?;
        let ring = KeyRing::parse(file, &text, problems)?;
        if ring.holds_secrets() && is_open_to_others(owner, mode) {
            let message = format!(
                "holds secrets (`aws:` keys) and is open to others, mode {mode:03o}; allowed: 600 or stricter, or 640 if \
                 it belongs to root; `chmod 600 {}` makes it so",
                file.display()
            );
            problems.add(Origin::File { path: file.to_owned(), place: None }, message);
            return None;
        }
        Some(Auth::Keys { file: file.to_owned(), ring })
    }
}

/// The text of a file, its owner and its mode.
fn read(file: &Path) -> io::Result<(String, u32, u32)> {
    let mut file = File::open(file)?;
    let metadata = file.metadata()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((text, metadata.uid(), metadata.mode() & 0o777))
}

/// Whether anyone but the owner may use a file. What belongs to root may be shared with a group, as secrets are that a
/// system hands to a service (Kubernetes' volumes with an `fsGroup`, Debian's certificates).
fn is_open_to_others(owner: u32, mode: u32) -> bool {
    const ROOT: u32 = 0;
    mode & if owner == ROOT { 0o037 } else { 0o077 } != 0
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
    /// A file with one key a line, as `name sha256:HEX` or `name aws:ACCESS_KEY_ID:SECRET`, and behind it what its holder
    /// may do (`tenant=`, `endpoints=`, `account=`); relative to the directory of this file. Read again when it changes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_secrets_is_for_its_owner_or_a_group_of_roots() {
        let (me, root) = (1_000, 0);
        for (owner, mode, open) in [
            (me, 0o600, false),
            (me, 0o400, false),
            (me, 0o640, true),
            (me, 0o604, true),
            (root, 0o640, false),
            (root, 0o440, false),
            (root, 0o660, true),
            (root, 0o644, true),
        ] {
            assert_eq!(is_open_to_others(owner, mode), open, "{owner} {mode:o}");
        }
    }
}
