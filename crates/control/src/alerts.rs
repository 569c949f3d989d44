//! What the router itself warns of: rules over the last minutes, what fires now, and who is told.

mod book;
mod readings;
mod rules;
#[cfg(test)]
mod tests;
mod webhook;

use std::sync::Arc;
use std::time::SystemTime;

use isotherm_fleet::Fleet;
use isotherm_telemetry::Metrics;
use parking_lot::Mutex;
use tracing::{info, warn};

pub(crate) use self::book::Alert;
use self::book::{Book, Turn};
#[cfg(test)]
pub(crate) use self::readings::BaseModel;
pub(crate) use self::readings::{InstanceReading, VariantReading, take as read};
#[cfg(test)]
pub(crate) use self::rules::NAMES;
pub(crate) use self::rules::{differences, is_off};
use self::webhook::Notifier;
use crate::admin::ConfigInForce;
use crate::observer::Seen;

/// Evaluates the rules and tells of what changes. Cheap to clone: all clones see the same.
#[derive(Clone)]
pub(crate) struct Watchman {
    config: ConfigInForce,
    metrics: Arc<Metrics>,
    book: Arc<Mutex<Book>>,
    notifier: Notifier,
}

impl Watchman {
    /// A watchman who signs with the admin plane's URL.
    pub(crate) fn new(config: ConfigInForce, metrics: Arc<Metrics>, url: String) -> Watchman {
        let notifier = Notifier::new(Arc::clone(&metrics), url);
        rules::NAMES.iter().for_each(|rule| metrics.alerts().set_firing(rule, 0));
        Watchman { config, metrics, book: Arc::default(), notifier }
    }

    /// What is pending or fires now, the longest first.
    pub(crate) fn alerts(&self) -> Vec<Alert> {
        self.book.lock().alerts()
    }

    /// Evaluates every rule, and logs and sends what has begun or ended. Sends nothing itself: whoever is told is told
    /// by tasks of their own.
    pub(crate) fn look(&self, fleet: &Fleet, seen: &Seen, now: SystemTime) {
        let config = self.config.load();
        let settings = &config.alerts;
        let conditions = if settings.enabled {
            rules::check(&readings::take(fleet, seen, settings.window), settings, now)
        } else {
            Vec::new()
        };
        let mut book = self.book.lock();
        for turn in book.take_in(conditions, now) {
            tell(&turn);
        }
        for rule in rules::NAMES {
            self.metrics.alerts().set_firing(rule, book.firing(rule));
        }
        for group in book.due(settings.repeat, now) {
            self.notifier.send(&settings.webhooks, &group);
        }
    }
}

fn tell(turn: &Turn) {
    match turn {
        Turn::Fires(alert) => warn!(alert = alert.rule, "{}: {}", alert.summary, alert.description),
        Turn::Resolved(alert) => info!(alert = alert.rule, "no longer: {}", alert.summary),
    }
}
