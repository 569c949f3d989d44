//! Which endpoint configurations are refused, and in which words.

use serde_json::{Value, json};

use super::*;
use crate::records::Identity;
use crate::shapes::Timestamp;

fn checked(variants: Value, shadows: Value, settings: Value) -> Result<(), String> {
    let record = EndpointConfigRecord {
        identity: Identity {
            account: String::new(),
            region: String::new(),
            name: String::new(),
            arn: String::new(),
            created_at: Timestamp::from_milliseconds(0),
        },
        settings: serde_json::from_value(settings).unwrap(),
        variants: serde_json::from_value(variants).unwrap(),
        shadow_variants: serde_json::from_value(shadows).unwrap(),
    };
    check(&record).map_err(|error| error.to_string())
}

/// A variant with a model, and these members.
fn variant(members: Value) -> Value {
    let mut variant =
        json!({ "VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 2 });
    for (name, member) in members.as_object().unwrap() {
        variant[name] = member.clone();
    }
    variant.as_object_mut().unwrap().retain(|_, member| !member.is_null());
    variant
}

fn alone(members: Value) -> Result<(), String> {
    checked(json!([variant(members)]), json!([]), json!({}))
}

const ROLE: &str = "arn:aws:iam::123456789012:role/r";

/// A variant for inference components, with these members.
fn host(members: Value) -> Result<(), String> {
    let mut variant = variant(members);
    variant.as_object_mut().unwrap().remove("ModelName");
    checked(json!([variant]), json!([]), json!({ "ExecutionRoleArn": ROLE }))
}

#[test]
fn names_are_unique_among_all_variants() {
    let (one, other) = (variant(json!({})), variant(json!({ "VariantName": "V" })));
    assert_eq!(
        checked(json!([one]), json!([other]), json!({})).unwrap_err(),
        "The variant name \"V\" was non-unique within the request."
    );
}

#[test]
fn prefix_aware_needs_both_numbers_and_nothing_else_may_have_them() {
    let routing = |config: Value| alone(json!({ "RoutingConfig": config }));
    routing(json!({ "RoutingStrategy": "KV_AWARE" })).unwrap();
    let both = json!({ "PrefixLength": 4_096, "ConcurrencyThreshold": 10 });
    routing(json!({ "RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": both })).unwrap();
    let missing = "PrefixAwareRoutingConfig with PrefixLength and ConcurrencyThreshold is required for the variant \
                   \"v\" because its routing strategy is PREFIX_AWARE.";
    for parameters in [Value::Null, json!({ "PrefixLength": 4_096 }), json!({ "ConcurrencyThreshold": 10 })] {
        let config = json!({ "RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": parameters });
        assert_eq!(routing(config).unwrap_err(), missing);
    }
    let refused = routing(json!({ "RoutingStrategy": "RANDOM", "PrefixAwareRoutingConfig": both })).unwrap_err();
    assert_eq!(
        refused,
        "PrefixAwareRoutingConfig of the variant \"v\" is only supported with the routing strategy PREFIX_AWARE."
    );
}

#[test]
fn managed_scaling_is_for_components_alone() {
    let bounds = json!({ "Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4 });
    assert_eq!(
        alone(json!({ "ManagedInstanceScaling": bounds })).unwrap_err(),
        "ManagedInstanceScaling is only supported for inference component endpoints."
    );
    let serverless = json!({ "MemorySizeInMB": 1_024, "MaxConcurrency": 1 });
    assert_eq!(
        alone(json!({ "InstanceType": null, "ServerlessConfig": serverless, "ManagedInstanceScaling": bounds }))
            .unwrap_err(),
        "ManagedInstanceScaling is not supported with the given EndpointConfig setup."
    );
    host(json!({ "ManagedInstanceScaling": bounds })).unwrap();
    host(json!({ "ManagedInstanceScaling": bounds, "InitialInstanceCount": null })).unwrap();
    let crossed = json!({ "Status": "ENABLED", "MinInstanceCount": 5, "MaxInstanceCount": 4 });
    assert!(host(json!({ "ManagedInstanceScaling": crossed })).unwrap_err().starts_with("MinInstanceCount 5 of"));
    let outside = host(json!({ "ManagedInstanceScaling": bounds, "InitialInstanceCount": 9 })).unwrap_err();
    assert!(outside.starts_with("InitialInstanceCount of the variant \"v\" is not between"), "{outside}");
}

#[test]
fn components_need_a_role_and_variants_are_alike() {
    let without = variant(json!({ "ModelName": null }));
    let refused = checked(json!([without]), json!([]), json!({})).unwrap_err();
    assert!(refused.starts_with("ExecutionRoleArn is required for inference component endpoints."), "{refused}");
    let with = variant(json!({ "VariantName": "w" }));
    assert_eq!(
        checked(json!([without, with]), json!([]), json!({ "ExecutionRoleArn": ROLE })).unwrap_err(),
        "Either all of ProductionVariants have a ModelName, or none of them."
    );
}

#[test]
fn a_shadow_stands_beside_one_variant_with_a_model() {
    let named = |name: &str| variant(json!({ "VariantName": name }));
    checked(json!([named("a")]), json!([named("b")]), json!({})).unwrap();
    let wrong = "A shadow test needs exactly one of ProductionVariants and one of ShadowProductionVariants.";
    assert_eq!(checked(json!([named("a")]), json!([named("b"), named("c")]), json!({})).unwrap_err(), wrong);
    assert_eq!(checked(json!([named("a"), named("b")]), json!([named("c")]), json!({})).unwrap_err(), wrong);
    let nameless = variant(json!({ "VariantName": "b", "ModelName": null }));
    assert!(
        checked(json!([named("a")]), json!([nameless]), json!({}))
            .unwrap_err()
            .starts_with("ShadowProductionVariants are")
    );
}

#[test]
fn a_variant_says_once_what_it_runs_on() {
    let pools = json!([{ "InstanceType": "ml.g5.xlarge", "Priority": 1 }]);
    let which = "The variant \"v\" needs exactly one of InstanceType, InstancePools and ServerlessConfig.";
    assert_eq!(alone(json!({ "InstancePools": pools })).unwrap_err(), which);
    assert_eq!(alone(json!({ "InstanceType": null })).unwrap_err(), which);
    alone(json!({ "InstanceType": null, "InstancePools": pools })).unwrap();
    assert_eq!(
        alone(json!({ "InitialInstanceCount": null })).unwrap_err(),
        "The variant \"v\" needs InitialInstanceCount."
    );
    let twice = json!([pools[0], pools[0]]);
    let refused = alone(json!({ "InstanceType": null, "InstancePools": twice })).unwrap_err();
    assert_eq!(refused, "The instance type \"ml.g5.xlarge\" was non-unique within InstancePools.");
    let timeout = alone(json!({ "VariantInstanceProvisionTimeoutInSeconds": 300 })).unwrap_err();
    assert!(timeout.starts_with("VariantInstanceProvisionTimeoutInSeconds is only"), "{timeout}");
}

#[test]
fn serverless_variants_have_nothing_of_instances() {
    let serverless = |config: Value, members: Value| {
        let mut all = json!({ "InstanceType": null, "InitialInstanceCount": null, "ServerlessConfig": config });
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        alone(all)
    };
    let good = json!({ "MemorySizeInMB": 2_048, "MaxConcurrency": 5, "ProvisionedConcurrency": 5 });
    serverless(good.clone(), json!({})).unwrap();
    let counted = serverless(good.clone(), json!({ "InitialInstanceCount": 1 })).unwrap_err();
    assert!(counted.starts_with("The variant \"v\" is serverless: InitialInstanceCount"), "{counted}");
    let odd = serverless(json!({ "MemorySizeInMB": 1_500, "MaxConcurrency": 5 }), json!({})).unwrap_err();
    assert_eq!(odd, "MemorySizeInMB must be a multiple of 1024, not 1500.");
    let more = json!({ "MemorySizeInMB": 1_024, "MaxConcurrency": 5, "ProvisionedConcurrency": 6 });
    assert!(serverless(more, json!({})).unwrap_err().starts_with("ProvisionedConcurrency must not"));
}
