//! Inference components: copies on instances, adapters on copies, and instances that follow the copies.

use serde_json::{Value, json};

use crate::load::{Load, post};
use crate::place::Place;

fn specification(accelerators: f64) -> Value {
    json!({
        "Container": { "Image": "vllm:1", "Environment": { "HF_MODEL_ID": "m" } },
        "ComputeResourceRequirements": {
            "NumberOfAcceleratorDevicesRequired": accelerators, "MinMemoryRequiredInMb": 1024
        }
    })
}

/// An endpoint for components on instances of four accelerators.
async fn hosts(place: &Place, count: u32, scaling: Value) {
    let mut variant = json!({ "VariantName": "v", "InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": count });
    variant.as_object_mut().unwrap().extend(scaling.as_object().unwrap().clone());
    let role = "arn:aws:iam::123456789012:role/r";
    let config = json!({ "EndpointConfigName": "hosts", "ProductionVariants": [variant], "ExecutionRoleArn": role });
    place.run("CreateEndpointConfig", config);
    place.create("hosts").await;
}

fn component(place: &Place, name: &str, copies: u32, specification: Value) {
    place.run(
        "CreateInferenceComponent",
        json!({
            "InferenceComponentName": name, "EndpointName": "ep", "VariantName": "v", "Specification": specification,
            "RuntimeConfig": { "CopyCount": copies }
        }),
    );
}

async fn settled(place: &Place, name: &str) -> Value {
    place
        .until("the component is settled", || {
            let status = place.component(name)["InferenceComponentStatus"].clone();
            status == "InService" || status == "Failed"
        })
        .await;
    place.component(name)
}

fn hosts_of(place: &Place, name: &str) -> Vec<String> {
    let topology = place.fleet.topology();
    let component = topology.endpoint("ep").unwrap().component(name).unwrap();
    component.variant.instances(place.fleet.clock().now()).iter().map(|one| one.instance.id().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_spread_scale_and_roll_without_a_failed_request() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    hosts(&place, 2, json!({})).await;
    component(&place, "llm", 2, specification(1.0));
    let described = settled(&place, "llm").await;
    assert_eq!(described["RuntimeConfig"]["CurrentCopyCount"], 2);
    assert_eq!(hosts_of(&place, "llm"), ["llm-0", "llm-1"]);

    let path = "/endpoints/ep/inference-components/llm/openai/v1/chat/completions";
    let load = Load::start(place.address(), path, 8);
    let set = |copies: u32| {
        let input = json!({ "InferenceComponentName": "llm", "DesiredRuntimeConfig": { "CopyCount": copies } });
        place.run("UpdateInferenceComponentRuntimeConfig", input);
    };
    set(4);
    assert_eq!(settled(&place, "llm").await["RuntimeConfig"]["CurrentCopyCount"], 4);
    set(1);
    assert_eq!(settled(&place, "llm").await["RuntimeConfig"]["CurrentCopyCount"], 1);
    assert_eq!(hosts_of(&place, "llm"), ["llm-0"]);

    let rolling = json!({ "RollingUpdatePolicy": {
        "MaximumBatchSize": { "Type": "COPY_COUNT", "Value": 1 }, "WaitIntervalInSeconds": 0 } });
    let other = json!({ "Container": { "Image": "vllm:2", "Environment": { "HF_MODEL_ID": "n" } },
        "ComputeResourceRequirements": { "MinMemoryRequiredInMb": 1024 } });
    let input = json!({ "InferenceComponentName": "llm", "Specification": other, "DeploymentConfig": rolling });
    place.run("UpdateInferenceComponent", input);
    settled(&place, "llm").await;
    assert_eq!(place.engines.keys(), ["123456789012.ep.ic.llm-1.r4"]);

    // Its instance goes: it moves first.
    place.scale(1).await;
    assert!(load.end().await > 20);
    place.run("DeleteInferenceComponent", json!({ "InferenceComponentName": "llm" }));
    place.until("its engine has ended", || place.engines.keys().is_empty()).await;
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_fits_nowhere_says_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    hosts(&place, 1, json!({})).await;
    component(&place, "big", 3, specification(2.0));
    let described = settled(&place, "big").await;
    assert_eq!(described["InferenceComponentStatus"], "Failed");
    let reason = described["FailureReason"].as_str().unwrap();
    assert!(reason.contains("No instance of variant v has room for a copy that needs 2 accelerators"), "{reason}");
    assert!(place.engines.keys().is_empty());
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_follow_the_copies_between_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    let scaling =
        json!({ "ManagedInstanceScaling": { "Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 3 } });
    hosts(&place, 1, scaling).await;
    component(&place, "llm", 3, specification(4.0));
    let described = settled(&place, "llm").await;
    assert_eq!(described["RuntimeConfig"]["CurrentCopyCount"], 3, "{described}");
    let variant = &place.endpoint()["ProductionVariants"][0];
    assert_eq!((&variant["DesiredInstanceCount"], &variant["CurrentInstanceCount"]), (&json!(3), &json!(3)));
    place.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_is_served_where_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    hosts(&place, 1, json!({})).await;
    component(&place, "base", 2, specification(1.0));
    settled(&place, "base").await;
    let adapter = json!({ "BaseInferenceComponentName": "base", "Container": { "ArtifactUrl": "s3://bucket/tuned" } });
    place.run(
        "CreateInferenceComponent",
        json!({ "InferenceComponentName": "tuned", "EndpointName": "ep", "Specification": adapter }),
    );
    assert_eq!(settled(&place, "tuned").await["InferenceComponentStatus"], "InService");
    let holders = || {
        let topology = place.fleet.topology();
        let component = topology.endpoint("ep")?.component("tuned")?;
        Some(component.adapter.as_ref()?.copies.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    place.until("both copies hold it", || holders().is_some_and(|copies| copies == ["base-0", "base-1"])).await;
    let path = "/endpoints/ep/inference-components/tuned/openai/v1/chat/completions";
    let body = r#"{"model":"tuned","max_tokens":2,"messages":[{"role":"user","content":"x"}]}"#;
    let answer = post(place.address(), path, body).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    place.run("DeleteInferenceComponent", json!({ "InferenceComponentName": "tuned" }));
    place.until("it is served no more", || holders().is_none()).await;
    place.close().await;
}
