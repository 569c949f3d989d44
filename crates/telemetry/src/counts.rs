//! What variants and instances have counted, as numbers: views of the router live on the differences between two moments.

use std::array;

use isotherm_core::{Reason, SpillCause};

use crate::duration_histogram::HistogramFigures;
use crate::labels::{CacheOutcome, ShedCause, StatusClass};

/// What a variant has counted, from its beginning or within a span.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantCounts {
    /// Answers by [`StatusClass`], in its order.
    pub answers: [u64; StatusClass::ALL.len()],
    /// Decisions by [`Reason`], in its order.
    pub decisions: [u64; Reason::ALL.len()],
    /// Spills by [`SpillCause`], in its order.
    pub spills: [u64; SpillCause::ALL.len()],
    /// Requests shed by [`ShedCause`], in its order.
    pub sheds: [u64; ShedCause::ALL.len()],
    /// Further attempts.
    pub retries: u64,
    /// Clients that left before the end.
    pub clients_left: u64,
    /// Times to first token by [`CacheOutcome`], in its order.
    pub first_token: [HistogramFigures; CacheOutcome::ALL.len()],
}

impl VariantCounts {
    /// What was counted since `before`; what began anew meanwhile counts from its new beginning.
    pub fn since(&self, before: &VariantCounts) -> VariantCounts {
        VariantCounts {
            answers: differences(&self.answers, &before.answers),
            decisions: differences(&self.decisions, &before.decisions),
            spills: differences(&self.spills, &before.spills),
            sheds: differences(&self.sheds, &before.sheds),
            retries: difference(self.retries, before.retries),
            clients_left: difference(self.clients_left, before.clients_left),
            first_token: array::from_fn(|outcome| self.first_token[outcome].since(&before.first_token[outcome])),
        }
    }

    /// Adds what was counted in another span.
    pub fn add(&mut self, other: &VariantCounts) {
        add_each(&mut self.answers, &other.answers);
        add_each(&mut self.decisions, &other.decisions);
        add_each(&mut self.spills, &other.spills);
        add_each(&mut self.sheds, &other.sheds);
        self.retries += other.retries;
        self.clients_left += other.clients_left;
        for (histogram, more) in self.first_token.iter_mut().zip(&other.first_token) {
            histogram.add(more);
        }
    }
}

/// What an instance has counted, from its beginning or within a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstanceCounts {
    /// Requests that ended there.
    pub requests: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Prompt tokens from the cache.
    pub cached_tokens: u64,
    /// Prompt tokens of responses that said how many were cached.
    pub cache_reported_prompt_tokens: u64,
    /// Prompt tokens that the strategy believed to be cached; `None` where it believes nothing.
    pub expected_cached_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: u64,
    /// What went wrong between router and instance.
    pub upstream_errors: u64,
}

impl InstanceCounts {
    /// What was counted since `before`; what began anew meanwhile counts from its new beginning.
    pub fn since(&self, before: &InstanceCounts) -> InstanceCounts {
        let reported = difference(self.cache_reported_prompt_tokens, before.cache_reported_prompt_tokens);
        let expected_before = before.expected_cached_tokens.unwrap_or_default();
        InstanceCounts {
            requests: difference(self.requests, before.requests),
            prompt_tokens: difference(self.prompt_tokens, before.prompt_tokens),
            cached_tokens: difference(self.cached_tokens, before.cached_tokens),
            cache_reported_prompt_tokens: reported,
            expected_cached_tokens: self.expected_cached_tokens.map(|now| difference(now, expected_before)),
            output_tokens: difference(self.output_tokens, before.output_tokens),
            upstream_errors: difference(self.upstream_errors, before.upstream_errors),
        }
    }

    /// Adds what was counted in another span, or by another instance.
    pub fn add(&mut self, other: &InstanceCounts) {
        self.requests += other.requests;
        self.prompt_tokens += other.prompt_tokens;
        self.cached_tokens += other.cached_tokens;
        self.cache_reported_prompt_tokens += other.cache_reported_prompt_tokens;
        if let Some(expected) = other.expected_cached_tokens {
            *self.expected_cached_tokens.get_or_insert(0) += expected;
        }
        self.output_tokens += other.output_tokens;
        self.upstream_errors += other.upstream_errors;
    }
}

fn differences<const N: usize>(now: &[u64; N], before: &[u64; N]) -> [u64; N] {
    array::from_fn(|index| difference(now[index], before[index]))
}

fn difference(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

fn add_each<const N: usize>(counts: &mut [u64; N], more: &[u64; N]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Metrics;
    use crate::sample::{at_random, spilled};

    #[test]
    fn a_variant_tells_by_reason_cause_and_outcome_what_came_since() {
        let metrics = Metrics::new("test");
        let variant = metrics.variant("chat", "a");
        variant.decision(&spilled());
        variant.request("chat_completions", 200, Duration::from_millis(9));
        let before = variant.counts();
        variant.decision(&spilled());
        variant.decision(&at_random());
        variant.request("responses", 503, Duration::from_millis(9));
        variant.first_token_by_outcome(CacheOutcome::Hit, Duration::from_millis(60));
        let span = variant.counts().since(&before);
        assert_eq!(span.decisions[Reason::Spill as usize], 1);
        assert_eq!(span.decisions[Reason::Random as usize], 1);
        assert_eq!(span.decisions.iter().sum::<u64>(), 2);
        assert_eq!(span.spills[SpillCause::Threshold as usize], 1);
        assert_eq!(span.answers, [0, 0, 0, 0, 1]);
        assert_eq!(span.first_token[CacheOutcome::Hit as usize].count(), 1);
        let mut twice = span.clone();
        twice.add(&span);
        assert_eq!(twice.decisions[Reason::Random as usize], 2);
    }

    #[test]
    fn an_instance_that_began_anew_counts_from_its_new_beginning() {
        let before = InstanceCounts { requests: 10, prompt_tokens: 1_000, ..InstanceCounts::default() };
        let anew = InstanceCounts { requests: 2, prompt_tokens: 70, ..InstanceCounts::default() };
        assert_eq!(anew.since(&before), anew);
        let later = InstanceCounts { requests: 13, prompt_tokens: 1_500, ..InstanceCounts::default() };
        assert_eq!((later.since(&before).requests, later.since(&before).prompt_tokens), (3, 500));
    }
}
