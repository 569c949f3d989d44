//! How an alarm stands, worked out of the values of the last periods.
//!
//! After "Configuring how CloudWatch alarms treat missing data" in Amazon CloudWatch's user guide, whose two tables are
//! tests here.

use jiff::Timestamp;

use super::{AlarmState, MissingData, Rule};

/// What an evaluation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) state: AlarmState,
    pub(crate) reason: String,
}

/// How many periods before those that count are looked at, in case some of these have no values.
pub(crate) const SPARE: u32 = 2;

/// How the alarm stands, given the values of its evaluation periods and [`SPARE`] more before them, oldest first, of
/// which the last ended at `end` (Unix time). `None` leaves it as it is.
pub(crate) fn evaluate(rule: &Rule, values: &[Option<f64>], end: u64) -> Option<Verdict> {
    let periods = rule.evaluation_periods as usize;
    let recent: Vec<f64> = values.iter().rev().copied().flatten().take(periods).collect();
    let breaching = recent.iter().filter(|value| rule.comparison.breaches(**value, rule.threshold)).count();
    let unknown = periods - recent.len();
    let needed = rule.needed() as usize;
    let of_values = |state| Some(Verdict { state, reason: reason_of_values(rule, &recent, breaching, state, end) });
    match rule.missing_data.unwrap_or(MissingData::Missing) {
        _ if breaching >= needed => of_values(AlarmState::Alarm),
        _ if unknown == 0 => of_values(AlarmState::Ok),
        MissingData::Breaching if recent.is_empty() => Some(of_missing(AlarmState::Alarm, periods, "Breaching")),
        MissingData::NotBreaching if recent.is_empty() => Some(of_missing(AlarmState::Ok, periods, "NonBreaching")),
        MissingData::Breaching if breaching + unknown >= needed => of_values(AlarmState::Alarm),
        MissingData::Breaching | MissingData::NotBreaching => of_values(AlarmState::Ok),
        MissingData::Missing if recent.is_empty() => Some(Verdict {
            state: AlarmState::InsufficientData,
            reason: format!(
                "Insufficient Data: {periods} datapoint{} unknown.",
                if periods == 1 { " was" } else { "s were" }
            ),
        }),
        MissingData::Ignore if recent.is_empty() => None,
        _ if breaching < recent.len() => of_values(AlarmState::Ok),
        // All that is known breaches the threshold, but it is too little.
        MissingData::Ignore => None,
        MissingData::Missing if oldest_known(values, periods) >= needed => of_values(AlarmState::Alarm),
        MissingData::Missing => None,
    }
}

/// How many periods ago the oldest value among the evaluation periods is, the last period being 1.
fn oldest_known(values: &[Option<f64>], periods: usize) -> usize {
    let recent = &values[values.len().saturating_sub(periods)..];
    recent.iter().position(Option::is_some).map_or(0, |place| recent.len() - place)
}

fn reason_of_values(rule: &Rule, recent: &[f64], breaching: usize, state: AlarmState, end: u64) -> String {
    let shown: Vec<String> = recent.iter().map(|value| format!("{value:?}")).collect();
    let time = i64::try_from(end).ok().and_then(|end| Timestamp::from_second(end).ok()).unwrap_or_default();
    let (counted, was) = match state {
        AlarmState::Alarm => (breaching, "was"),
        _ => (recent.len() - breaching, "was not"),
    };
    let (needed, plural) = (rule.needed(), if rule.needed() == 1 { "" } else { "s" });
    let arrow = if state == AlarmState::Alarm { "OK -> ALARM" } else { "ALARM -> OK" };
    format!(
        "Threshold Crossed: {counted} out of the last {} datapoints [{} (until {time})] {was} {} the threshold ({:?}) \
         (minimum {needed} datapoint{plural} for {arrow} transition).",
        recent.len(),
        shown.join(", "),
        rule.comparison.in_words(),
        rule.threshold
    )
}

fn of_missing(state: AlarmState, periods: usize, treated: &str) -> Verdict {
    let (period, datapoint) = if periods == 1 { ("", " was") } else { ("s", "s were") };
    let reason = format!(
        "Threshold Crossed: no datapoints were received for {periods} period{period} and {periods} missing \
         datapoint{datapoint} treated as [{treated}]."
    );
    Verdict { state, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::Comparison;

    fn rule(periods: u32, needed: u32, missing_data: MissingData) -> Rule {
        Rule {
            evaluation_periods: periods,
            datapoints_to_alarm: Some(needed),
            threshold: 1.0,
            comparison: Comparison::AtLeast,
            missing_data: Some(missing_data),
        }
    }

    /// `0` does not breach, `X` does, `-` is missing.
    fn values(text: &str) -> Vec<Option<f64>> {
        let value = |letter| match letter {
            '0' => Some(0.0),
            'X' => Some(1.0),
            _ => None,
        };
        text.split(' ').map(|word| word.chars().next().and_then(value)).collect()
    }

    fn state(periods: u32, needed: u32, missing_data: MissingData, text: &str) -> Option<AlarmState> {
        evaluate(&rule(periods, needed, missing_data), &values(text), 0).map(|verdict| verdict.state)
    }

    const OK: Option<AlarmState> = Some(AlarmState::Ok);
    const ALARM: Option<AlarmState> = Some(AlarmState::Alarm);
    const INSUFFICIENT: Option<AlarmState> = Some(AlarmState::InsufficientData);
    const STAYS: Option<AlarmState> = None;

    fn check(periods: u32, needed: u32, table: &[(&str, [Option<AlarmState>; 4])]) {
        use MissingData::{Breaching, Ignore, Missing, NotBreaching};
        for (text, expected) in table {
            let found = [Missing, Ignore, Breaching, NotBreaching].map(|treated| state(periods, needed, treated, text));
            assert_eq!(found, *expected, "{needed} of {periods}: {text}");
        }
    }

    #[test]
    fn three_of_three_as_in_the_user_guide() {
        check(
            3,
            3,
            &[
                ("0 - X - X", [OK, OK, OK, OK]),
                ("- - - - 0", [OK, OK, OK, OK]),
                ("- - - - -", [INSUFFICIENT, STAYS, ALARM, OK]),
                ("0 X X - X", [ALARM, ALARM, ALARM, ALARM]),
                ("- - X - -", [ALARM, STAYS, ALARM, OK]),
            ],
        );
    }

    #[test]
    fn two_of_three_as_in_the_user_guide() {
        check(
            3,
            2,
            &[
                ("0 - X - X", [ALARM, ALARM, ALARM, ALARM]),
                ("0 0 X 0 X", [ALARM, ALARM, ALARM, ALARM]),
                ("0 - X - -", [OK, OK, ALARM, OK]),
                ("- - - - 0", [OK, OK, ALARM, OK]),
                ("- - - X -", [ALARM, STAYS, ALARM, OK]),
            ],
        );
    }

    #[test]
    fn one_fresh_value_alone_decides_nothing_where_three_are_needed() {
        check(3, 3, &[("- - - - X", [STAYS, STAYS, ALARM, OK])]);
    }

    #[test]
    fn every_comparison_breaches_as_it_says() {
        use Comparison::{Above, AtLeast, AtMost, Below};
        for (comparison, expected) in [
            (Above, [false, false, true]),
            (AtLeast, [false, true, true]),
            (Below, [true, false, false]),
            (AtMost, [true, true, false]),
        ] {
            assert_eq!([0.0, 1.0, 2.0].map(|value| comparison.breaches(value, 1.0)), expected, "{comparison:?}");
        }
    }

    #[test]
    fn reasons_tell_the_values() {
        let reason = |text| evaluate(&rule(3, 2, MissingData::Missing), &values(text), 1_795_953_600).map(|v| v.reason);
        assert_eq!(
            reason("0 0 X 0 X").as_deref(),
            Some(
                "Threshold Crossed: 2 out of the last 3 datapoints [1.0, 0.0, 1.0 (until 2026-11-29T12:00:00Z)] was \
                 greater than or equal to the threshold (1.0) (minimum 2 datapoints for OK -> ALARM transition)."
            )
        );
        assert_eq!(reason("- - - - -").as_deref(), Some("Insufficient Data: 3 datapoints were unknown."));
    }
}
