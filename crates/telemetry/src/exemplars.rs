//! Which trace shows a time to first token of each bucket: so that a slow one on a chart leads to its trace.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::labels::CacheOutcome;
use crate::metrics::TIME_TO_FIRST_TOKEN;
use crate::names::TIME_TO_FIRST_TOKEN_BY_OUTCOME;
use crate::spans::SpanContext;

/// Of how many series they are kept; a router has four for each variant.
const SERIES: usize = 4_000;

/// By endpoint, variant and outcome: one for each bucket.
type Series = HashMap<(Arc<str>, Arc<str>, CacheOutcome), Vec<Option<Exemplar>>>;

/// The last traced request of each bucket.
#[derive(Debug, Default)]
pub(crate) struct Exemplars {
    series: Mutex<Series>,
}

#[derive(Debug, Clone, Copy)]
struct Exemplar {
    trace: u128,
    span: u64,
    value: Duration,
    time: SystemTime,
}

impl Exemplars {
    /// Notes a traced request; not at all where another thread is at it.
    pub(crate) fn note(
        &self,
        (endpoint, variant): (&Arc<str>, &Arc<str>),
        outcome: CacheOutcome,
        context: &SpanContext,
        value: Duration,
        time: SystemTime,
    ) {
        let Some(mut series) = self.series.try_lock() else { return };
        let name = (Arc::clone(endpoint), Arc::clone(variant), outcome);
        if series.len() >= SERIES && !series.contains_key(&name) {
            return;
        }
        let buckets = series.entry(name).or_insert_with(|| vec![None; TIME_TO_FIRST_TOKEN.len() + 1]);
        let bucket = TIME_TO_FIRST_TOKEN.partition_point(|bound| *bound < value.as_secs_f64());
        buckets[bucket] = Some(Exemplar { trace: context.trace, span: context.request, value, time });
    }

    /// The OpenMetrics text with what is known.
    pub(crate) fn annotate(&self, exposed: String) -> String {
        let series = self.series.lock();
        if series.is_empty() {
            return exposed;
        }
        let beginning = format!("{}_bucket{{", TIME_TO_FIRST_TOKEN_BY_OUTCOME.name);
        let mut annotated = String::with_capacity(exposed.len() + 4_096);
        for line in exposed.lines() {
            annotated.push_str(line);
            let found = line.strip_prefix(&beginning).and_then(Bucket::read).and_then(|bucket| bucket.find(&series));
            if let Some(Exemplar { trace, span, value, time }) = found {
                let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let _ = write!(
                    annotated,
                    " # {{trace_id=\"{trace:032x}\",span_id=\"{span:016x}\"}} {} {:.3}",
                    value.as_secs_f64(),
                    seconds.as_secs_f64()
                );
            }
            annotated.push('\n');
        }
        annotated
    }
}

/// One line of a histogram: its labels, without the brace before them.
struct Bucket<'t> {
    endpoint: &'t str,
    variant: &'t str,
    outcome: &'t str,
    bound: &'t str,
}

impl<'t> Bucket<'t> {
    /// Names of endpoints and variants hold nothing that is escaped.
    fn read(labels: &'t str) -> Option<Bucket<'t>> {
        let labels = labels.split_once('}')?.0;
        let label = |name: &str| {
            let found = labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\""));
            found?.strip_suffix('"')
        };
        let (endpoint, variant) = (label("endpoint")?, label("variant")?);
        Some(Bucket { endpoint, variant, outcome: label("outcome")?, bound: label("le")? })
    }

    fn find(&self, series: &Series) -> Option<Exemplar> {
        let outcome = *CacheOutcome::ALL.iter().find(|outcome| outcome.as_str() == self.outcome)?;
        let bound: f64 = if self.bound == "+Inf" { f64::INFINITY } else { self.bound.parse().ok()? };
        let bucket = TIME_TO_FIRST_TOKEN.partition_point(|at| *at < bound);
        *series.get(&(self.endpoint.into(), self.variant.into(), outcome))?.get(bucket)?
    }
}
