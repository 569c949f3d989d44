//! Figures of a span of time: rates and quantiles out of what was counted in it.

use std::collections::BTreeMap;

use isotherm_core::{Reason, SpillCause};
use isotherm_telemetry::{CacheOutcome, HistogramFigures, InstanceCounts, ShedCause, StatusClass, VariantCounts};
use serde::Serialize;

use super::history::VariantPoint;

/// What was counted within a span, as it is shown. Rates are 0 to 1; `null` where nothing tells.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    /// Requests that were placed.
    pub(crate) requests: u64,
    pub(crate) requests_per_second: Option<f64>,
    /// Answers with 5xx.
    pub(crate) errors: u64,
    pub(crate) clients_left: u64,
    pub(crate) retries: u64,
    #[serde(flatten)]
    pub(crate) rates: Rates,
    /// Decisions by reason.
    pub(crate) reasons: BTreeMap<&'static str, u64>,
    /// Spills by what made the home full.
    pub(crate) spills: BTreeMap<&'static str, u64>,
    /// Requests shed by cause.
    pub(crate) sheds: BTreeMap<&'static str, u64>,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) output_tokens: u64,
    /// By what the cache was worth, and of all.
    pub(crate) ttft: BTreeMap<&'static str, Quantiles>,
}

/// The rates of a span, 0 to 1; `None` where nothing was counted that would tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Rates {
    /// Answers with 5xx, of all answers.
    pub(crate) error_rate: Option<f64>,
    /// Decisions that left a full home, of all decisions.
    pub(crate) spill_rate: Option<f64>,
    /// Cached prompt tokens, of those of responses that said how many were.
    pub(crate) hit_rate: Option<f64>,
    /// The same as the strategy believed beforehand, or where it believes nothing, as diagnostics predicted it.
    pub(crate) expected_hit_rate: Option<f64>,
    /// Keys that were seen before, of those looked at.
    pub(crate) repeat_share: Option<f64>,
}

/// Times to first token.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) count: u64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Upper bounds in milliseconds (`null`: no bound) and how many lie between each and the one before.
    pub(crate) buckets: Vec<(Option<f64>, u64)>,
}

impl Figures {
    /// The figures of these steps together.
    pub(crate) fn of<'p>(points: impl Iterator<Item = &'p VariantPoint>) -> Figures {
        Figures::of_point(&sum(points))
    }

    /// The figures of one span.
    pub(crate) fn of_point(point: &VariantPoint) -> Figures {
        let VariantPoint { seconds, counts, served, .. } = point;
        let requests = counts.decisions.iter().sum();
        Figures {
            seconds: *seconds,
            requests,
            requests_per_second: (*seconds > 0.0).then(|| requests as f64 / seconds),
            errors: counts.answers[StatusClass::ServerError as usize],
            clients_left: counts.clients_left,
            retries: counts.retries,
            rates: Rates::of(point),
            reasons: named(Reason::ALL.iter().map(|reason| reason.as_str()), &counts.decisions),
            spills: named(SpillCause::ALL.iter().map(|cause| cause.as_str()), &counts.spills),
            sheds: named(ShedCause::ALL.iter().map(|cause| cause.as_str()), &counts.sheds),
            prompt_tokens: served.prompt_tokens,
            cached_tokens: served.cached_tokens,
            output_tokens: served.output_tokens,
            ttft: times_to_first_token(counts),
        }
    }
}

impl Rates {
    pub(crate) fn of(point: &VariantPoint) -> Rates {
        let VariantPoint { counts, served, keys, repeats, predicted, .. } = point;
        let spilled = counts.spills.iter().sum();
        let (hit_rate, expected_hit_rate) = Rates::of_cache(served);
        let predicted = (predicted.prompts > 0.0).then(|| predicted.cached / predicted.prompts);
        Rates {
            error_rate: share(counts.answers[StatusClass::ServerError as usize], counts.answers.iter().sum()),
            spill_rate: share(spilled, counts.decisions.iter().sum()),
            hit_rate,
            expected_hit_rate: expected_hit_rate.or(predicted),
            repeat_share: share(*repeats, *keys),
        }
    }

    /// The hit rate as engines report it and as the strategy expected it.
    pub(crate) fn of_cache(served: &InstanceCounts) -> (Option<f64>, Option<f64>) {
        let of_reported = |tokens| share(tokens, served.cache_reported_prompt_tokens);
        (of_reported(served.cached_tokens), served.expected_cached_tokens.and_then(of_reported))
    }
}

impl Quantiles {
    fn of(histogram: &HistogramFigures) -> Quantiles {
        let milliseconds = |share| histogram.quantile(share).map(|seconds| seconds * 1_000.0);
        let buckets = histogram.buckets().map(|(bound, count)| (bound.is_finite().then_some(bound * 1_000.0), count));
        Quantiles {
            count: histogram.count(),
            p50_ms: milliseconds(0.5),
            p90_ms: milliseconds(0.9),
            p95_ms: milliseconds(0.95),
            p99_ms: milliseconds(0.99),
            buckets: buckets.collect(),
        }
    }
}

/// A part of a whole, 0 to 1; `None` of nothing.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// What was counted in these steps together.
pub(crate) fn sum<'p>(points: impl Iterator<Item = &'p VariantPoint>) -> VariantPoint {
    points.fold(VariantPoint::default(), |mut sum, point| {
        sum.time = point.time;
        sum.seconds += point.seconds;
        sum.counts.add(&point.counts);
        sum.served.add(&point.served);
        sum.keys += point.keys;
        sum.repeats += point.repeats;
        sum.predicted.cached += point.predicted.cached;
        sum.predicted.prompts += point.predicted.prompts;
        (sum.in_flight, sum.waiting) = (point.in_flight, point.waiting);
        sum
    })
}

fn times_to_first_token(counts: &VariantCounts) -> BTreeMap<&'static str, Quantiles> {
    let mut all = HistogramFigures::default();
    counts.first_token.iter().for_each(|histogram| all.add(histogram));
    let by_outcome = CacheOutcome::ALL.iter().map(|outcome| outcome.as_str()).zip(&counts.first_token);
    by_outcome.chain([("all", &all)]).map(|(name, histogram)| (name, Quantiles::of(histogram))).collect()
}

/// Counts by name, without those of which there are none.
fn named(names: impl Iterator<Item = &'static str>, counts: &[u64]) -> BTreeMap<&'static str, u64> {
    names.zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::Predicted;

    #[test]
    fn steps_add_up_and_rates_of_nothing_are_unknown() {
        let empty = Figures::of(std::iter::empty());
        assert_eq!((empty.requests, empty.requests_per_second), (0, None));
        assert_eq!((empty.rates.hit_rate, empty.rates.spill_rate), (None, None));
        let mut point = VariantPoint { seconds: 5.0, keys: 4, repeats: 3, ..VariantPoint::default() };
        point.counts.decisions[Reason::Home as usize] = 8;
        point.counts.decisions[Reason::Spill as usize] = 2;
        point.counts.spills[SpillCause::Threshold as usize] = 2;
        point.counts.answers[StatusClass::Success as usize] = 9;
        point.counts.answers[StatusClass::ServerError as usize] = 1;
        point.served.cache_reported_prompt_tokens = 1_000;
        point.served.cached_tokens = 800;
        let figures = Figures::of([&point, &point].into_iter());
        assert_eq!((figures.requests, figures.requests_per_second), (20, Some(2.0)));
        assert_eq!(
            figures.rates,
            Rates {
                error_rate: Some(0.1),
                spill_rate: Some(0.2),
                hit_rate: Some(0.8),
                expected_hit_rate: None,
                repeat_share: Some(0.75),
            }
        );
        assert_eq!(figures.reasons, BTreeMap::from([("home", 16), ("spill", 4)]));
        point.predicted = Predicted { cached: 700.0, prompts: 1_000.0 };
        assert_eq!(Rates::of(&point).expected_hit_rate, Some(0.7), "PREFIX_AWARE believes nothing itself");
        point.served.expected_cached_tokens = Some(900);
        assert_eq!(Rates::of(&point).expected_hit_rate, Some(0.9));
    }
}
