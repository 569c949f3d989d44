//! The last quarter of an hour in steps: what the counters gained in each, per variant and per instance.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isotherm_core::Availability;
use isotherm_fleet::{Fleet, Variant};
use isotherm_telemetry::{InstanceCounts, VariantCounts};

use super::requests::unix_seconds;
use crate::shadow::{Name, Predicted};

/// How long a step takes.
pub(crate) const STEP: Duration = Duration::from_secs(5);

/// How many steps are kept: 15 minutes.
pub(crate) const POINTS: usize = 180;

/// A little early is in time: the ticks that lead here come once a second, never quite.
const EARLY: Duration = Duration::from_millis(500);

/// The last steps of every variant.
#[derive(Default)]
pub(crate) struct History {
    last: Option<SystemTime>,
    variants: BTreeMap<Name, VariantHistory>,
}

/// The last steps of one variant.
#[derive(Default)]
pub(crate) struct VariantHistory {
    counted: VariantCounts,
    keys: u64,
    repeats: u64,
    /// Newest last.
    points: VecDeque<VariantPoint>,
    /// By serial number, so that another life of an id begins anew.
    instances: BTreeMap<u64, InstanceHistory>,
}

/// The last steps of one instance, newest last; those since it was added.
#[derive(Default)]
struct InstanceHistory {
    counted: InstanceCounts,
    points: VecDeque<InstancePoint>,
}

/// What a variant counted within a step, and how it stood at its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct VariantPoint {
    /// The step's end, in Unix time.
    pub(crate) time: f64,
    /// How long it took.
    pub(crate) seconds: f64,
    pub(crate) counts: VariantCounts,
    /// The sum over its instances.
    pub(crate) served: InstanceCounts,
    /// Keys that were looked at, and those of them that were seen before.
    pub(crate) keys: u64,
    pub(crate) repeats: u64,
    /// What was to be cached of its requests, as far as that was predicted from their hashes.
    pub(crate) predicted: Predicted,
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
}

/// What an instance counted within a step, and how it stood at its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct InstancePoint {
    pub(crate) counts: InstanceCounts,
    pub(crate) in_flight: u32,
    /// Whether it might be chosen.
    pub(crate) available: bool,
}

impl History {
    /// The steps of a variant.
    pub(crate) fn of(&self, endpoint: &Arc<str>, variant: &Arc<str>) -> Option<&VariantHistory> {
        self.variants.get(&(Arc::clone(endpoint), Arc::clone(variant)))
    }

    /// Notes that a key of a variant was looked at.
    pub(super) fn note_key(&mut self, endpoint: &Arc<str>, variant: &Arc<str>, repeats: bool) {
        if let Some(history) = self.variants.get_mut(&(Arc::clone(endpoint), Arc::clone(variant))) {
            history.keys += 1;
            history.repeats += u64::from(repeats);
        }
    }

    /// Whether a step has passed. The first begins the count of time.
    pub(super) fn is_due(&mut self, now: SystemTime) -> bool {
        let last = *self.last.get_or_insert(now);
        // A wall clock that was set back begins anew.
        now.duration_since(last).map_or_else(
            |_| {
                self.last = Some(now);
                false
            },
            |passed| passed + EARLY >= STEP,
        )
    }

    /// Ends a step: one more point for every variant and instance that is there. Those that are gone are forgotten.
    pub(crate) fn step(&mut self, fleet: &Fleet, mut predicted: BTreeMap<Name, Predicted>, now: SystemTime) {
        let passed = self.last.replace(now).and_then(|last| now.duration_since(last).ok()).unwrap_or(STEP);
        let topology = fleet.topology();
        let mut there: BTreeMap<Name, Vec<&Arc<Variant>>> = BTreeMap::new();
        for variant in topology.variants() {
            there.entry((Arc::clone(variant.endpoint()), Arc::clone(variant.name()))).or_default().push(variant);
        }
        self.variants.retain(|name, _| there.contains_key(name));
        for (name, variants) in there {
            let now = (unix_seconds(now), passed.as_secs_f64());
            let predicted = predicted.remove(&name).unwrap_or_default();
            self.variants.entry(name).or_default().step(fleet, &variants, predicted, now);
        }
    }
}

impl VariantHistory {
    /// The last steps, oldest first, at most so many.
    pub(crate) fn points(&self, at_most: usize) -> impl ExactSizeIterator<Item = &VariantPoint> {
        last(&self.points, at_most)
    }

    /// The last steps of an instance, oldest first, at most so many. Empty while it has lived through none.
    pub(crate) fn instance(&self, serial: u64, at_most: usize) -> Vec<&InstancePoint> {
        self.instances.get(&serial).map(|instance| last(&instance.points, at_most).collect()).unwrap_or_default()
    }

    /// A deployment's two variants of one name share their counters, not their instances.
    fn step(&mut self, fleet: &Fleet, variants: &[&Arc<Variant>], predicted: Predicted, (time, seconds): (f64, f64)) {
        let counted = variants[0].metrics().counts();
        let mut point = VariantPoint {
            time,
            seconds,
            counts: counted.since(&self.counted),
            keys: std::mem::take(&mut self.keys),
            repeats: std::mem::take(&mut self.repeats),
            predicted,
            waiting: variants.iter().map(|variant| variant.waiting() as u64).sum(),
            ..VariantPoint::default()
        };
        self.counted = counted;
        let mut gone = std::mem::take(&mut self.instances);
        for one in variants.iter().flat_map(|variant| variant.instances(fleet.clock().now())) {
            let mut instance = gone.remove(&one.instance.serial()).unwrap_or_default();
            let counted = one.instance.metrics().counts();
            let counts = counted.since(&instance.counted);
            instance.counted = counted;
            point.served.add(&counts);
            point.in_flight += u64::from(one.in_flight);
            let available = one.availability == Availability::Up;
            push(&mut instance.points, InstancePoint { counts, in_flight: one.in_flight, available });
            self.instances.insert(one.instance.serial(), instance);
        }
        push(&mut self.points, point);
    }
}

fn push<T>(points: &mut VecDeque<T>, point: T) {
    if points.len() >= POINTS {
        points.pop_front();
    }
    points.push_back(point);
}

fn last<T>(points: &VecDeque<T>, at_most: usize) -> impl ExactSizeIterator<Item = &T> {
    points.range(points.len().saturating_sub(at_most)..)
}

#[cfg(test)]
mod tests;
