//! Puts the router's own figures into the metrics, every ten seconds, under SageMaker's names and ours.
//!
//! Requests are counted where they end, whether this runs or not; here the counts are read and their differences kept.

mod figures;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isotherm_fleet::Fleet;
use isotherm_telemetry::InvocationFigures;
use tracing::warn;

use self::figures::Figure;
use self::reading::{Place, Reading};
use crate::{CloudWatch, Dimension, Metric, MetricStore, Summary, TooManyMetrics};

/// How often counts are read, in seconds: the finest resolution that metrics are kept at.
const EVERY: u64 = 10;

/// Reads the fleet's counts and puts what was added to them into the metrics.
#[derive(Debug)]
pub struct Publisher {
    cloudwatch: CloudWatch,
    fleet: Fleet,
    /// Whose the endpoints without an account in their name are.
    account: Arc<str>,
    before: HashMap<Place, InvocationFigures>,
    /// Requests under way per instance, as seen every second since the last time.
    concurrency: HashMap<Place, Summary>,
    was_full: bool,
}

impl Publisher {
    /// A publisher of this fleet's figures; `account` owns the endpoints that belong to no other.
    pub fn new(cloudwatch: CloudWatch, fleet: Fleet, account: &str) -> Publisher {
        Publisher {
            cloudwatch,
            fleet,
            account: account.into(),
            before: HashMap::new(),
            concurrency: HashMap::new(),
            was_full: false,
        }
    }

    /// Looks at how many requests are under way every second, publishes every ten seconds and then lets alarms look at
    /// the metrics. Never ends.
    pub async fn run(mut self) {
        let mut published = 0;
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into())).await;
            let now = crate::service::unix_time();
            let readings = reading::readings(&self.fleet, &self.account);
            self.sample(&readings);
            if now / EVERY != published {
                published = now / EVERY;
                self.publish(&readings, now);
                self.cloudwatch.tick(now);
            }
        }
    }

    /// Notes how many requests are under way.
    fn sample(&mut self, readings: &[Reading]) {
        for reading in readings {
            let in_flight = reading.in_flight.iter().map(|requests| (*requests, 1.0));
            let Some(now) = Summary::of_values(in_flight) else { continue };
            for place in reading.places() {
                match self.concurrency.get_mut(place) {
                    Some(summary) => summary.merge(&now),
                    None => drop(self.concurrency.insert(place.clone(), now.clone())),
                }
            }
        }
    }

    /// Puts what was added to the counts in the seconds before `now` into the metrics.
    fn publish(&mut self, readings: &[Reading], now: u64) {
        let mut concurrency = std::mem::take(&mut self.concurrency);
        let mut added = self.added(readings);
        let mut refused = None;
        let mut metrics = self.cloudwatch.metrics();
        for reading in readings {
            let place = &reading.place;
            let added = added.remove(place).unwrap_or_default();
            for figure in figures::of(reading, &added, concurrency.remove(place)) {
                refused = record(&mut metrics, place, place.dimensions(), &figure, now).err().or(refused);
            }
            for figure in figures::of_machines(reading) {
                refused = record(&mut metrics, place, place.dimensions_of_machines(), &figure, now).err().or(refused);
            }
        }
        drop(metrics);
        if let Some(refused) = refused.filter(|_| !self.was_full) {
            warn!(reason = %refused, "some of the router's own metrics are not kept");
        }
        self.was_full = refused.is_some();
    }

    /// What was added to the counts of every place since the last time. What is seen for the first time counts from its
    /// beginning.
    fn added(&mut self, readings: &[Reading]) -> HashMap<Place, InvocationFigures> {
        let mut added: HashMap<Place, InvocationFigures> = HashMap::new();
        let mut before = HashMap::with_capacity(readings.len());
        for reading in readings {
            let figures = reading.counts.figures();
            let known = self.before.get(&reading.place);
            let since = known.map_or_else(|| figures.clone(), |known| figures.since(known));
            for place in reading.places() {
                added.entry(place.clone()).or_default().add(&since);
            }
            before.insert(reading.place.clone(), figures);
        }
        self.before = before;
        added
    }
}

impl Reading {
    /// Everywhere it counts.
    fn places(&self) -> impl Iterator<Item = &Place> {
        [&self.place].into_iter().chain(&self.within)
    }
}

/// Keeps a figure of the seconds before `now`.
fn record(
    metrics: &mut MetricStore,
    place: &Place,
    dimensions: Vec<Dimension>,
    figure: &Figure,
    now: u64,
) -> Result<(), TooManyMetrics> {
    let metric = Metric::new(&place.account, figure.namespace, figure.name, dimensions);
    metrics.record(&metric, figure.unit, place.resolution(), now.saturating_sub(1), &figure.values)
}
