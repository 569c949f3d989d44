//! When figures must not be trusted.

use std::time::Duration;

use isotherm_report::Failure;

/// How late something woke, in wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// 99 of 100 times it was at most this late.
    pub p99: Duration,
    /// The worst.
    pub max: Duration,
}

impl Lag {
    /// The lag of some wake-ups.
    pub(crate) fn of(mut late: Vec<Duration>) -> Lag {
        late.sort_unstable();
        let Some(last) = late.len().checked_sub(1) else { return Lag::default() };
        Lag { p99: late[last * 99 / 100], max: late[last] }
    }
}

/// More lag than this, in the engines' time, is too much: a sixth of the 60 ms in which a warm prompt of 8,000 tokens
/// gets its first token, and less than one decode step.
const MAX_LAG: Duration = Duration::from_millis(10);
/// A larger share of failed requests is too much: figures of the others would be figures of a lighter load.
const MAX_ERRORS: f64 = 0.01;

/// A run in the numbers that its validity depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) strategy: &'a str,
    /// Requests measured.
    pub(crate) requests: u64,
    /// How many of these failed.
    pub(crate) errors: u64,
    /// What the first of these met.
    pub(crate) first_failure: Option<&'a Failure>,
}

/// The reasons to distrust a strategy's run, one sentence each.
pub(crate) fn objections(run: &Counted<'_>, engines: Option<Lag>, client: Lag, speed: f64) -> Vec<String> {
    let mut objections = Vec::new();
    let mut late = |who: &str, lag: Lag| {
        if lag.p99.mul_f64(speed) > MAX_LAG {
            objections.push(format!(
                "{}: {who} lagged by {:.1} ms of engine time (99th percentile; at most {:.0} ms is good, the worst was \
                 {:.1} ms): the machine is full, lower the speed or send less",
                run.strategy,
                milliseconds(lag.p99) * speed,
                milliseconds(MAX_LAG),
                milliseconds(lag.max) * speed,
            ));
        }
    };
    engines.into_iter().for_each(|lag| late("the emulated engines", lag));
    late("the load generator", client);
    if run.errors as f64 > MAX_ERRORS * run.requests as f64 {
        let first = run.first_failure.map(|first| format!(" (the first: {}: {})", first.kind, first.detail));
        objections.push(format!(
            "{}: {} of {} requests failed{}; the figures are those of the others",
            run.strategy,
            run.errors,
            run.requests,
            first.unwrap_or_default(),
        ));
    }
    objections
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_report::{Failure, FailureKind};

    use super::{Counted, Lag, objections};

    const RUN: Counted<'_> = Counted { strategy: "RANDOM", requests: 500, errors: 0, first_failure: None };

    fn lag(p99_ms: u64) -> Lag {
        Lag { p99: Duration::from_millis(p99_ms), max: Duration::from_millis(3 * p99_ms) }
    }

    #[test]
    fn lag_counts_in_engine_time() {
        assert!(objections(&RUN, Some(lag(4)), lag(4), 2.0).is_empty());
        assert_eq!(
            objections(&RUN, Some(lag(6)), lag(1), 2.0),
            [
                "RANDOM: the emulated engines lagged by 12.0 ms of engine time (99th percentile; at most 10 ms is good, the \
              worst was 36.0 ms): the machine is full, lower the speed or send less"
            ]
        );
        let client = objections(&RUN, None, lag(3), 4.0);
        assert!(client.len() == 1 && client[0].contains("the load generator lagged by 12.0 ms"), "{client:?}");
    }

    #[test]
    fn many_failures_are_an_objection() {
        let mut run = Counted { errors: 5, ..RUN };
        assert!(objections(&run, None, Lag::default(), 1.0).is_empty());
        run.errors = 6;
        assert_eq!(
            objections(&run, None, Lag::default(), 1.0),
            ["RANDOM: 6 of 500 requests failed; the figures are those of the others"]
        );
        let first = Failure { kind: FailureKind::Timeout, detail: "no complete answer in 60s".to_owned() };
        run.first_failure = Some(&first);
        assert_eq!(
            objections(&run, None, Lag::default(), 1.0),
            [
                "RANDOM: 6 of 500 requests failed (the first: timeout: no complete answer in 60s); the figures are those of \
              the others"
            ]
        );
    }

    #[test]
    fn lag_of_wake_ups_is_their_99th_percentile_and_maximum() {
        let late = (0..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(Lag::of(late), Lag { p99: Duration::from_millis(99), max: Duration::from_millis(100) });
        assert_eq!(Lag::of(Vec::new()), Lag::default());
    }
}
