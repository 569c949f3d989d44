//! Points in time as signatures write them: `20261129T120000Z`.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

/// A second, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant(i64);

impl Instant {
    /// Reads the basic form of ISO 8601 in UTC, to the second.
    pub(super) fn parse(text: &str) -> Option<Instant> {
        let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
        let all_digits = day.bytes().chain(time.bytes()).all(|byte| byte.is_ascii_digit());
        if day.len() != 8 || time.len() != 6 || !all_digits {
            return None;
        }
        let two = |text: &str, at: usize| text.get(at..at + 2)?.parse::<i8>().ok();
        let year = day.get(..4)?.parse().ok()?;
        let civil = DateTime::new(year, two(day, 4)?, two(day, 6)?, two(time, 0)?, two(time, 2)?, two(time, 4)?, 0);
        Some(Instant(TimeZone::UTC.to_timestamp(civil.ok()?).ok()?.as_second()))
    }

    /// Reads the value of a `Date` header, in HTTP's form or in that of [`Instant::parse`].
    pub(super) fn parse_date_header(text: &str) -> Option<Instant> {
        let http = || Some(Instant(DateTimeParser::new().parse_timestamp(text).ok()?.as_second()));
        Instant::parse(text).or_else(http)
    }

    /// Its day: `20261129`.
    pub(super) fn day(self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl From<SystemTime> for Instant {
    fn from(time: SystemTime) -> Instant {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Instant(i64::try_from(seconds).unwrap_or(i64::MAX))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add_unsigned(duration.as_secs()))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub_unsigned(duration.as_secs()))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(timestamp) => write!(f, "{}", timestamp.strftime("%Y%m%dT%H%M%SZ")),
            Err(_) => f.write_str("a time beyond the calendar"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_dates_are_read() {
        let noon = Instant(1_795_953_600);
        assert_eq!(Instant::parse("20261129T120000Z"), Some(noon));
        assert_eq!(Instant::parse_date_header("20261129T120000Z"), Some(noon));
        assert_eq!(Instant::parse_date_header("Sun, 29 Nov 2026 12:00:00 GMT"), Some(noon));
        assert_eq!((noon.to_string(), noon.day()), ("20261129T120000Z".into(), "20261129".into()));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "20261129T120000",
            "20261129 120000Z",
            "2026-11-29T12:00:00Z",
            "20261329T120000Z",
            "20260230T120000Z",
            "20261129T250000Z",
            "+0261129T120000Z",
            "２0261129T1200Z",
        ] {
            assert_eq!(Instant::parse(text), None, "{text:?}");
        }
    }
}
