//! How long the forward pass of a step takes, by what is in it.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

/// What a step computes, in the sums that decide its duration.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepWork {
    /// Tokens computed, prefill and decode together.
    pub tokens: u32,
    /// For each prefill chunk of n tokens behind p computed ones, n·p + n²/2: pairs of tokens that attend.
    pub prefill_pairs: f64,
    /// Context lengths in tokens of all requests that compute a single token, summed.
    pub decode_context: u64,
}

impl StepWork {
    /// Adds a request that computes `tokens` tokens behind `computed` ones. A single token is decoding: attention then
    /// waits for memory, not for arithmetic, and costs by the token of context.
    pub(crate) fn add(&mut self, tokens: u32, computed: u32) {
        self.tokens += tokens;
        if tokens == 1 {
            self.decode_context += u64::from(computed) + 1;
        } else {
            let (new, before) = (f64::from(tokens), f64::from(computed));
            self.prefill_pairs += new * before + new * new / 2.0;
        }
    }
}

/// Step times of one model on one kind of accelerator, in ms:
///
/// linear(tokens) + pair · `prefill_pairs` + context · `decode_context`
///
/// The linear part (matrix products, communication, launches) is read from the tables: at each batch size that they
/// hold, what is left of the measured times when attention is taken off; linear between the sizes, and beyond the
/// largest. Prefill and decode steps of equal size agree in it, so a mixed step is their sum. The two attention
/// coefficients are those of the tables' own fit.
///
/// Mean absolute error against the tables (prefill, decode): 70B TP8 bf16 1.4 %, 1.1 %; fp8 1.6 %, 1.3 %; TP4 0.9 %,
/// 0.8 %; 8B 1.1 %, 1.9 %. The largest single one is 10 %, at prefills of up to 128 tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTimes {
    /// (tokens, ms), ascending.
    linear: Vec<(f64, f64)>,
    pair_ms: f64,
    context_ms: f64,
}

impl StepTimes {
    /// Duration of the forward pass.
    pub fn forward_pass(&self, work: &StepWork) -> Duration {
        let attention = self.pair_ms * work.prefill_pairs + self.context_ms * work.decode_context as f64;
        let milliseconds = self.linear_ms(f64::from(work.tokens)) + attention;
        Duration::from_nanos((milliseconds * 1e6) as u64)
    }

    /// The same on an accelerator that takes `factor` times as long.
    pub(crate) fn scaled(mut self, factor: f64) -> Self {
        self.linear.iter_mut().for_each(|(_, milliseconds)| *milliseconds *= factor);
        self.pair_ms *= factor;
        self.context_ms *= factor;
        self
    }

    fn linear_ms(&self, tokens: f64) -> f64 {
        let above = self.linear.partition_point(|&(size, _)| size < tokens).clamp(1, self.linear.len() - 1);
        let (low, high) = (self.linear[above - 1], self.linear[above]);
        low.1 + (high.1 - low.1) * (tokens - low.0) / (high.0 - low.0)
    }
}

/// Measured times by profile name.
pub(crate) static MEASURED: LazyLock<BTreeMap<String, Tables>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/h100-step-times.json")).expect("the built-in tables are well-formed")
});

/// The measured times of one model (see `data/NOTICE`).
#[derive(Debug, Deserialize)]
pub(crate) struct Tables {
    /// New tokens, cached tokens, ms.
    prefill_new_prefix_ms: Vec<(f64, f64, f64)>,
    /// Requests, context tokens of each, ms.
    decode_batch_ctx_ms: Vec<(f64, f64, f64)>,
    fit: Fit,
}

#[derive(Debug, Deserialize)]
struct Fit {
    prefill_attn_pair_ms: f64,
    decode_per_ctx_tok_ms: f64,
}

impl Tables {
    pub(crate) fn step_times(&self) -> StepTimes {
        let (pair_ms, context_ms) = (self.fit.prefill_attn_pair_ms, self.fit.decode_per_ctx_tok_ms);
        let prefill = self.prefill_new_prefix_ms.iter();
        let prefill = prefill.map(|&(new, cached, ms)| (new, ms - pair_ms * (new * cached + new * new / 2.0)));
        let decode = self.decode_batch_ctx_ms.iter();
        let decode = decode.map(|&(requests, context, ms)| (requests, ms - context_ms * requests * context));

        let prefill = means(prefill);
        let decode = means(decode);
        StepTimes { linear: means(prefill.into_iter().chain(decode)), pair_ms, context_ms }
    }
}

/// For each batch size the mean of its times.
fn means(times: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (size, milliseconds) in times {
        let sum = sums.entry(size as u64).or_default();
        *sum = (sum.0 + milliseconds, sum.1 + 1.0);
    }
    sums.into_iter().map(|(size, (sum, count))| (size as f64, sum / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative errors of the model against every cell of a table.
    fn errors(tables: &Tables) -> (Vec<f64>, Vec<f64>) {
        let times = tables.step_times();
        let error = |work: StepWork, ms: f64| (times.forward_pass(&work).as_secs_f64() * 1e3 / ms - 1.0).abs();
        let prefill = tables.prefill_new_prefix_ms.iter().map(|&(new, cached, ms)| {
            let mut work = StepWork::default();
            work.add(new as u32, cached as u32);
            error(work, ms)
        });
        let decode = tables.decode_batch_ctx_ms.iter().map(|&(requests, context, ms)| {
            let mut work = StepWork::default();
            (0..requests as u32).for_each(|_| work.add(1, context as u32 - 1));
            error(work, ms)
        });
        (prefill.collect(), decode.collect())
    }

    fn mean(errors: &[f64]) -> f64 {
        errors.iter().sum::<f64>() / errors.len() as f64
    }

    #[test]
    fn times_follow_the_measured_tables_within_two_percent_on_average() {
        assert_eq!(MEASURED.len(), 4);
        for (name, tables) in MEASURED.iter() {
            let (prefill, decode) = errors(tables);
            assert_eq!((prefill.len(), decode.len()), (50, 54), "{name}");
            let (prefill_error, decode_error) = (mean(&prefill), mean(&decode));
            assert!(prefill_error < 0.017, "{name}: prefill {prefill_error:.4}");
            assert!(decode_error < 0.020, "{name}: decode {decode_error:.4}");
            let largest = prefill.iter().chain(&decode).fold(0.0_f64, |largest, &error| largest.max(error));
            assert!(largest < 0.10, "{name}: largest {largest:.4}");
        }
    }

    #[test]
    fn a_long_prefill_of_the_default_model_takes_what_was_measured() {
        let times = MEASURED["llama3.1-70b-tp8-bf16"].step_times();
        let mut work = StepWork::default();
        work.add(8192, 0);
        let milliseconds = times.forward_pass(&work).as_secs_f64() * 1e3;
        assert!((milliseconds - 344.3).abs() < 4.0, "{milliseconds}");
    }

    #[test]
    fn more_tokens_take_more_time_from_32_on() {
        let times = MEASURED["llama3.1-70b-tp8-bf16"].step_times();
        let time = |tokens| times.forward_pass(&StepWork { tokens, ..StepWork::default() }).as_secs_f64();
        // Below, the measured times go up and down by a few percent, and the model with them.
        assert!((32..20_000).all(|tokens| time(tokens + 1) > time(tokens)));
        assert!(time(16_384) > 1.9 * time(8_192), "the line goes on beyond the table");
    }

    #[test]
    fn a_mixed_step_costs_its_tokens_once_and_each_attention_for_itself() {
        let times = MEASURED["llama3.1-70b-tp8-bf16"].step_times();
        let mut mixed = StepWork::default();
        mixed.add(4_000, 96);
        (0..96).for_each(|_| mixed.add(1, 999));
        assert_eq!(mixed.tokens, 4_096);
        assert_eq!(mixed.decode_context, 96_000);
        let mut prefill = StepWork::default();
        prefill.add(4_096, 0);
        let difference = times.forward_pass(&mixed).as_secs_f64() - times.forward_pass(&prefill).as_secs_f64();
        assert!((0.000_9..0.001_6).contains(&difference), "{difference}");
    }

    #[test]
    fn a_slower_accelerator_takes_its_factor_longer() {
        let times = MEASURED["llama3.1-70b-tp8-bf16"].step_times();
        let mut work = StepWork::default();
        work.add(2_048, 4_096);
        work.add(1, 8_000);
        let (once, twice) = (times.forward_pass(&work), times.clone().scaled(2.0).forward_pass(&work));
        assert!((twice.as_secs_f64() / once.as_secs_f64() - 2.0).abs() < 1e-6);
    }
}
