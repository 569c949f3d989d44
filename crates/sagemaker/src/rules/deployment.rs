//! Deployments: one policy, steps that fit the fleet, and time enough for the waits.

use super::ensure;
use crate::error::ServiceError;
use crate::shapes::{
    BlueGreenUpdate, CapacitySize, CapacitySizeType, ComponentCapacitySize, ComponentCapacitySizeType,
    ComponentDeploymentConfig, DeploymentConfig, RollingUpdate, TrafficRoutingType,
};

/// Checks how a fleet of that many instances is to be changed.
pub(crate) fn check(config: &DeploymentConfig, instances: u32) -> Result<(), ServiceError> {
    let DeploymentConfig { blue_green_update_policy, rolling_update_policy, .. } = config;
    ensure(blue_green_update_policy.is_none() || rolling_update_policy.is_none(), || {
        String::from("DeploymentConfig can have BlueGreenUpdatePolicy or RollingUpdatePolicy, and not both.")
    })?;
    blue_green_update_policy.as_ref().map_or(Ok(()), |policy| blue_green(policy, instances))?;
    rolling_update_policy.as_ref().map_or(Ok(()), |policy| rolling(policy, instances))
}

/// Checks how a component of that many copies is to be changed.
pub(crate) fn check_component(config: &ComponentDeploymentConfig, copies: u32) -> Result<(), ServiceError> {
    let policy = &config.rolling_update_policy;
    within(policy.maximum_batch_size.into(), "MaximumBatchSize", 5..=50, copies)?;
    if let Some(size) = policy.rollback_maximum_batch_size {
        within(size.into(), "RollbackMaximumBatchSize", 1..=100, copies)?;
    }
    time_enough(policy.maximum_execution_timeout_in_seconds, policy.wait_interval_in_seconds)
}

fn blue_green(policy: &BlueGreenUpdate, instances: u32) -> Result<(), ServiceError> {
    let traffic = &policy.traffic_routing_configuration;
    let (canary, linear) = (traffic.canary_size, traffic.linear_step_size);
    match (traffic.kind, canary, linear) {
        (TrafficRoutingType::AllAtOnce, None, None) => {}
        (TrafficRoutingType::Canary, Some(size), None) => within(size.into(), "CanarySize", 1..=50, instances)?,
        (TrafficRoutingType::Linear, None, Some(size)) => within(size.into(), "LinearStepSize", 10..=50, instances)?,
        (kind, ..) => {
            let needs = match kind {
                TrafficRoutingType::AllAtOnce => "ALL_AT_ONCE takes neither CanarySize nor LinearStepSize",
                TrafficRoutingType::Canary => "CANARY needs CanarySize and takes no LinearStepSize",
                TrafficRoutingType::Linear => "LINEAR needs LinearStepSize and takes no CanarySize",
            };
            return Err(ServiceError::Validation(format!("TrafficRoutingConfiguration of type {needs}.")));
        }
    }
    let waits = traffic.wait_interval_in_seconds + policy.termination_wait_in_seconds.unwrap_or(0);
    time_enough(policy.maximum_execution_timeout_in_seconds, waits)
}

fn rolling(policy: &RollingUpdate, instances: u32) -> Result<(), ServiceError> {
    within(policy.maximum_batch_size.into(), "MaximumBatchSize", 5..=50, instances)?;
    if let Some(size) = policy.rollback_maximum_batch_size {
        within(size.into(), "RollbackMaximumBatchSize", 1..=100, instances)?;
    }
    time_enough(policy.maximum_execution_timeout_in_seconds, policy.wait_interval_in_seconds)
}

/// A number of instances or copies, or a share of them in percent.
#[derive(Clone, Copy)]
enum Size {
    Count(u32),
    Percent(u32),
}

impl From<CapacitySize> for Size {
    fn from(size: CapacitySize) -> Size {
        match size.kind {
            CapacitySizeType::InstanceCount => Size::Count(size.value),
            CapacitySizeType::CapacityPercent => Size::Percent(size.value),
        }
    }
}

impl From<ComponentCapacitySize> for Size {
    fn from(size: ComponentCapacitySize) -> Size {
        match size.kind {
            ComponentCapacitySizeType::CopyCount => Size::Count(size.value),
            ComponentCapacitySizeType::CapacityPercent => Size::Percent(size.value),
        }
    }
}

/// Whether a step is within a share of the whole, in percent. One is always few enough: a fleet of one has no half.
fn within(size: Size, member: &str, share: std::ops::RangeInclusive<u32>, whole: u32) -> Result<(), ServiceError> {
    let (least, most) = (*share.start(), *share.end());
    let fits = match size {
        Size::Percent(percent) => share.contains(&percent),
        Size::Count(count) => {
            let hundredfold = u64::from(count) * 100;
            let enough = hundredfold >= u64::from(whole) * u64::from(least);
            enough && (count <= 1 || hundredfold <= u64::from(whole) * u64::from(most))
        }
    };
    ensure(fits, || {
        let given = match size {
            Size::Percent(percent) => format!("{percent} percent"),
            Size::Count(count) => format!("{count} of {whole}"),
        };
        format!("{member} must be from {least} to {most} percent of the capacity, not {given}.")
    })
}

fn time_enough(timeout: Option<u32>, waits: u32) -> Result<(), ServiceError> {
    ensure(timeout.is_none_or(|timeout| timeout >= waits), || {
        format!("MaximumExecutionTimeoutInSeconds must be at least the {waits} seconds that the deployment waits.")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(config: Value, instances: u32) -> Result<(), String> {
        check(&serde_json::from_value(config).unwrap(), instances).map_err(|error| error.to_string())
    }

    fn traffic(traffic: Value, instances: u32) -> Result<(), String> {
        let mut configuration = json!({ "WaitIntervalInSeconds": 600 });
        configuration.as_object_mut().unwrap().extend(traffic.as_object().unwrap().clone());
        let policy = json!({ "TrafficRoutingConfiguration": configuration, "TerminationWaitInSeconds": 300,
            "MaximumExecutionTimeoutInSeconds": 900 });
        checked(json!({ "BlueGreenUpdatePolicy": policy }), instances)
    }

    fn percent(value: u32) -> Value {
        json!({ "Type": "CAPACITY_PERCENT", "Value": value })
    }

    fn count(value: u32) -> Value {
        json!({ "Type": "INSTANCE_COUNT", "Value": value })
    }

    #[test]
    fn traffic_moves_in_the_steps_of_its_type() {
        traffic(json!({ "Type": "ALL_AT_ONCE" }), 1).unwrap();
        traffic(json!({ "Type": "CANARY", "CanarySize": percent(50) }), 2).unwrap();
        traffic(json!({ "Type": "CANARY", "CanarySize": count(1) }), 1).unwrap();
        traffic(json!({ "Type": "LINEAR", "LinearStepSize": count(3) }), 10).unwrap();
        for (config, message) in [
            (json!({ "Type": "ALL_AT_ONCE", "CanarySize": percent(5) }), "ALL_AT_ONCE takes neither"),
            (json!({ "Type": "CANARY" }), "CANARY needs CanarySize and takes no LinearStepSize"),
            (json!({ "Type": "LINEAR", "CanarySize": percent(5) }), "LINEAR needs LinearStepSize"),
            (
                json!({ "Type": "CANARY", "CanarySize": percent(51) }),
                "CanarySize must be from 1 to 50 percent of the capacity, not 51 percent.",
            ),
            (
                json!({ "Type": "CANARY", "CanarySize": count(6) }),
                "CanarySize must be from 1 to 50 percent of the capacity, not 6 of 10.",
            ),
            (json!({ "Type": "LINEAR", "LinearStepSize": percent(9) }), "LinearStepSize must be from 10 to 50 percent"),
        ] {
            let refused = traffic(config, 10).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }

    #[test]
    fn batches_are_a_part_and_waits_fit() {
        let rolling = |size: Value, timeout: u32| {
            let policy = json!({ "MaximumBatchSize": size, "WaitIntervalInSeconds": 1_000,
                "MaximumExecutionTimeoutInSeconds": timeout });
            checked(json!({ "RollingUpdatePolicy": policy }), 10)
        };
        rolling(percent(5), 1_000).unwrap();
        rolling(count(5), 1_000).unwrap();
        assert!(rolling(count(6), 1_000).unwrap_err().starts_with("MaximumBatchSize must be from 5 to 50 percent"));
        assert_eq!(
            rolling(percent(50), 999).unwrap_err(),
            "MaximumExecutionTimeoutInSeconds must be at least the 1000 seconds that the deployment waits."
        );
    }

    #[test]
    fn there_is_one_policy() {
        let both = json!({
            "BlueGreenUpdatePolicy": {
                "TrafficRoutingConfiguration": { "Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0 } },
            "RollingUpdatePolicy": { "MaximumBatchSize": percent(50), "WaitIntervalInSeconds": 0 },
        });
        assert!(checked(both, 2).unwrap_err().contains("and not both"));
        checked(json!({ "AutoRollbackConfiguration": { "Alarms": [{ "AlarmName": "a" }] } }), 2).unwrap();
    }

    #[test]
    fn batches_of_copies_have_the_same_bounds() {
        let config = |size: Value| {
            let config = json!({ "RollingUpdatePolicy": { "MaximumBatchSize": size, "WaitIntervalInSeconds": 0 } });
            check_component(&serde_json::from_value(config).unwrap(), 4).map_err(|error| error.to_string())
        };
        config(json!({ "Type": "COPY_COUNT", "Value": 2 })).unwrap();
        assert!(config(json!({ "Type": "COPY_COUNT", "Value": 3 })).unwrap_err().contains("not 3 of 4"));
    }
}
