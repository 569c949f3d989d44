//! In which steps a change goes: how much traffic moves at a time, how long each step is watched, what takes it back.

use serde::{Deserialize, Serialize};

use crate::shapes::{
    AutoRollback, BlueGreenUpdate, CapacitySize, CapacitySizeType, ComponentCapacitySizeType,
    ComponentDeploymentConfig, DeploymentConfig, RollingUpdate, TrafficRoutingType,
};

/// The steps of a change. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The share of traffic that what is new gets after each step: rising, the last one is 1.
    pub(super) steps: Vec<f64>,
    /// Whether units come and go with the traffic, batch by batch; else all new ones come before the first step, and
    /// all old ones go after the last.
    pub(super) by_batches: bool,
    /// How long each step is watched.
    pub(super) wait: u64,
    /// How long what was stays after the last step.
    pub(super) termination_wait: u64,
    /// How long all of it may take until what was goes.
    pub(super) limit: Option<u64>,
    /// How much of the traffic moves at a time when it is taken back.
    pub(super) back_step: f64,
    /// The alarms that take it back.
    pub(super) alarms: Vec<String>,
}

/// How large a change is: counts of the groups that get new units, new and old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// What it was.
    pub(super) old: u32,
    /// What it shall be.
    pub(super) new: u32,
}

impl Plan {
    /// All in one step, unwatched.
    pub(super) fn at_once() -> Plan {
        Plan {
            steps: vec![1.0],
            by_batches: false,
            wait: 0,
            termination_wait: 0,
            limit: None,
            back_step: 1.0,
            alarms: Vec::new(),
        }
    }

    /// How an endpoint of changing variants of these sizes changes. Where no variant gets new instances, there is
    /// nothing that traffic could move between: everything changes in one step, and is watched as configured.
    pub(super) fn of_endpoint(config: Option<&DeploymentConfig>, sizes: &[Size]) -> Plan {
        let Some(config) = config else { return Plan::at_once() };
        let alarms = alarms(config.auto_rollback_configuration.as_ref());
        let plan = match (&config.blue_green_update_policy, &config.rolling_update_policy) {
            (Some(blue_green), _) => Plan::blue_green(blue_green, sizes),
            (None, Some(rolling)) => Plan::rolling(rolling, sizes),
            (None, None) => Plan::at_once(),
        };
        let plan = Plan { alarms, ..plan };
        if sizes.is_empty() { Plan { steps: vec![1.0], by_batches: false, ..plan } } else { plan }
    }

    /// How a component changes; all copies at once where nothing is said.
    pub(super) fn of_component(config: Option<&ComponentDeploymentConfig>, size: Size) -> Plan {
        let Some(config) = config else { return Plan::at_once() };
        let policy = &config.rolling_update_policy;
        let size_of = |given: crate::shapes::ComponentCapacitySize| CapacitySize {
            kind: match given.kind {
                ComponentCapacitySizeType::CopyCount => CapacitySizeType::InstanceCount,
                ComponentCapacitySizeType::CapacityPercent => CapacitySizeType::CapacityPercent,
            },
            value: given.value,
        };
        let rolling = RollingUpdate {
            maximum_batch_size: size_of(policy.maximum_batch_size),
            wait_interval_in_seconds: policy.wait_interval_in_seconds,
            maximum_execution_timeout_in_seconds: policy.maximum_execution_timeout_in_seconds,
            rollback_maximum_batch_size: policy.rollback_maximum_batch_size.map(size_of),
        };
        let alarms = alarms(config.auto_rollback_configuration.as_ref());
        Plan { alarms, ..Plan::rolling(&rolling, &[size]) }
    }

    fn blue_green(policy: &BlueGreenUpdate, sizes: &[Size]) -> Plan {
        let routing = &policy.traffic_routing_configuration;
        // Percent are percent of the traffic; a number is its part of the instances, for the smallest variant: none
        // gets less than was asked for.
        let share = |size: Option<CapacitySize>| match size {
            Some(CapacitySize { kind: CapacitySizeType::CapacityPercent, value }) => {
                (f64::from(value) / 100.0).clamp(0.01, 1.0)
            }
            _ => {
                let of = |count: &Size| f64::from(units_in(size, count.new)) / f64::from(count.new.max(1));
                sizes.iter().map(of).fold(0.01, f64::max)
            }
        };
        let steps = match routing.kind {
            TrafficRoutingType::AllAtOnce => vec![1.0],
            TrafficRoutingType::Canary => match share(routing.canary_size) {
                share if share < 1.0 => vec![share, 1.0],
                _ => vec![1.0],
            },
            TrafficRoutingType::Linear => {
                let step = share(routing.linear_step_size);
                // Forty-nine steps of a forty-ninth are all, whatever the last bit says.
                let before_the_last = (1.0 / step - 1e-6).ceil() as u32 - 1;
                (1..=before_the_last).map(|n| f64::from(n) * step).chain([1.0]).collect()
            }
        };
        Plan {
            steps,
            wait: milliseconds(routing.wait_interval_in_seconds),
            termination_wait: policy.termination_wait_in_seconds.map_or(0, milliseconds),
            limit: policy.maximum_execution_timeout_in_seconds.map(milliseconds),
            ..Plan::at_once()
        }
    }

    fn rolling(policy: &RollingUpdate, sizes: &[Size]) -> Plan {
        let batches = |size: CapacitySize| {
            let of = |count: &Size| {
                let larger = count.new.max(count.old);
                larger.div_ceil(units_in(Some(size), larger))
            };
            sizes.iter().map(of).max().unwrap_or(1).max(1)
        };
        let forth = batches(policy.maximum_batch_size);
        let back = policy.rollback_maximum_batch_size.map_or(1, batches);
        Plan {
            steps: (1..=forth).map(|n| f64::from(n) / f64::from(forth)).collect(),
            by_batches: true,
            wait: milliseconds(policy.wait_interval_in_seconds),
            limit: policy.maximum_execution_timeout_in_seconds.map(milliseconds),
            back_step: 1.0 / f64::from(back),
            ..Plan::at_once()
        }
    }
}

/// How many of so many units a size means: at least one, at most all.
fn units_in(size: Option<CapacitySize>, count: u32) -> u32 {
    let units = match size {
        None => count,
        Some(CapacitySize { kind: CapacitySizeType::InstanceCount, value }) => value,
        Some(CapacitySize { kind: CapacitySizeType::CapacityPercent, value }) => {
            u32::try_from((u64::from(count) * u64::from(value)).div_ceil(100)).unwrap_or(u32::MAX)
        }
    };
    units.clamp(1, count.max(1))
}

fn milliseconds(seconds: u32) -> u64 {
    u64::from(seconds) * 1_000
}

fn alarms(rollback: Option<&AutoRollback>) -> Vec<String> {
    rollback.into_iter().flat_map(|rollback| &rollback.alarms).filter_map(|alarm| alarm.alarm_name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str, sizes: &[(u32, u32)]) -> Plan {
        let sizes: Vec<_> = sizes.iter().map(|&(old, new)| Size { old, new }).collect();
        Plan::of_endpoint(Some(&serde_json::from_str(json).unwrap()), &sizes)
    }

    fn blue_green(traffic: &str) -> String {
        format!(
            r#"{{"BlueGreenUpdatePolicy":{{"TrafficRoutingConfiguration":{traffic},"TerminationWaitInSeconds":120,
                "MaximumExecutionTimeoutInSeconds":900}},
                "AutoRollbackConfiguration":{{"Alarms":[{{"AlarmName":"slow"}}]}}}}"#
        )
    }

    #[test]
    fn traffic_moves_in_the_steps_of_the_policy() {
        let all = plan(&blue_green(r#"{"Type":"ALL_AT_ONCE","WaitIntervalInSeconds":60}"#), &[(2, 2)]);
        assert_eq!((all.steps, all.wait, all.termination_wait), (vec![1.0], 60_000, 120_000));
        assert_eq!((all.limit, all.alarms, all.by_batches), (Some(900_000), vec!["slow".to_owned()], false));
        let canary = r#"{"Type":"CANARY","WaitIntervalInSeconds":0,"CanarySize":{"Type":"INSTANCE_COUNT","Value":1}}"#;
        assert_eq!(plan(&blue_green(canary), &[(4, 4)]).steps, [0.25, 1.0]);
        let linear =
            r#"{"Type":"LINEAR","WaitIntervalInSeconds":0,"LinearStepSize":{"Type":"CAPACITY_PERCENT","Value":34}}"#;
        assert_eq!(plan(&blue_green(linear), &[(100, 100)]).steps, [0.34, 0.68, 1.0]);
        let linear =
            r#"{"Type":"LINEAR","WaitIntervalInSeconds":0,"LinearStepSize":{"Type":"INSTANCE_COUNT","Value":1}}"#;
        let forty_nine = plan(&blue_green(linear), &[(49, 49)]).steps;
        assert_eq!((forty_nine.len(), forty_nine.last()), (49, Some(&1.0)));
        assert_eq!(plan(&blue_green(linear), &[]).steps, [1.0], "nothing to move traffic between");
        assert_eq!(Plan::of_endpoint(None, &[]), Plan::at_once());
    }

    #[test]
    fn batches_come_one_after_the_other_as_many_as_the_largest_variant_needs() {
        let json = r#"{"RollingUpdatePolicy":{"MaximumBatchSize":{"Type":"CAPACITY_PERCENT","Value":50},
            "WaitIntervalInSeconds":1,"RollbackMaximumBatchSize":{"Type":"INSTANCE_COUNT","Value":1}}}"#;
        let rolling = plan(json, &[(4, 4), (1, 1)]);
        assert_eq!((rolling.steps, rolling.by_batches, rolling.back_step), (vec![0.5, 1.0], true, 0.25));
        assert_eq!(plan(json, &[(3, 5)]).steps.len(), 2, "three, then two");
    }

    #[test]
    fn copies_roll_like_instances() {
        let json = r#"{"RollingUpdatePolicy":{"MaximumBatchSize":{"Type":"COPY_COUNT","Value":1},
            "WaitIntervalInSeconds":3}}"#;
        let plan = Plan::of_component(Some(&serde_json::from_str(json).unwrap()), Size { old: 3, new: 2 });
        assert_eq!((plan.steps.len(), plan.wait, plan.back_step), (3, 3_000, 1.0));
    }
}
