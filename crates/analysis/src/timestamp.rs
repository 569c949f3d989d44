//! Reads the times that logs write down, as numbers or as text.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::entry::Microseconds;

/// Keys under which logs have the time of a request, the most telling first.
pub(crate) const KEYS: [&str; 16] = [
    "timestamp",
    "time",
    "ts",
    "@timestamp",
    "startedDateTime",
    "start_time",
    "startTime",
    "request_time",
    "requestTime",
    "request_timestamp",
    "received_at",
    "created_at",
    "createdAt",
    "inferenceTime",
    "date",
    "t",
];

/// A number of seconds, milliseconds, microseconds or nanoseconds since 1970 (told by its size), or a date with a time,
/// in UTC unless it says otherwise. `None` for anything else.
pub(crate) fn parse(value: &Value) -> Option<Microseconds> {
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => of_text(text.trim()),
        _ => None,
    }
}

/// The same for the JSON text of a value.
pub(crate) fn parse_json(json: &str) -> Option<Microseconds> {
    parse(&serde_json::from_str(json).ok()?)
}

fn of_number(number: f64) -> Option<Microseconds> {
    // 1e11 s is the year 5138, 1e11 ms is 1973: no log has a time between.
    let per_second = [(1e11, 1e6), (1e14, 1e3), (1e17, 1.0)];
    let factor = per_second.iter().find(|(below, _)| number.abs() < *below).map_or(1e-3, |(_, factor)| *factor);
    let microseconds = number * factor;
    microseconds.is_finite().then_some(microseconds as i64)
}

fn of_text(text: &str) -> Option<Microseconds> {
    if let Ok(number) = text.parse::<f64>() {
        return of_number(number);
    }
    let timestamp = text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.replace('/', "-").parse().ok()?;
        TimeZone::UTC.to_timestamp(civil).ok()
    });
    timestamp.map(|timestamp| timestamp.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_logs_write_them() {
        let expected = Some(1_764_460_800_500_000);
        for json in [
            "1764460800.5",
            "1764460800500",
            "1764460800500000",
            "1764460800500000000",
            "\"2025-11-30T00:00:00.5Z\"",
            "\"2025-11-30T01:00:00.500+01:00\"",
            "\"2025-11-30 00:00:00.5\"",
            "\"2025/11/30 00:00:00.5\"",
            "\"1764460800.5\"",
        ] {
            assert_eq!(parse_json(json), expected, "{json}");
        }
        for json in ["\"yesterday\"", "null", "{}", "true"] {
            assert_eq!(parse_json(json), None, "{json}");
        }
    }
}
