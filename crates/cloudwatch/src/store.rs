//! Metrics in memory, within bounds: values come in with the time at which they were true, and come out summed up over
//! periods.

mod series;
mod sketch;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

pub use self::series::Resolution;
use self::series::Series;
pub use self::summary::Summary;
use crate::{Metric, Unit};

/// How much is kept of each account: what one sends takes nothing from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most metrics, each unit of a metric counting as one.
    pub metrics: usize,
    /// What their names and dimensions may take together, in bytes.
    pub names: usize,
    /// What all of an account's may take, in cells of about 50 bytes: one value per span takes one, a spread of values some.
    /// Each metric has an equal share, so that the more metrics there are, the shorter they reach back.
    pub cells: usize,
    /// How long spans of ten seconds are kept, in seconds.
    pub fine: u64,
    /// How long spans of a minute are kept, in seconds.
    pub coarse: u64,
}

impl Default for Limits {
    /// 10,000 metrics in at most about 50 MB, their names in 16 MiB, 3 hours by ten seconds (as CloudWatch has it), 24 hours by the minute.
    fn default() -> Limits {
        Limits { metrics: 10_000, names: 16 << 20, cells: 1_000_000, fine: 3 * 3600, coarse: 24 * 3600 }
    }
}

/// Why values were not taken: as many metrics are kept, or names as long, as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no room for a further metric beside {metrics} others: send fewer or shorter dimensions, or wait until metrics \
     without new values are forgotten"
)]
pub struct TooManyMetrics {
    metrics: usize,
}

/// The values of all metrics. Times are seconds of Unix time.
#[derive(Debug)]
pub struct MetricStore {
    limits: Limits,
    metrics: BTreeMap<Metric, BTreeMap<Unit, Series>>,
    taken: HashMap<Arc<str>, Taken>,
}

/// What an account has taken of its limits.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    metrics: usize,
    names: usize,
}

/// The span of time that somebody asks for, in periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first second.
    pub start: u64,
    /// The first second that is not part of it any more.
    pub end: u64,
    /// The length of a period in seconds: 10, 20, 30 or a multiple of 60.
    pub period: u64,
}

impl MetricStore {
    /// A store without metrics.
    pub fn new(limits: Limits) -> MetricStore {
        MetricStore { limits, metrics: BTreeMap::new(), taken: HashMap::new() }
    }

    /// Takes in values that were true at `time`.
    ///
    /// # Errors
    ///
    /// [`TooManyMetrics`] when the metric is new and there is no room for it; known ones go on.
    pub fn record(
        &mut self,
        metric: &Metric,
        unit: Unit,
        resolution: Resolution,
        time: u64,
        values: &Summary,
    ) -> Result<(), TooManyMetrics> {
        let known = self.metrics.get_mut(metric).and_then(|units| units.get_mut(&unit));
        if let Some(series) = known {
            series.record(resolution, time, values);
            return Ok(());
        }
        let names = if self.metrics.contains_key(metric) { 0 } else { metric.size() };
        let taken = self.taken.entry(Arc::clone(&metric.account)).or_default();
        if taken.metrics >= self.limits.metrics || taken.names + names > self.limits.names {
            return Err(TooManyMetrics { metrics: taken.metrics });
        }
        taken.metrics += 1;
        taken.names += names;
        let mut series = Series::new();
        series.record(resolution, time, values);
        self.metrics.entry(metric.clone()).or_default().insert(unit, series);
        Ok(())
    }

    /// A metric's values, summed up by period, in order of time; periods without values are not there. Without a unit,
    /// those of all units together.
    pub fn periods(&self, metric: &Metric, unit: Option<Unit>, window: Window) -> Vec<(u64, Summary)> {
        let mut periods = BTreeMap::new();
        for of_unit in self.units(metric).filter(|of_unit| unit.is_none_or(|unit| unit == *of_unit)) {
            for (start, summary) in self.periods_of_unit(metric, of_unit, window) {
                add_to(&mut periods, start, summary);
            }
        }
        periods.into_iter().collect()
    }

    /// A metric's values of one unit, summed up by period.
    pub fn periods_of_unit(&self, metric: &Metric, unit: Unit, window: Window) -> Vec<(u64, Summary)> {
        let Some(series) = self.metrics.get(metric).and_then(|units| units.get(&unit)) else { return Vec::new() };
        let mut periods = BTreeMap::new();
        for (time, summary) in series.level(window.period).between(window.start, window.end) {
            add_to(&mut periods, window.period_of(*time), summary.clone());
        }
        periods.into_iter().collect()
    }

    /// The units that a metric has values in.
    pub fn units(&self, metric: &Metric) -> impl Iterator<Item = Unit> {
        self.metrics.get(metric).into_iter().flat_map(|units| units.keys().copied())
    }

    /// Every metric of an account in order, from after `after` on, and the minute of its newest value.
    pub fn metrics_of(&self, account: &str, after: Option<&Metric>) -> impl Iterator<Item = (&Metric, u64)> {
        let first = Metric::new(account, "", "", Vec::new());
        let from = after.map_or(Bound::Included(&first), Bound::Excluded);
        let metrics = self.metrics.range((from, Bound::Unbounded));
        let metrics = metrics.take_while(move |(metric, _)| metric.account == first.account);
        metrics.filter_map(|(metric, units)| Some((metric, units.values().filter_map(Series::newest).max()?)))
    }

    /// Forgets what is too old, and what is too much. To be called every now and then.
    pub fn tidy(&mut self, now: u64) {
        let Limits { cells, fine, coarse, .. } = self.limits;
        for (metric, units) in &mut self.metrics {
            let metrics = self.taken.get(&metric.account).map_or(1, |taken| taken.metrics.max(1));
            for series in units.values_mut() {
                series.shorten(now.saturating_sub(fine), now.saturating_sub(coarse), cells / metrics);
            }
        }
        for units in self.metrics.values_mut() {
            units.retain(|_, series| series.newest().is_some());
        }
        self.metrics.retain(|_, units| !units.is_empty());
        self.taken.clear();
        for (metric, units) in &self.metrics {
            let taken = self.taken.entry(Arc::clone(&metric.account)).or_default();
            taken.metrics += units.len();
            taken.names += metric.size();
        }
    }

    /// What is kept, in cells of about 50 bytes.
    pub fn cells(&self) -> usize {
        self.metrics.values().flat_map(BTreeMap::values).map(Series::cells).sum()
    }
}

impl Window {
    /// The window as CloudWatch rounds it: the start goes down to a whole minute, or, for periods of less than a minute,
    /// to a whole period.
    pub fn rounded(start: u64, end: u64, period: u64) -> Window {
        let step = period.min(60);
        Window { start: start - start % step, end, period }
    }

    /// How many periods begin in it.
    pub fn periods(&self) -> u64 {
        self.end.saturating_sub(self.start).div_ceil(self.period)
    }

    /// The start of the period that a time of the window lies in.
    pub fn period_of(&self, time: u64) -> u64 {
        time - (time - self.start) % self.period
    }
}

fn add_to(periods: &mut BTreeMap<u64, Summary>, start: u64, summary: Summary) {
    match periods.get_mut(&start) {
        Some(present) => present.merge(&summary),
        None => drop(periods.insert(start, summary)),
    }
}
