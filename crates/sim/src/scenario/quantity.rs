//! Values of scenario files that have a form of their own: durations, ranges, engine profiles.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A duration as people write it: `300ms`, `1.5s`, `20m`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span(pub(super) Duration);

/// Units and their seconds; `ms` before `m` and `s`, which it ends or begins with.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];

/// Nothing that is simulated takes longer.
const LONGEST_SECONDS: f64 = 30.0 * 24.0 * 3_600.0;

/// Reads a duration of up to 30 days.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, scale) = UNITS.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let seconds = number.parse::<f64>().ok()? * scale;
    (number.starts_with(|first: char| first.is_ascii_digit()) && seconds <= LONGEST_SECONDS)
        .then(|| Duration::from_secs_f64(seconds))
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a duration such as 300ms, 1.5s, 20m or 1h")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                let wrong = || {
                    E::custom(format!("{text:?} is no duration; allowed: a number with ms, s, m or h, such as 1.5s"))
                };
                duration(text).map(Span).ok_or_else(wrong)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A number, or the least and the greatest of a range: `130` or `[100, 160]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range(pub(super) RangeInclusive<u32>);

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Range, D::Error> {
        struct NumberOrPair;
        impl<'de> Visitor<'de> for NumberOrPair {
            type Value = Range;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number, or a range such as [100, 160]")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Range, E> {
                let number = u32::try_from(number).map_err(|_| E::custom(format!("{number} is too large")))?;
                Ok(Range(number..=number))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Range, E> {
                let number = u64::try_from(number).map_err(|_| E::custom(format!("{number} must not be negative")))?;
                self.visit_u64(number)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Range, A::Error> {
                let mut next =
                    |place| items.next_element()?.ok_or_else(|| A::Error::invalid_length(place, &"two numbers"));
                let (low, high): (u32, u32) = (next(0)?, next(1)?);
                match items.next_element::<u32>()? {
                    None => Ok(Range(low..=high)),
                    Some(_) => Err(A::Error::invalid_length(3, &"two numbers")),
                }
            }
        }
        deserializer.deserialize_any(NumberOrPair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_a_unit() {
        for (text, milliseconds) in [("300ms", 300), ("1.5s", 1_500), ("20m", 1_200_000), ("1h", 3_600_000), ("0s", 0)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "10", "-1s", "nans", "infh", "1e3s ", "1d", "9999h"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_is_a_number_or_two() {
        let read = |text: &str| serde_saphyr::from_str::<Range>(text);
        assert_eq!(read("130").unwrap().0, 130..=130);
        assert_eq!(read("[100, 160]").unwrap().0, 100..=160);
        for text in ["[1]", "[1, 2, 3]", "-4", "many"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
