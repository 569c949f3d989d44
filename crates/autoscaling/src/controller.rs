//! The loop that scales: looks at every target, decides, and changes its capacity.

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::time::Duration;

use isotherm_cloudwatch::CallingAlarm;
use tracing::{info, warn};

use crate::book::{Entry, Key};
use crate::decide::{Called, Measured, Situation, Wish, by_steps, by_tracking, together};
use crate::error::Refusal;
use crate::metrics::Gauge;
use crate::record::{Activity, ActivityStatus, Change, Policy, PolicyKind, TargetTracking};
use crate::resource::Capacity;
use crate::service::{AutoScaling, random_id, unix_time};

/// How long a metric must be too high or too low.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// For how many of the metric's periods in a row it must exceed its target before capacity is added.
    pub periods_before_out: usize,
    /// For how many seconds it must stay below nine tenths of its target before capacity is taken away.
    pub seconds_before_in: u64,
    /// How often targets are looked at, in seconds.
    pub every: u64,
}

impl Default for Pace {
    /// As Application Auto Scaling's own alarms have it: 3 periods, and 15 minutes; looked at every 10 seconds.
    fn default() -> Pace {
        Pace { periods_before_out: 3, seconds_before_in: 900, every: 10 }
    }
}

impl Pace {
    /// So many times faster, as far as metrics go: their finest period is ten seconds.
    pub fn faster(self, times: NonZeroU32) -> Pace {
        let times = times.get();
        Pace {
            periods_before_out: (self.periods_before_out / times as usize).max(1),
            seconds_before_in: self.seconds_before_in / u64::from(times),
            every: (self.every / u64::from(times)).max(1),
        }
    }
}

/// How long a target is left alone after a change that could not be, in seconds.
const PAUSE: u64 = 60;

/// Scales what is registered.
pub struct Controller {
    scaling: AutoScaling,
    pace: Pace,
    /// Since when metrics are there: they do not outlive the process.
    started: u64,
}

impl Controller {
    /// A controller that begins now.
    pub fn new(scaling: AutoScaling, pace: Pace) -> Controller {
        Controller { scaling, pace, started: unix_time() }
    }

    /// Looks at every target again and again. Never ends.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(Duration::from_secs(self.pace.every.max(1))).await;
            self.round(unix_time()).await;
        }
    }

    /// Looks at every target once.
    async fn round(&self, now: u64) {
        let keys = self.scaling.book().keys();
        for key in keys {
            if let Err(problem) = self.look_at(&key, now).await {
                warn!(resource = %key.1, problem, "not scaled");
            }
        }
    }

    async fn look_at(&self, key: &Key, now: u64) -> Result<(), String> {
        let Some(entry) = self.scaling.book().get(key).cloned() else { return Ok(()) };
        let capacity = self.scaling.resources().capacity(&entry.target.owner, &key.1).await?;
        let Some(capacity) = capacity else {
            info!(resource = %key.1, "scalable target deregistered: its resource is gone");
            return self.scaling.remove_target(key).map(drop).map_err(words);
        };
        self.complete_activities(key, capacity, now)?;
        let failed = entry.activities.front().filter(|activity| activity.status == ActivityStatus::Failed);
        if !capacity.settled || failed.is_some_and(|failed| now < failed.start + PAUSE) {
            return Ok(());
        }
        match self.decide(&entry, capacity, now) {
            Some((desired, cause)) => self.change(key, &entry, capacity, desired, cause, now).await,
            None => Ok(()),
        }
    }

    /// What the target should have, and why, if something else than it has.
    fn decide(&self, entry: &Entry, capacity: Capacity, now: u64) -> Option<(u32, String)> {
        let target = &entry.target;
        let situation = Situation {
            now,
            capacity,
            minimum: target.minimum,
            maximum: target.maximum,
            last_out: target.last_out,
            last_in: target.last_in,
        };
        match situation.by_bounds() {
            Wish::Out(minimum) => return Some((minimum, format!("minimum capacity was set to {minimum}"))),
            Wish::In(maximum) => return Some((maximum, format!("maximum capacity was set to {maximum}"))),
            Wish::Stay | Wish::Abstain => {}
        }
        let policies: Vec<&Policy> = entry.policies.values().collect();
        let wishes: Vec<(Wish, String)> = policies.iter().map(|policy| self.wish(policy, &situation)).collect();
        let only: Vec<Wish> = wishes.iter().map(|(wish, _)| wish.clone()).collect();
        let (index, desired) = together(&only, target.suspended)?;
        Some((desired, wishes[index].1.clone()))
    }

    /// What a policy wants, and why.
    fn wish(&self, policy: &Policy, situation: &Situation) -> (Wish, String) {
        match &policy.kind {
            PolicyKind::TargetTracking(tracking) => self.wish_to_track(policy, tracking, situation),
            PolicyKind::Steps(steps) => {
                let alarms = self.scaling.cloudwatch().alarms_calling(&policy.owner.account, &policy.arn);
                let Some(alarm) = alarms.first() else { return (Wish::Abstain, String::new()) };
                let CallingAlarm { name, excess, .. } = alarm;
                let wish = by_steps(steps, situation, Called { excess: excess.unwrap_or(0.0) });
                (wish, format!("monitor alarm {name} in state ALARM triggered policy {}", policy.name))
            }
        }
    }

    fn wish_to_track(&self, policy: &Policy, tracking: &TargetTracking, situation: &Situation) -> (Wish, String) {
        let gauge = Gauge::of(&tracking.metric, &policy.owner, &policy.resource);
        let span = self.pace.seconds_before_in.max(gauge.period * self.pace.periods_before_out as u64);
        let values = gauge.values(&self.scaling.cloudwatch().metrics(), span, situation.now);
        let watched_since = policy.updated.max(self.started);
        let for_in = situation.now >= watched_since + span;
        let measured = Measured { values: &values, for_out: self.pace.periods_before_out, for_in };
        let wish = by_tracking(tracking, situation, measured);
        let last = values.last().copied().flatten().map_or("no value".to_owned(), |value| format!("{value}"));
        let cause = format!(
            "policy {} keeps its metric at {}; lately it was {last}, at a capacity of {}",
            policy.name, tracking.target_value, situation.capacity.running
        );
        (wish, cause)
    }

    async fn change(
        &self,
        key: &Key,
        entry: &Entry,
        capacity: Capacity,
        desired: u32,
        cause: String,
        now: u64,
    ) -> Result<(), String> {
        let resource = &key.1;
        let done = self.scaling.resources().set_capacity(&entry.target.owner, resource, desired).await;
        let counted = resource.counted();
        let (status, message) = match &done {
            Ok(()) => (
                ActivityStatus::InProgress,
                format!(
                    "Successfully set desired {counted} to {desired}. Waiting for change to be fulfilled by sagemaker."
                ),
            ),
            Err(problem) => {
                (ActivityStatus::Failed, format!("Failed to set desired {counted} to {desired}: {problem}"))
            }
        };
        info!(%resource, from = capacity.desired, to = desired, cause, ok = done.is_ok(), "scaled");
        let end = done.is_err().then_some(now);
        let description = format!("Setting desired {counted} to {desired}.");
        let activity =
            Activity { id: random_id(), description, cause, start: now, end, status, message: Some(message) };
        let change = done.is_ok().then_some(Change { at: now, from: capacity.desired, to: desired });
        let mut book = self.scaling.book();
        if done.is_ok() {
            override_those_in_progress(&mut book, key, now)?;
        }
        book.note(key, activity, change).map_err(words)
    }

    /// Activities whose capacity is there are done.
    fn complete_activities(&self, key: &Key, capacity: Capacity, now: u64) -> Result<(), String> {
        if !capacity.settled || capacity.running != capacity.desired {
            return Ok(());
        }
        let counted = key.1.counted();
        let amended = self.scaling.book().amend(key, |activities| {
            for activity in activities.iter_mut().filter(|activity| activity.status == ActivityStatus::InProgress) {
                activity.status = ActivityStatus::Successful;
                activity.end = Some(now);
                activity.message = Some(format!(
                    "Successfully set desired {counted} to {}. Change successfully fulfilled by sagemaker.",
                    capacity.desired
                ));
            }
        });
        amended.map_err(words)
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("pace", &self.pace).finish_non_exhaustive()
    }
}

fn override_those_in_progress(book: &mut crate::book::Book, key: &Key, now: u64) -> Result<(), String> {
    let amended = book.amend(key, |activities| {
        for activity in activities.iter_mut().filter(|activity| activity.status == ActivityStatus::InProgress) {
            activity.status = ActivityStatus::Overridden;
            activity.end = Some(now);
        }
    });
    amended.map_err(words)
}

fn words(refusal: Refusal) -> String {
    refusal.message
}
