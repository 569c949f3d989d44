//! What is counted of the router's own alerts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::labels::Labels;
pub use crate::labels::Notification;
use crate::metrics::registered;
use crate::names;
use crate::series::Family;

/// Series of alerts, there from the start so that their first count shows as an increase.
#[derive(Debug)]
pub struct AlertMetrics {
    firing: Family<Gauge>,
    notifications: Family<Counter>,
}

impl AlertMetrics {
    pub(crate) fn registered(registry: &mut Registry) -> AlertMetrics {
        let firing = registered(registry, names::ALERTS_FIRING, Family::new(Gauge::default));
        let notifications = registered(registry, names::ALERT_NOTIFICATIONS, Family::new(Counter::default));
        let metrics = AlertMetrics { firing, notifications };
        Notification::ALL.iter().for_each(|outcome| _ = metrics.of(*outcome));
        metrics
    }

    /// So many alerts of a rule fire now.
    pub fn set_firing(&self, rule: &'static str, alerts: usize) {
        let gauge = self.firing.series(Labels::default().with("alert", rule));
        gauge.set(i64::try_from(alerts).unwrap_or(i64::MAX));
    }

    /// A message was sent, or was not.
    pub fn notification(&self, outcome: Notification) {
        self.of(outcome).inc();
    }

    fn of(&self, outcome: Notification) -> Counter {
        self.notifications.series(Labels::default().with("outcome", outcome.as_str()))
    }
}
