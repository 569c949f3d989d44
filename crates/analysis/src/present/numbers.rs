//! Numbers as people read them.

/// A whole number with commas: 12,031.
pub(super) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Tokens to three digits: 870, 6.76k, 145M.
pub(super) fn tokens(number: f64) -> String {
    let (value, unit) = match number {
        number if number < 999.5 => return format!("{number:.0}"),
        number if number < 999.5e3 => (number / 1e3, "k"),
        number if number < 999.5e6 => (number / 1e6, "M"),
        number => (number / 1e9, "G"),
    };
    let places = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.places$}{unit}")
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A time from milliseconds to days.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0} ms", 1e3 * seconds),
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds if seconds < 6_000.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}

/// Milliseconds to three digits.
pub(super) fn milliseconds(value: f64) -> String {
    let places = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        assert_eq!([whole(7), whole(12_031), whole(1_234_567)], ["7", "12,031", "1,234,567"]);
        let numbers = [870.4, 6_758.0, 13_500.0, 145.2e6, 2.5e9].map(tokens);
        assert_eq!(numbers, ["870", "6.76k", "13.5k", "145M", "2.50G"]);
        assert_eq!([0.02, 42.0, 1_200.0, 36_000.0].map(seconds), ["20 ms", "42 s", "20 min", "10.0 h"]);
        assert_eq!([5.0, 59.53, 390.2].map(milliseconds), ["5.00", "59.5", "390"]);
        assert_eq!(percent(0.374), "37.4%");
    }
}
