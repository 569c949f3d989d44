//! Which alerts are pending, fire, or have just ended: a function of what the rules found, and when.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::Value;

use crate::observer::unix_seconds;

/// The labels that tell one alert of a rule from another, in order.
pub(crate) type Labels = BTreeMap<&'static str, String>;

/// What a rule found to hold now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    /// The rule's name.
    pub(crate) rule: &'static str,
    pub(crate) severity: &'static str,
    /// For how long it must hold before it fires.
    pub(crate) lasting: Duration,
    pub(crate) labels: Labels,
    /// The figures and names of its words, for whoever says them in another language.
    pub(crate) values: Value,
    /// A sentence for a headline.
    pub(crate) summary: String,
    /// What it may come from, and what helps.
    pub(crate) description: String,
}

/// How far an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It holds, not yet for long enough.
    Pending,
    /// It fires.
    Firing,
}

/// An alert as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Alert {
    #[serde(rename = "alert")]
    pub(crate) rule: &'static str,
    pub(crate) state: State,
    pub(crate) severity: &'static str,
    pub(crate) labels: Labels,
    pub(crate) values: Value,
    pub(crate) summary: String,
    pub(crate) description: String,
    /// Since when it holds, in Unix time.
    pub(crate) since: f64,
    #[serde(skip)]
    pub(crate) began: SystemTime,
    /// When it ended, for those that have just been resolved.
    #[serde(skip)]
    pub(crate) ended: Option<SystemTime>,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn {
    Fires(Alert),
    Resolved(Alert),
}

/// The alerts of one rule that a message speaks of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub(crate) rule: &'static str,
    /// Those that fire, and those that ended since the last message.
    pub(crate) alerts: Vec<Alert>,
}

/// Every alert.
#[derive(Debug, Default)]
pub(crate) struct Book {
    alerts: BTreeMap<(&'static str, Labels), Alert>,
    /// Ended since the last message.
    resolved: BTreeMap<&'static str, Vec<Alert>>,
    /// When the last message about a rule was due, and how many alerts fired then.
    told: BTreeMap<&'static str, SystemTime>,
    /// Rules whose alerts have changed since.
    changed: Vec<&'static str>,
}

impl Book {
    /// Takes in everything that holds now.
    pub(crate) fn take_in(&mut self, conditions: Vec<Condition>, now: SystemTime) -> Vec<Turn> {
        let mut before = std::mem::take(&mut self.alerts);
        let mut turns = Vec::new();
        for condition in conditions {
            let key = (condition.rule, condition.labels.clone());
            let known = before.remove(&key);
            let alert = known.map_or_else(|| Alert::begins(&condition, now), |known| known.goes_on(&condition));
            let held = now.duration_since(alert.began).unwrap_or_default();
            let mut alert = alert;
            if alert.state == State::Pending && held >= condition.lasting {
                alert.state = State::Firing;
                self.changed.push(alert.rule);
                turns.push(Turn::Fires(alert.clone()));
            }
            self.alerts.insert(key, alert);
        }
        for mut alert in before.into_values().filter(|alert| alert.state == State::Firing) {
            alert.ended = Some(now);
            self.changed.push(alert.rule);
            self.resolved.entry(alert.rule).or_default().push(alert.clone());
            turns.push(Turn::Resolved(alert));
        }
        turns
    }

    /// The rules of which a message is due: whose alerts have changed, or fire still after `repeat`.
    pub(crate) fn due(&mut self, repeat: Duration, now: SystemTime) -> Vec<Group> {
        let mut rules = std::mem::take(&mut self.changed);
        for alert in self.alerts.values().filter(|alert| alert.state == State::Firing) {
            let told = self.told.get(alert.rule).and_then(|told| now.duration_since(*told).ok());
            if told.is_some_and(|passed| passed >= repeat) {
                rules.push(alert.rule);
            }
        }
        rules.sort_unstable();
        rules.dedup();
        rules.into_iter().map(|rule| self.group(rule, now)).collect()
    }

    fn group(&mut self, rule: &'static str, now: SystemTime) -> Group {
        self.told.insert(rule, now);
        let firing = self.alerts.values().filter(|alert| alert.rule == rule && alert.state == State::Firing);
        let alerts = firing.cloned().chain(self.resolved.remove(rule).unwrap_or_default()).collect();
        Group { rule, alerts }
    }

    /// How many alerts of a rule fire.
    pub(crate) fn firing(&self, rule: &str) -> usize {
        self.alerts.values().filter(|alert| alert.rule == rule && alert.state == State::Firing).count()
    }

    /// Every alert, those that hold longest first.
    pub(crate) fn alerts(&self) -> Vec<Alert> {
        let mut alerts: Vec<Alert> = self.alerts.values().cloned().collect();
        alerts.sort_by_key(|alert| (alert.state == State::Pending, alert.began));
        alerts
    }
}

impl Alert {
    fn begins(condition: &Condition, now: SystemTime) -> Alert {
        Alert {
            rule: condition.rule,
            state: State::Pending,
            severity: condition.severity,
            labels: condition.labels.clone(),
            values: condition.values.clone(),
            summary: condition.summary.clone(),
            description: condition.description.clone(),
            since: unix_seconds(now),
            began: now,
            ended: None,
        }
    }

    /// The figures in its words are those of now.
    fn goes_on(self, condition: &Condition) -> Alert {
        let Condition { values, summary, description, .. } = condition.clone();
        Alert { values, summary, description, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn condition(instance: &str, value: u32) -> Condition {
        Condition {
            rule: "IsothermInstanceIll",
            severity: "warning",
            lasting: 60 * SECOND,
            labels: Labels::from([("instance", instance.to_owned())]),
            values: Value::from(value),
            summary: format!("{instance} is down, {value}"),
            description: String::new(),
        }
    }

    fn at(seconds: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + seconds * SECOND
    }

    #[test]
    fn an_alert_fires_once_it_has_held_for_long_enough_and_is_resolved_once() {
        let mut book = Book::default();
        assert_eq!(book.take_in(vec![condition("i", 1)], at(0)), []);
        assert_eq!(book.take_in(vec![condition("i", 2)], at(59)), []);
        assert_eq!((book.firing("IsothermInstanceIll"), book.alerts()[0].state), (0, State::Pending));
        assert!(book.due(3_600 * SECOND, at(59)).is_empty());
        let turns = book.take_in(vec![condition("i", 3)], at(60));
        assert!(matches!(&turns[..], [Turn::Fires(alert)] if alert.summary == "i is down, 3"), "{turns:?}");
        assert_eq!(book.due(3_600 * SECOND, at(60))[0].alerts.len(), 1);
        assert_eq!(book.take_in(vec![condition("i", 4)], at(65)), []);
        assert!(book.due(3_600 * SECOND, at(65)).is_empty(), "told already");
        let turns = book.take_in(Vec::new(), at(70));
        assert!(matches!(&turns[..], [Turn::Resolved(alert)] if alert.ended == Some(at(70))), "{turns:?}");
        let group = &book.due(3_600 * SECOND, at(70))[0];
        assert_eq!(group.alerts.iter().map(|alert| alert.ended).collect::<Vec<_>>(), [Some(at(70))]);
        assert!(book.due(3_600 * SECOND, at(75)).is_empty() && book.alerts().is_empty());
    }

    #[test]
    fn what_ends_before_it_fires_was_nothing_and_begins_anew() {
        let mut book = Book::default();
        book.take_in(vec![condition("i", 1)], at(0));
        assert_eq!(book.take_in(Vec::new(), at(50)), []);
        assert_eq!(book.take_in(vec![condition("i", 1)], at(70)), []);
        assert_eq!(book.alerts()[0].began, at(70));
    }

    #[test]
    fn a_message_speaks_of_all_alerts_of_its_rule_and_comes_again_after_a_while() {
        let mut book = Book::default();
        book.take_in(vec![condition("i", 1)], at(0));
        book.take_in(vec![condition("i", 1), condition("j", 1)], at(60));
        assert_eq!(book.due(100 * SECOND, at(60))[0].alerts.len(), 1);
        book.take_in(vec![condition("i", 1), condition("j", 1)], at(120));
        assert_eq!(book.due(100 * SECOND, at(120))[0].alerts.len(), 2);
        assert!(book.due(100 * SECOND, at(219)).is_empty());
        assert_eq!(book.due(100 * SECOND, at(220))[0].alerts.len(), 2);
    }
}
