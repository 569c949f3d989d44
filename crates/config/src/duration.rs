//! Durations as people write them: `500ms`, `10s`, `5m`, `1h`.

use std::time::Duration;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;

use crate::value::text;

/// Nothing that is waited for takes longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The units, and how many milliseconds each is; longer ones first, so that rendering picks the shortest text.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// What is asked for where something else than text is found.
const EXPECTING: &str = "a duration such as 10s";

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// No whole number with one of the units.
    #[error("{0:?} is no duration; allowed: a whole number with ms, s, m or h, such as 500ms, 10s or 5m")]
    Form(String),
    /// Zero, where waiting for no time makes no sense.
    #[error("must be at least 1ms")]
    Zero,
    /// Longer than a day.
    #[error("{0:?} is too long; allowed: up to 24h")]
    TooLong(String),
}

/// Reads a duration from 0 to 24 hours.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let form = || DurationError::Form(text.to_owned());
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(form)?;
    let (number, unit) = text.split_at(digits);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(form)?;
    if number.is_empty() {
        return Err(form());
    }
    let milliseconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*scale));
    match milliseconds.map(Duration::from_millis) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(DurationError::TooLong(text.to_owned())),
    }
}

/// The shortest text that means the duration; what is below a millisecond is cut off.
pub(crate) fn render(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds == 0 {
        return String::from("0s");
    }
    let divides = |scale: u64| milliseconds.is_multiple_of(u128::from(scale));
    let (unit, scale) = UNITS.iter().find(|(_, scale)| divides(*scale)).unwrap_or(&("ms", 1));
    format!("{}{unit}", milliseconds / u128::from(*scale))
}

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&render(*duration))
}

/// Reads a duration above zero.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match parse(&text(deserializer, EXPECTING)?) {
        Ok(Duration::ZERO) => Err(D::Error::custom(DurationError::Zero)),
        other => other.map_err(D::Error::custom),
    }
}

pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" })
}

/// For a duration that may be zero.
pub(crate) mod or_zero {
    pub(crate) use super::serialize;
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        parse(&text(deserializer, EXPECTING)?).map_err(D::Error::custom)
    }
}

/// For a duration that may be left out.
pub(crate) mod optional {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (text, milliseconds) in
            [("500ms", 500), ("10s", 10_000), ("90s", 90_000), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)));
            assert_eq!(render(Duration::from_millis(milliseconds)), text);
        }
        assert_eq!(render(Duration::ZERO), "0s");
        assert_eq!(render(Duration::from_millis(120_000)), "2m");
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_allowed_form() {
        for text in ["10", "s", "", "1.5s", "-1s", "10 s", "10sec", "ten"] {
            assert_eq!(parse(text), Err(DurationError::Form(text.to_owned())), "{text:?}");
        }
        for text in ["25h", "99999999999999999999h", "18446744073709551615s"] {
            assert_eq!(parse(text), Err(DurationError::TooLong(text.to_owned())), "{text:?}");
        }
    }
}
