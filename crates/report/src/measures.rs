//! The figures by which strategies are compared, and how they follow from the records of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::RequestRecord;
use crate::percentile::{mean, percentile};

/// One set of figures. `T` is `f64` for the figures themselves and `[f64; 2]` for their intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measures<T> {
    /// Time to first token of the answered requests; `None` if there are none.
    pub ttft_ms: Option<Latency<T>>,
    /// Cached tokens / prompt tokens as the engines count them, 0 to 1; `None` where they do not say.
    pub hit_rate: Option<T>,
    /// Requests answered per second while the load was steady.
    pub requests_per_second: Option<T>,
    /// Tokens generated per second for these; `None` where engines do not count them.
    pub output_tokens_per_second: Option<T>,
    /// Share of the requests that were sent elsewhere because their home was full; `None` where the router gives no
    /// reasons.
    pub spill_rate: Option<T>,
    /// The smallest and the largest share of the requests that one instance got; `None` where the router does not say
    /// who served.
    pub instance_share: Option<Share<T>>,
    /// Requests answered per second within the objectives; `None` without objectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_per_second: Option<T>,
    /// Cached blocks overwritten per second, all instances together; `None` where engines do not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted_blocks_per_second: Option<T>,
    /// Share of the time in which accelerators computed, 0 to 1; `None` where engines do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<T>,
    /// Seconds for which an accelerator was there, per million tokens of prompts and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_seconds_per_million_tokens: Option<T>,
    /// What a million tokens of prompts and answers cost, at the price of an instance; `None` without a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_million_tokens: Option<T>,
}

/// How two values of a figure are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// By their quotient.
    Ratio,
    /// By their difference: a percentage of a percentage misleads.
    Points,
}

impl<T: Copy> Measures<T> {
    /// Combines several sets figure by figure: `combine` gets the values that are known, at least one.
    pub(crate) fn combined<U>(all: &[Measures<T>], combine: &dyn Fn(Scale, Vec<T>) -> Option<U>) -> Measures<U> {
        let figure = |scale, of: &dyn Fn(&Measures<T>) -> Option<T>| {
            let known: Vec<T> = all.iter().filter_map(of).collect();
            if known.is_empty() { None } else { combine(scale, known) }
        };
        let ratio = |of: &dyn Fn(&Measures<T>) -> Option<T>| figure(Scale::Ratio, of);
        let points = |of: &dyn Fn(&Measures<T>) -> Option<T>| figure(Scale::Points, of);
        let ttft = |of: fn(&Latency<T>) -> T| ratio(&|measures| measures.ttft_ms.as_ref().map(of));
        let share = |of: fn(&Share<T>) -> T| points(&|measures| measures.instance_share.as_ref().map(of));
        Measures {
            ttft_ms: (|| {
                Some(Latency {
                    p50: ttft(|ttft| ttft.p50)?,
                    p90: ttft(|ttft| ttft.p90)?,
                    p95: ttft(|ttft| ttft.p95)?,
                    p99: ttft(|ttft| ttft.p99)?,
                    mean: ttft(|ttft| ttft.mean)?,
                })
            })(),
            hit_rate: points(&|measures| measures.hit_rate),
            requests_per_second: ratio(&|measures| measures.requests_per_second),
            output_tokens_per_second: ratio(&|measures| measures.output_tokens_per_second),
            spill_rate: points(&|measures| measures.spill_rate),
            instance_share: (|| Some(Share { min: share(|share| share.min)?, max: share(|share| share.max)? }))(),
            goodput_per_second: ratio(&|measures| measures.goodput_per_second),
            evicted_blocks_per_second: ratio(&|measures| measures.evicted_blocks_per_second),
            gpu_utilisation: points(&|measures| measures.gpu_utilisation),
            gpu_seconds_per_million_tokens: ratio(&|measures| measures.gpu_seconds_per_million_tokens),
            cost_per_million_tokens: ratio(&|measures| measures.cost_per_million_tokens),
        }
    }
}

/// The interval of every figure over many draws of them: from the 2.5th to the 97.5th percentile.
pub(crate) fn bounds(draws: &[Measures<f64>]) -> Measures<[f64; 2]> {
    Measures::combined(draws, &|_, mut values| {
        values.sort_unstable_by(f64::total_cmp);
        Some([percentile(&values, 2.5)?, percentile(&values, 97.5)?])
    })
}

/// How figures differ from those before: relative, or in points of 1 for shares. Unknown where one of both is, or where
/// nothing was there before.
pub(crate) fn change(before: &Measures<f64>, after: &Measures<f64>) -> Measures<f64> {
    Measures::combined(&[*before, *after], &|scale, values| match (scale, &values[..]) {
        (Scale::Points, [before, after]) => Some(after - before),
        (Scale::Ratio, [before, after]) if *before != 0.0 => Some(after / before - 1.0),
        _ => None,
    })
}

/// A distribution of times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency<T> {
    pub p50: T,
    pub p90: T,
    pub p95: T,
    pub p99: T,
    pub mean: T,
}

/// Extremes over the instances, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share<T> {
    pub min: T,
    pub max: T,
}

/// What must stay the same while figures are computed from parts of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The time in which every user was active: from the first measured request to the last request sent.
    start: Duration,
    end: Duration,
    /// How many instances there are, where that is known: one that got nothing shows up nowhere else.
    instances: Option<u32>,
    /// Whether any answer told its cached tokens. vLLM leaves the field out where it is zero
    /// (`vllm/entrypoints/openai/chat_completion/serving.py`: `if enable_prompt_tokens_details and num_cached_tokens`),
    /// so among engines that tell at all, silence is a miss.
    cached_tokens_known: bool,
}

impl Frame {
    pub(crate) fn of(records: &[RequestRecord], instances: Option<u32>) -> Frame {
        let measured = || records.iter().filter(|record| !record.warm_up);
        let start = measured().map(|record| record.send).min().unwrap_or_default();
        let last_send = measured().map(|record| record.send).max().unwrap_or_default();
        let last_end = measured().map(|record| record.end).max().unwrap_or_default();
        Frame {
            start,
            end: if last_send > start { last_send } else { last_end },
            instances,
            cached_tokens_known: records.iter().any(|record| record.cached_tokens.is_some()),
        }
    }

    /// Computes the figures of a run, or of a sample of its records (where some may stand more than once).
    pub(crate) fn measure<'a>(&self, records: impl Iterator<Item = &'a RequestRecord> + Clone) -> Measures<f64> {
        let measured = records.clone().filter(|record| !record.warm_up);
        let answered = measured.clone().filter(|record| record.failure.is_none());
        let completed =
            records.filter(|record| record.failure.is_none() && record.end >= self.start && record.end <= self.end);
        Measures {
            ttft_ms: ttft(answered.clone()),
            hit_rate: self.hit_rate(answered),
            requests_per_second: self.per_second(completed.clone().map(|_| 1).sum()),
            output_tokens_per_second: completed
                .map(|record| record.output_tokens)
                .sum::<Option<u64>>()
                .and_then(|tokens| self.per_second(tokens)),
            spill_rate: spill_rate(measured.clone()),
            instance_share: instance_share(measured, self.instances),
            goodput_per_second: None,
            evicted_blocks_per_second: None,
            gpu_utilisation: None,
            gpu_seconds_per_million_tokens: None,
            cost_per_million_tokens: None,
        }
    }

    fn hit_rate<'a>(&self, answered: impl Iterator<Item = &'a RequestRecord>) -> Option<f64> {
        if !self.cached_tokens_known {
            return None;
        }
        let (mut cached, mut prompt) = (0, 0);
        for record in answered {
            if let Some(tokens) = record.prompt_tokens {
                prompt += tokens;
                cached += record.cached_tokens.unwrap_or(0);
            }
        }
        (prompt > 0).then(|| cached as f64 / prompt as f64)
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        let seconds = self.end.saturating_sub(self.start).as_secs_f64();
        (seconds > 0.0).then(|| count as f64 / seconds)
    }
}

fn ttft<'a>(answered: impl Iterator<Item = &'a RequestRecord>) -> Option<Latency<f64>> {
    latency(answered.filter_map(RequestRecord::ttft).map(|ttft| ttft.as_secs_f64() * 1_000.0).collect())
}

/// The figures of a distribution of times in milliseconds, in any order; `None` for no times.
pub fn latency(mut times: Vec<f64>) -> Option<Latency<f64>> {
    times.sort_unstable_by(f64::total_cmp);
    Some(Latency {
        p50: percentile(&times, 50.0)?,
        p90: percentile(&times, 90.0)?,
        p95: percentile(&times, 95.0)?,
        p99: percentile(&times, 99.0)?,
        mean: mean(&times)?,
    })
}

fn spill_rate<'a>(measured: impl Iterator<Item = &'a RequestRecord>) -> Option<f64> {
    let (mut spills, mut known) = (0_u64, 0_u64);
    for reason in measured.filter_map(|record| record.reason.as_deref()) {
        known += 1;
        spills += u64::from(reason == "spill");
    }
    (known > 0).then(|| spills as f64 / known as f64)
}

fn instance_share<'a>(measured: impl Iterator<Item = &'a RequestRecord>, instances: Option<u32>) -> Option<Share<f64>> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for instance in measured.filter_map(|record| record.instance.as_deref()) {
        *counts.entry(instance).or_default() += 1;
    }
    let total = counts.values().sum::<u64>() as f64;
    let somebody_got_nothing = instances.is_some_and(|instances| (counts.len() as u64) < u64::from(instances));
    let min = if somebody_got_nothing { 0 } else { *counts.values().min()? };
    Some(Share { min: min as f64 / total, max: *counts.values().max()? as f64 / total })
}
