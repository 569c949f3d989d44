//! How long a step takes, by what is in it.

use std::time::Duration;

/// What a step computes, in the sums that decide its duration.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepWork {
    /// Tokens computed, prefill and decode together.
    pub tokens: u32,
    /// For each prefill chunk of n tokens behind p computed ones, n·p + n²/2: pairs of tokens that attend.
    pub prefill_pairs: f64,
    /// Context lengths of all decoding requests, summed.
    pub decode_context: u64,
}

/// Step times of one model on one kind of accelerator.
#[derive(Debug, Clone)]
pub struct StepTimes {}

impl StepTimes {
    /// Duration of a step.
    pub fn duration(&self, _work: &StepWork) -> Duration {
        todo!()
    }
}
