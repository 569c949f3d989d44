//! How single values are read from the file: text and numbers that must pass a check of their own type.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Reads text into a type that parses itself.
pub(crate) fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    text(deserializer, "text; a number needs quotes")?.parse().map_err(D::Error::custom)
}

/// Reads text; `expecting` tells what was expected where something else is found.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D, expecting: &'static str) -> Result<String, D::Error> {
    deserializer.deserialize_str(TextVisitor { expecting })
}

struct TextVisitor {
    expecting: &'static str,
}

impl Visitor<'_> for TextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

/// Reads a whole number that must pass `check`.
pub(crate) fn whole<'de, D, T, E>(deserializer: D, check: impl FnOnce(u64) -> Result<T, E>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: Display,
{
    check(u64::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a number, with or without a fraction, that must pass `check`.
pub(crate) fn number<'de, D, T, E>(deserializer: D, check: impl FnOnce(f64) -> Result<T, E>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: Display,
{
    check(f64::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// A number that is no share.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a share is a number from 0 to 1, not {0}")]
struct NoShare(f64);

/// Reads a share, 0 to 1.
pub(crate) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    number(deserializer, |given| if (0.0..=1.0).contains(&given) { Ok(given) } else { Err(NoShare(given)) })
}

/// A number outside the range of a setting that has no type of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be from {least} to {most}, not {given}")]
pub(crate) struct OutOfRange {
    pub(crate) given: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// The number as `T`, when it lies in the range.
pub(crate) fn in_range<T: TryFrom<u64>>(given: u64, least: u64, most: u64) -> Result<T, OutOfRange> {
    let refused = OutOfRange { given, least, most };
    if !(least..=most).contains(&given) {
        return Err(refused);
    }
    T::try_from(given).map_err(|_| refused)
}
