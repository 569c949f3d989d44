//! Why a workload cannot be planned.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::TraceError;

/// Why a workload cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum InvalidWorkload {
    #[error("{what} is 0; it must be at least 1")]
    Zero { what: &'static str },
    #[error("{what} goes from {low} to {high}; the first must not be above the second")]
    EmptyRange { what: &'static str, low: u32, high: u32 },
    #[error("{what} is {value}; it must be a number above 0")]
    NotPositive { what: &'static str, value: String },
    #[error("{what} is {value}; it must be a number from 0 up")]
    Negative { what: &'static str, value: f64 },
    #[error("{what} is {value}; it must be between 0 and 1")]
    NotAShare { what: &'static str, value: f64 },
    #[error("no gaps can be drawn for {per_second} sessions per second with a variation of {variation}: {error}")]
    Gaps { per_second: f64, variation: f64, error: rand_distr::GammaError },
    #[error("bursts come every {every:?} and take {within:?}; the first must not be below the second, nor 0")]
    OverlappingBursts { every: Duration, within: Duration },
    #[error("the longest answer is {longest} tokens; engines generate at least {shortest}")]
    ShortAnswer { longest: u32, shortest: u32 },
    #[error("{workload} has no users; give it arrivals in open loop")]
    NoUsers { workload: &'static str },
    #[error("{workload} has no times of its own; give it users, Poisson arrivals or bursts")]
    NoTimes { workload: &'static str },
    #[error("{workload} comes at its own times; they can be made faster or slower, not replaced")]
    OnlyOwnTimes { workload: &'static str },
    #[error("none of the recorded sessions {why}")]
    NoSession { why: String },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Refuses a range that is empty or holds a zero.
pub(crate) fn check_range(what: &'static str, range: &RangeInclusive<u32>) -> Result<(), InvalidWorkload> {
    let (low, high) = (*range.start(), *range.end());
    if low > high {
        return Err(InvalidWorkload::EmptyRange { what, low, high });
    }
    check_count(what, low)
}

/// Refuses a zero.
pub(crate) fn check_count(what: &'static str, count: u32) -> Result<(), InvalidWorkload> {
    if count == 0 { Err(InvalidWorkload::Zero { what }) } else { Ok(()) }
}

/// Refuses zero, what is below it, and what is no number.
pub(crate) fn check_positive(what: &'static str, value: f64) -> Result<(), InvalidWorkload> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(InvalidWorkload::NotPositive { what, value: value.to_string() })
}

/// Refuses what is no share of a whole.
pub(crate) fn check_share(what: &'static str, value: f64) -> Result<(), InvalidWorkload> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(InvalidWorkload::NotAShare { what, value }) }
}

/// Refuses an exponent of Zipf's law that is no number from 0 up.
pub(crate) fn check_exponent(what: &'static str, value: f64) -> Result<(), InvalidWorkload> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(InvalidWorkload::Negative { what, value }) }
}
