//! Endpoints of models: created, changed in every way, deleted.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::load::{Load, stream};
use crate::place::Place;

const CHAT: &str = "/endpoints/ep/openai/v1/chat/completions";

fn prefix_aware() -> Value {
    let parameters = json!({ "PrefixLength": 1024, "ConcurrencyThreshold": 4 });
    json!({ "RoutingConfig": { "RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": parameters } })
}

fn blue_green(kind: &str, size: Value) -> Value {
    let mut traffic = json!({ "Type": kind, "WaitIntervalInSeconds": 1 });
    traffic.as_object_mut().unwrap().extend(size.as_object().unwrap().clone());
    json!({
        "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic, "MaximumExecutionTimeoutInSeconds": 600 },
        "AutoRollbackConfiguration": { "Alarms": [{ "AlarmName": "slow" }] }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_an_endpoint_changes_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    place.model("m");
    place.model("n");
    place.config("random", "m", 2, json!({}));
    place.config("aware", "m", 2, prefix_aware());
    place.config("other-model", "n", 2, prefix_aware());
    place.config("other-model-again", "m", 3, prefix_aware());
    place.create("random").await;
    stream(place.address(), CHAT, 0).await.unwrap();
    let first = place.engines.keys();

    let load = Load::start(place.address(), CHAT, 200);
    let some_more = async || {
        let before = load.succeeded();
        place.until("streams go on", || load.succeeded() >= before + 200).await;
    };
    some_more().await;

    // The strategy, without another instance.
    place.update("aware", Value::Null).await;
    assert_eq!(place.engines.keys(), first, "not one was started anew");
    assert_eq!(place.endpoint()["ProductionVariants"][0]["RoutingConfig"]["RoutingStrategy"], "PREFIX_AWARE");
    some_more().await;

    place.scale(4).await;
    assert_eq!(place.routed(), ["v-0", "v-1", "v-2", "v-3"]);
    some_more().await;
    place.scale(1).await;
    assert_eq!(place.routed(), ["v-0"], "the youngest left");
    place.scale(2).await;
    assert_eq!(place.engines.keys()[0], first[0], "and the oldest has lived all along");
    some_more().await;

    place.update("other-model", Value::Null).await;
    assert!(place.engines.keys().iter().all(|key| !first.contains(key)), "another model needs other instances");
    some_more().await;
    let rolling = json!({ "RollingUpdatePolicy": {
        "MaximumBatchSize": { "Type": "INSTANCE_COUNT", "Value": 1 }, "WaitIntervalInSeconds": 0 } });
    place.update("other-model-again", rolling).await;
    some_more().await;

    let variant = &place.endpoint()["ProductionVariants"][0];
    assert_eq!((&variant["CurrentInstanceCount"], &variant["CurrentWeight"]), (&json!(3), &json!(1.0)));
    assert!(variant.get("VariantStatus").is_none_or(|status| status == &json!([])), "{variant}");
    assert!(load.end().await > 1_000);

    place.run("DeleteEndpoint", json!({ "EndpointName": "ep" }));
    place.until("all engines have ended", || place.engines.keys().is_empty()).await;
    place.until("it is routed no more", || place.fleet.topology().endpoint("ep").is_none()).await;
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_shows_its_steps_and_an_alarm_takes_it_back_while_streams_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    place.model("m");
    place.model("n");
    place.config("old", "m", 2, json!({}));
    place.config("new", "n", 2, json!({}));
    place.create("old").await;
    let first = place.engines.keys();
    let load = Load::start(place.address(), CHAT, 8);

    let canary = || blue_green("CANARY", json!({ "CanarySize": { "Type": "CAPACITY_PERCENT", "Value": 50 } }));
    let update = |deployment: Value| {
        let input = json!({ "EndpointName": "ep", "EndpointConfigName": "new", "DeploymentConfig": deployment });
        place.run("UpdateEndpoint", input);
    };
    update(canary());
    place
        .until("baking", || {
            let status = &place.endpoint()["PendingDeploymentSummary"]["ProductionVariants"][0]["VariantStatus"][0];
            status["Status"] == "Baking"
        })
        .await;
    let endpoint = place.endpoint();
    assert_eq!(endpoint["EndpointStatus"], "Updating");
    assert_eq!(endpoint["ProductionVariants"][0]["CurrentWeight"], 0.5);
    assert_eq!(endpoint["PendingDeploymentSummary"]["ProductionVariants"][0]["CurrentInstanceCount"], 2);
    *place.alarm.0.lock() = true;
    place.in_service().await;
    let endpoint = place.endpoint();
    assert_eq!(endpoint["EndpointConfigName"], "old");
    assert_eq!(endpoint["FailureReason"], "Alarm slow is in state ALARM.");
    assert_eq!(place.engines.keys(), first);

    *place.alarm.0.lock() = false;
    update(canary());
    place.in_service().await;
    let endpoint = place.endpoint();
    assert_eq!((&endpoint["EndpointConfigName"], endpoint.get("FailureReason")), (&json!("new"), None));
    assert!(place.engines.keys().iter().all(|key| !first.contains(key)));
    load.end().await;
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_delivered_says_why_and_leaves_what_serves_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    place.model("m");
    place.model("broken");
    place.config("good", "m", 1, json!({}));
    place.config("bad", "broken", 1, json!({}));
    place.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "bad" }));
    place.until("failed", || place.endpoint()["EndpointStatus"] == "Failed").await;
    assert_eq!(place.endpoint()["FailureReason"], "No accelerator is free.");
    assert!(place.fleet.topology().endpoint("ep").is_none());
    place.run("DeleteEndpoint", json!({ "EndpointName": "ep" }));
    place
        .until("gone", || {
            let list = place.run("ListEndpoints", json!({}));
            list["Endpoints"].as_array().unwrap().is_empty()
        })
        .await;

    place.create("good").await;
    place.update("bad", Value::Null).await;
    let endpoint = place.endpoint();
    assert_eq!(
        (&endpoint["EndpointConfigName"], &endpoint["FailureReason"]),
        (&json!("good"), &json!("No accelerator is free."))
    );
    stream(place.address(), CHAT, 0).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(place.routed(), ["v-0"]);
    place.close().await;
}
