//! The life of an endpoint.

use isotherm_core::{Strategy, StrategyName};
use serde_json::{Value, json};

use super::super::fake_deployer::Bench;
use super::{ARN, ROLE, config, describe, in_service, model, variant, with};
use crate::records::Transition;
use crate::routing;

#[test]
fn an_endpoint_lives_from_creation_to_deletion() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    bench.ok("CreateEndpointConfig", config("c", json!([variant("v")])));
    let created = bench.ok("CreateEndpoint", json!({ "EndpointName": "E", "EndpointConfigName": "c" }));
    assert_eq!(created, json!({ "EndpointArn": format!("{ARN}:endpoint/e") }));
    assert_eq!(bench.times_woken(), 1);

    let told = describe(&bench);
    assert_eq!((&told["EndpointName"], &told["EndpointStatus"]), (&json!("E"), &json!("Creating")));
    let counts = |told: &Value| {
        let variant = &told["ProductionVariants"][0];
        (variant["CurrentInstanceCount"].clone(), variant["DesiredInstanceCount"].clone())
    };
    assert_eq!(counts(&told), (json!(0), json!(2)));
    assert_eq!(told["ProductionVariants"][0]["DeployedImages"][0]["SpecifiedImage"], json!("vllm:1"));

    bench.settle();
    let told = describe(&bench);
    assert_eq!((&told["EndpointStatus"], counts(&told)), (&json!("InService"), (json!(2), json!(2))));
    assert_eq!(told["EndpointConfigName"], json!("c"));
    assert_eq!(told.get("PendingDeploymentSummary"), None);

    assert_eq!(bench.ok("DeleteEndpoint", json!({ "EndpointName": "e" })), Value::Null);
    assert_eq!(describe(&bench)["EndpointStatus"], json!("Deleting"));
    assert_eq!(bench.ok("DeleteEndpoint", json!({ "EndpointName": "e" })), Value::Null, "asking again changes nothing");
    bench.settle();
    assert_eq!(
        bench.refused("DescribeEndpoint", json!({ "EndpointName": "e" })),
        format!("Could not find endpoint \"{ARN}:endpoint/e\".")
    );
}

#[test]
fn everything_is_there_after_a_restart() {
    let bench = in_service();
    bench.ok(
        "UpdateEndpointWeightsAndCapacities",
        json!({ "EndpointName": "e", "DesiredWeightsAndCapacities":
        [{ "VariantName": "v", "DesiredInstanceCount": 5 }] }),
    );
    let before = describe(&bench);
    let bench = bench.restarted();
    assert_eq!(describe(&bench), before);
    let record = bench.plane.endpoint("123456789012", "e").unwrap().unwrap();
    assert!(matches!(record.transition, Some(Transition::Adjust { .. })), "what was under way still is");
}

#[test]
fn what_an_endpoint_was_made_from_may_go() {
    let bench = in_service();
    bench.ok("DeleteModel", json!({ "ModelName": "m" }));
    bench.ok("DeleteEndpointConfig", json!({ "EndpointConfigName": "c" }));
    let record = bench.plane.endpoint("123456789012", "e").unwrap().unwrap();
    assert_eq!(record.serving.model("M").unwrap().settings.container().unwrap().image.as_deref(), Some("vllm:1"));
}

#[test]
fn names_of_endpoints_are_taken_whatever_their_case() {
    let bench = in_service();
    let again = json!({ "EndpointName": "e", "EndpointConfigName": "c" });
    assert_eq!(
        bench.refused("CreateEndpoint", again),
        format!("Cannot create already existing endpoint \"{ARN}:endpoint/e\".")
    );
    let missing = json!({ "EndpointName": "f", "EndpointConfigName": "none" });
    assert_eq!(
        bench.refused("CreateEndpoint", missing),
        format!("Could not find endpoint configuration \"{ARN}:endpoint-config/none\".")
    );
}

#[test]
fn weights_and_capacities_change() {
    let bench = in_service();
    let adjust = |desired: Value| json!({ "EndpointName": "e", "DesiredWeightsAndCapacities": desired });
    let change = json!([{ "VariantName": "V", "DesiredInstanceCount": 4, "DesiredWeight": 0.5 }]);
    let changed = bench.ok("UpdateEndpointWeightsAndCapacities", adjust(change.clone()));
    assert_eq!(changed, json!({ "EndpointArn": format!("{ARN}:endpoint/e") }));
    let told = describe(&bench);
    let variant = &told["ProductionVariants"][0];
    assert_eq!(told["EndpointStatus"], json!("Updating"));
    assert_eq!((&variant["CurrentInstanceCount"], &variant["DesiredInstanceCount"]), (&json!(2), &json!(4)));
    assert_eq!((&variant["CurrentWeight"], &variant["DesiredWeight"]), (&json!(1.0), &json!(0.5)));
    let busy = format!("Cannot update in-progress endpoint \"{ARN}:endpoint/e\".");
    assert_eq!(bench.refused("UpdateEndpointWeightsAndCapacities", adjust(change)), busy);
    let update = json!({ "EndpointName": "e", "EndpointConfigName": "other" });
    assert_eq!(bench.refused("UpdateEndpoint", update), busy);
    bench.settle();
    for (desired, message) in [
        (
            json!([{ "VariantName": "w" }]),
            "The variant name(s) \"w\" is/are not present within endpoint configuration \"c\".",
        ),
        (
            json!([{ "VariantName": "w" }, { "VariantName": "x" }]),
            "The variant name(s) \"w\", \"x\" is/are not present within endpoint configuration \"c\".",
        ),
        (
            json!([{ "VariantName": "v" }, { "VariantName": "v" }]),
            "The variant name \"v\" was non-unique within the request.",
        ),
        (
            json!([{ "VariantName": "v", "DesiredInstanceCount": 0 }]),
            "DesiredInstanceCount of the variant \"v\" must be at least 1: only variants for inference components scale \
             in to 0.",
        ),
        (
            json!([{ "VariantName": "v", "ServerlessUpdateConfig": { "MaxConcurrency": 3 } }]),
            "ServerlessUpdateConfig is not supported for the variant \"v\": it runs on instances.",
        ),
    ] {
        assert_eq!(bench.refused("UpdateEndpointWeightsAndCapacities", adjust(desired)), message);
    }
    assert_eq!(
        describe(&bench)["ProductionVariants"][0]["DesiredInstanceCount"],
        json!(4),
        "nothing of a refusal stays"
    );
}

#[test]
fn serverless_variants_change_their_concurrency() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let serverless = json!({ "MemorySizeInMB": 2_048, "MaxConcurrency": 5 });
    let one = json!({ "VariantName": "v", "ModelName": "m", "ServerlessConfig": serverless });
    bench.ok("CreateEndpointConfig", config("c", json!([one])));
    bench.ok("CreateEndpoint", json!({ "EndpointName": "e", "EndpointConfigName": "c" }));
    bench.settle();
    let adjust = |change: Value| json!({ "EndpointName": "e", "DesiredWeightsAndCapacities": [change] });
    let concurrency = json!({ "MaxConcurrency": 8, "ProvisionedConcurrency": 2 });
    bench.ok(
        "UpdateEndpointWeightsAndCapacities",
        adjust(json!({ "VariantName": "v", "ServerlessUpdateConfig": concurrency })),
    );
    let told = &describe(&bench)["ProductionVariants"][0];
    assert_eq!(told["CurrentServerlessConfig"], serverless);
    let desired = json!({ "MemorySizeInMB": 2_048, "MaxConcurrency": 8, "ProvisionedConcurrency": 2 });
    assert_eq!((&told["DesiredServerlessConfig"], told.get("DesiredInstanceCount")), (&desired, None));
    bench.settle();
    let counted = bench.refused(
        "UpdateEndpointWeightsAndCapacities",
        adjust(json!({ "VariantName": "v", "DesiredInstanceCount": 2 })),
    );
    assert_eq!(counted, "DesiredInstanceCount is not supported for the serverless variant \"v\".");
}

#[test]
fn an_update_shows_what_is_pending_and_then_serves_it() {
    let bench = in_service();
    let routing = json!({ "RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS" });
    bench.ok("CreateEndpointConfig", config("c2", json!([with(variant("v"), "RoutingConfig", routing.clone())])));
    let canary = json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": { "Type": "CANARY",
        "WaitIntervalInSeconds": 60, "CanarySize": { "Type": "CAPACITY_PERCENT", "Value": 50 } } } });
    let update = json!({ "EndpointName": "e", "EndpointConfigName": "c2", "DeploymentConfig": canary });
    bench.ok("UpdateEndpoint", update);
    let told = describe(&bench);
    assert_eq!((&told["EndpointStatus"], &told["EndpointConfigName"]), (&json!("Updating"), &json!("c")));
    let pending = &told["PendingDeploymentSummary"];
    assert_eq!(pending["EndpointConfigName"], json!("c2"));
    assert!(pending["StartTime"].is_number());
    assert_eq!(pending["ProductionVariants"][0]["InstanceType"], json!("ml.g5.xlarge"));
    assert_eq!(pending["ProductionVariants"][0]["CurrentInstanceCount"], json!(0));
    bench.settle();
    let told = describe(&bench);
    assert_eq!((&told["EndpointConfigName"], &told["LastDeploymentConfig"]), (&json!("c2"), &canary));
    assert_eq!(told["ProductionVariants"][0]["RoutingConfig"], routing);
    assert_eq!(told.get("PendingDeploymentSummary"), None);

    bench.ok("CreateEndpointConfig", config("c3", json!([variant("v")])));
    let again = json!({ "EndpointName": "e", "EndpointConfigName": "c3", "RetainDeploymentConfig": true });
    bench.ok("UpdateEndpoint", again);
    bench.settle();
    assert_eq!(describe(&bench)["LastDeploymentConfig"], canary);
}

#[test]
fn an_update_retains_what_it_is_told_to() {
    let bench = in_service();
    bench.ok(
        "UpdateEndpointWeightsAndCapacities",
        json!({ "EndpointName": "e", "DesiredWeightsAndCapacities":
        [{ "VariantName": "v", "DesiredInstanceCount": 7, "DesiredWeight": 0.25 }] }),
    );
    bench.settle();
    let desired = |told: &Value| {
        let variant = &told["ProductionVariants"][0];
        (variant["DesiredInstanceCount"].clone(), variant["DesiredWeight"].clone())
    };
    let update = |name: &str, members: Value| {
        bench.ok("CreateEndpointConfig", config(name, json!([variant("v")])));
        let mut input = json!({ "EndpointName": "e", "EndpointConfigName": name });
        input.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        bench.ok("UpdateEndpoint", input);
        bench.settle();
        desired(&describe(&bench))
    };
    assert_eq!(update("c1", json!({ "RetainAllVariantProperties": true })), (json!(7), json!(0.25)));
    let but_weight = json!({ "RetainAllVariantProperties": true,
        "ExcludeRetainedVariantProperties": [{ "VariantPropertyType": "DesiredWeight" }] });
    assert_eq!(update("c2", but_weight), (json!(7), json!(1.0)));
    assert_eq!(update("c3", json!({})), (json!(2), json!(1.0)));
}

#[test]
fn updates_that_can_not_be_are_refused() {
    let bench = in_service();
    let update = |config: &str, members: Value| {
        let mut input = json!({ "EndpointName": "e", "EndpointConfigName": config });
        input.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        bench.refused("UpdateEndpoint", input)
    };
    assert_eq!(
        update("C", json!({})),
        format!(
            "Cannot update endpoint \"{ARN}:endpoint/e\" with the endpoint configuration \"{ARN}:endpoint-config/c\" \
             because it has it already."
        )
    );
    assert_eq!(update("x", json!({})), format!("Could not find endpoint configuration \"{ARN}:endpoint-config/x\"."));
    bench.ok("CreateEndpointConfig", config("c2", json!([variant("v")])));
    let exclude = json!({ "ExcludeRetainedVariantProperties": [{ "VariantPropertyType": "DesiredWeight" }] });
    assert!(update("c2", exclude).starts_with("ExcludeRetainedVariantProperties is only supported with"));
    let both = json!({ "RetainDeploymentConfig": true, "DeploymentConfig": {} });
    assert_eq!(update("c2", both), "DeploymentConfig is not supported with RetainDeploymentConfig set to true.");
    let large = json!({ "DeploymentConfig": { "RollingUpdatePolicy": { "WaitIntervalInSeconds": 0,
        "MaximumBatchSize": { "Type": "CAPACITY_PERCENT", "Value": 60 } } } });
    assert!(update("c2", large).starts_with("MaximumBatchSize must be from 5 to 50 percent"));
    let mut host = variant("v");
    host.as_object_mut().unwrap().remove("ModelName");
    bench.ok("CreateEndpointConfig", with(config("hosts", json!([host])), "ExecutionRoleArn", json!(ROLE)));
    assert!(update("hosts", json!({})).starts_with("An endpoint can't change between"));
    bench.ok("DeleteEndpointConfig", json!({ "EndpointConfigName": "c" }));
    assert_eq!(
        update("c2", json!({})),
        format!("Could not find endpoint configuration \"{ARN}:endpoint-config/c\"."),
        "the old configuration is needed, too"
    );
}

#[test]
fn a_failed_endpoint_can_only_be_deleted() {
    let bench = in_service();
    bench.fail("e", &"long ".repeat(1_000));
    let told = describe(&bench);
    assert_eq!(told["EndpointStatus"], json!("Failed"));
    assert_eq!(told["FailureReason"].as_str().unwrap().len(), 1_024);
    bench.ok("CreateEndpointConfig", config("c2", json!([variant("v")])));
    let refused = bench.refused("UpdateEndpoint", json!({ "EndpointName": "e", "EndpointConfigName": "c2" }));
    assert_eq!(
        refused,
        format!("Cannot update endpoint \"{ARN}:endpoint/e\" because its status is Failed. It can only be deleted.")
    );
    bench.ok("DeleteEndpoint", json!({ "EndpointName": "e" }));
}

#[test]
fn endpoints_are_listed_by_status_and_time() {
    let bench = in_service();
    bench.ok("CreateEndpoint", json!({ "EndpointName": "second", "EndpointConfigName": "c" }));
    let names = |input: Value| -> Vec<String> {
        let page = bench.ok("ListEndpoints", input);
        page["Endpoints"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["EndpointName"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(json!({ "StatusEquals": "Creating" })), ["second"]);
    assert_eq!(names(json!({ "SortBy": "Status" })), ["E", "second"]);
    assert_eq!(names(json!({ "NameContains": "eco" })), ["second"]);
    assert_eq!(names(json!({ "LastModifiedTimeAfter": 4_000_000_000_u64 })), Vec::<String>::new());
    assert_eq!(names(json!({ "LastModifiedTimeBefore": 4_000_000_000_u64 })).len(), 2);
}

#[test]
fn our_strategies_are_asked_for_by_tag_or_environment() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let asking = json!({ "ModelName": "asking", "PrimaryContainer": { "Image": "vllm",
        "Environment": { "ISOTHERM_ROUTING_STRATEGY": "ADAPTIVE" } } });
    bench.ok("CreateModel", asking);
    let variants = json!([variant("plain"), with(variant("asks"), "ModelName", json!("asking"))]);
    let tag = json!([{ "Key": "isotherm:routing-strategy", "Value": "ROUND_ROBIN" }]);
    bench.ok("CreateEndpointConfig", with(config("c", variants), "Tags", tag));
    bench.ok("CreateEndpoint", json!({ "EndpointName": "e", "EndpointConfigName": "c" }));
    let record = bench.plane.endpoint("123456789012", "e").unwrap().unwrap();
    let strategies = record.serving.variants.iter().map(|variant| routing::of_variant(variant).strategy);
    assert_eq!(strategies.collect::<Vec<_>>(), [Strategy::RoundRobin, Strategy::Adaptive]);
    assert_eq!(record.serving.variants[1].strategy, Some(StrategyName::Adaptive));
}

#[test]
fn how_much_is_in_flight_is_bounded_by_tag_or_environment() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let asking = json!({ "ModelName": "asking", "PrimaryContainer": { "Image": "vllm",
        "Environment": { "ISOTHERM_MAX_IN_FLIGHT": "8" } } });
    bench.ok("CreateModel", asking);
    let variants = json!([variant("plain"), with(variant("asks"), "ModelName", json!("asking"))]);
    let tag = json!([{ "Key": "isotherm:max-in-flight", "Value": "64" }]);
    bench.ok("CreateEndpointConfig", with(config("c", variants), "Tags", tag));
    bench.ok("CreateEndpoint", json!({ "EndpointName": "e", "EndpointConfigName": "c" }));
    let record = bench.plane.endpoint("123456789012", "e").unwrap().unwrap();
    let bounds: Vec<_> = record.serving.variants.iter().filter_map(|variant| variant.max_in_flight).collect();
    assert_eq!(bounds.iter().map(|bound| bound.get()).collect::<Vec<_>>(), [64, 8]);
}

#[test]
fn what_runs_with_another_strategy_than_was_asked_for_is_said() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let routed =
        |name: &str, strategy: &str| with(variant(name), "RoutingConfig", json!({ "RoutingStrategy": strategy }));
    let variants = json!([routed("exact", "KV_AWARE"), routed("random", "RANDOM")]);
    let tag = json!([{ "Key": "isotherm:routing-strategy", "Value": "ADAPTIVE" }]);
    for (endpoint, config, said) in [
        ("silent", with(config("asked-by-tag", variants.clone()), "Tags", tag), None),
        ("told", config("c", variants), Some("KV_AWARE runs as ADAPTIVE: engines' cache events are not read yet")),
    ] {
        let name = config["EndpointConfigName"].clone();
        bench.ok("CreateEndpointConfig", config);
        bench.ok("CreateEndpoint", json!({ "EndpointName": endpoint, "EndpointConfigName": name }));
        let record = bench.plane.endpoint("123456789012", endpoint).unwrap().unwrap();
        let told: Vec<_> = record.serving.variants.iter().map(routing::runs_otherwise).collect();
        assert_eq!(told, [said, None], "{endpoint}");
    }
}
