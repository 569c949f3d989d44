//! Sizes in bytes as people write them: `32MiB`, `64KiB`, or a plain number of bytes.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// The units, larger ones first.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// No limit is larger.
const LARGEST: u64 = 1 << 40;

/// A text or number that is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ByteSizeError {
    /// No whole number, with or without one of the units.
    #[error("{0:?} is no size; allowed: a whole number of bytes, or one with KiB, MiB or GiB, such as 64KiB or 32MiB")]
    Form(String),
    /// Zero or more than a tebibyte.
    #[error("must be from 1 byte to 1024GiB")]
    Range,
}

fn parse(text: &str) -> Result<u64, ByteSizeError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale),
    };
    let scale = scale.filter(|_| !number.is_empty()).ok_or_else(|| ByteSizeError::Form(text.to_owned()))?;
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale)).map_or(Err(ByteSizeError::Range), ranged)
}

fn ranged(bytes: u64) -> Result<u64, ByteSizeError> {
    if (1..=LARGEST).contains(&bytes) { Ok(bytes) } else { Err(ByteSizeError::Range) }
}

fn render(bytes: u64) -> String {
    let (unit, scale) = UNITS.iter().find(|(_, scale)| bytes.is_multiple_of(*scale)).unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / scale)
}

pub(crate) fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&render(*bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(ByteSizeVisitor)
}

pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB)?$" }, { "type": "integer", "minimum": 1 }]
    })
}

struct ByteSizeVisitor;

impl Visitor<'_> for ByteSizeVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 32MiB")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<u64, E> {
        ranged(bytes).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (text, bytes, rendered) in [
            ("32MiB", 32 << 20, "32MiB"),
            ("64KiB", 64 << 10, "64KiB"),
            ("1GiB", 1 << 30, "1GiB"),
            ("100B", 100, "100B"),
            ("2048", 2048, "2KiB"),
        ] {
            assert_eq!(parse(text), Ok(bytes));
            assert_eq!(render(bytes), rendered);
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["32MB", "MiB", "", "1.5GiB", "-1", "10 KiB"] {
            assert_eq!(parse(text), Err(ByteSizeError::Form(text.to_owned())), "{text:?}");
        }
        for text in ["0", "2048GiB", "99999999999999999999"] {
            assert_eq!(parse(text), Err(ByteSizeError::Range), "{text:?}");
        }
    }
}
