//! All alarms: in memory, and in the store so that they outlive the process.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use isotherm_store::{Records, Store, StoreError, Table};
use tracing::info;

use super::evaluate::SPARE;
use super::{Alarm, Verdict, evaluate};
use crate::{MetricStore, Refusal, Window};

const TABLE: Table<Alarm> = Table::named("alarms");

/// The most alarms of an account.
const MOST: usize = 2_000;

/// The longest alarm, in bytes of JSON.
const LONGEST: usize = 64 << 10;

/// How long a state that was set by hand stands at least, in seconds, so that those who watch it see it.
const HELD: u64 = 10;

/// Alarms by account and name.
#[derive(Debug)]
pub(crate) struct Alarms {
    by_name: BTreeMap<(Arc<str>, String), Alarm>,
    store: Option<Arc<Store>>,
}

impl Alarms {
    /// The alarms that the store has; none, and none kept, without a store.
    pub(crate) fn open(store: Option<Arc<Store>>) -> Result<Alarms, StoreError> {
        let mut by_name = BTreeMap::new();
        if let Some(store) = &store {
            for (key, alarm) in store.read(|snapshot| snapshot.scan(&TABLE, ""))? {
                let account = key.split('/').next().unwrap_or_default();
                by_name.insert((account.into(), alarm.name.clone()), alarm);
            }
        }
        Ok(Alarms { by_name, store })
    }

    /// An alarm.
    pub(crate) fn get(&self, account: &str, name: &str) -> Option<&Alarm> {
        self.by_name.get(&(account.into(), name.to_owned()))
    }

    /// The alarm of this ARN, of an account.
    pub(crate) fn by_arn(&self, account: &str, arn: &str) -> Option<&Alarm> {
        self.after(account, None).find(|alarm| alarm.arn == arn)
    }

    /// An account's alarms by name, from after `after` on.
    pub(crate) fn after(&self, account: &str, after: Option<String>) -> impl Iterator<Item = &Alarm> {
        let from = match after {
            Some(name) => Bound::Excluded((Arc::from(account), name)),
            None => Bound::Included((Arc::from(account), String::new())),
        };
        let rest = self.by_name.range((from, Bound::Unbounded));
        rest.take_while(move |((owner, _), _)| **owner == *account).map(|(_, alarm)| alarm)
    }

    /// Keeps an alarm, in place of the one of its name.
    pub(crate) fn put(&mut self, account: &str, alarm: Alarm) -> Result<(), Refusal> {
        let key = (Arc::from(account), alarm.name.clone());
        if !self.by_name.contains_key(&key) && self.after(account, None).count() >= MOST {
            return Err(Refusal::limit(format!("There are {MOST} alarms already, which is the most; delete some.")));
        }
        if serde_json::to_vec(&alarm).map_or(0, |json| json.len()) > LONGEST {
            let message = format!("The alarm takes more than {LONGEST} bytes: name fewer metrics and dimensions.");
            return Err(Refusal::limit(message));
        }
        if let Some(store) = &self.store {
            store.write(|transaction| transaction.put(&TABLE, &stored_key(account, &alarm.name), &alarm))?;
        }
        self.by_name.insert(key, alarm);
        Ok(())
    }

    /// Takes alarms away; names that there are not are passed over.
    pub(crate) fn remove(&mut self, account: &str, names: &[&str]) -> Result<(), Refusal> {
        if let Some(store) = &self.store {
            store.write(|transaction| {
                for name in names {
                    transaction.remove(&TABLE, &stored_key(account, name))?;
                }
                Ok::<(), StoreError>(())
            })?;
        }
        for name in names {
            self.by_name.remove(&(Arc::from(account), (*name).to_owned()));
        }
        Ok(())
    }

    /// Sets a state by hand; it stands until the values say otherwise. False when there is no such alarm.
    pub(crate) fn set(
        &mut self,
        account: &str,
        name: &str,
        verdict: Verdict,
        data: Option<String>,
        now: u64,
    ) -> Result<bool, Refusal> {
        let Some(present) = self.get(account, name) else { return Ok(false) };
        let mut alarm = present.clone();
        alarm.take(verdict, data, now);
        alarm.standing.held_until = now + HELD;
        self.put(account, alarm)?;
        Ok(true)
    }

    /// Looks at the values of every alarm that is due, and keeps what has changed.
    pub(crate) fn evaluate(&mut self, metrics: &MetricStore, now: u64) -> Result<(), StoreError> {
        let mut changed = Vec::new();
        for ((account, name), alarm) in &mut self.by_name {
            if alarm.evaluate(metrics, account, now) {
                let state = alarm.standing.state.as_str();
                info!(alarm = name.as_str(), state, reason = alarm.standing.reason.as_str(), "alarm changed its state");
                changed.push((stored_key(account, name), &*alarm));
            }
        }
        match &self.store {
            Some(store) if !changed.is_empty() => store
                .write(|transaction| changed.iter().try_for_each(|(key, alarm)| transaction.put(&TABLE, key, *alarm))),
            _ => Ok(()),
        }
    }
}

impl Alarm {
    /// Looks at the values if a period has ended since the last time; tells whether the state changed.
    fn evaluate(&mut self, metrics: &MetricStore, account: &str, now: u64) -> bool {
        let period = self.watched.period();
        let end = now - now % period.min(60);
        if self.standing.evaluated_to == Some(end) || now < self.standing.held_until {
            return false;
        }
        self.standing.evaluated_to = Some(end);
        let span = period * u64::from(self.rule.evaluation_periods + SPARE);
        let window = Window { start: end.saturating_sub(span), end, period };
        let values = self.watched.values(metrics, account, window);
        let Some(verdict) = evaluate(&self.rule, &values, end) else { return false };
        let before = self.standing.state;
        let data = self.reason_data(&values, window, now);
        if verdict.state == before && self.standing.reason_data.is_some() {
            return false;
        }
        self.take(verdict, Some(data), now);
        self.standing.state != before
    }

    fn take(&mut self, verdict: Verdict, data: Option<String>, now: u64) {
        if verdict.state != self.standing.state {
            self.standing.since = now;
        }
        self.standing.state = verdict.state;
        self.standing.reason = verdict.reason;
        self.standing.reason_data = data;
        self.standing.updated = now;
    }

    /// What the state was worked out of, as CloudWatch tells it.
    fn reason_data(&self, values: &[Option<f64>], window: Window, now: u64) -> String {
        let moment = |seconds: u64| crate::document::rfc3339(seconds as f64);
        let recent: Vec<f64> = values.iter().copied().flatten().collect();
        serde_json::json!({
            "version": "1.0",
            "queryDate": moment(now),
            "startDate": moment(window.start),
            "statistic": self.watched.statistic(),
            "period": window.period,
            "recentDatapoints": recent,
            "threshold": self.rule.threshold,
        })
        .to_string()
    }
}

/// An account has twelve digits, so the first slash ends it.
fn stored_key(account: &str, name: &str) -> String {
    format!("{account}/{name}")
}
