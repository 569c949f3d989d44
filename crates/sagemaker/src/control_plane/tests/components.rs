//! The life of an inference component.

use serde_json::{Value, json};

use super::super::fake_deployer::Bench;
use super::{ARN, ROLE, config, describe, in_service, model, variant, with};
use crate::records::ComponentTransition;

/// An endpoint `E` for inference components with a variant `v`, in service, and a model `m`.
fn host() -> Bench {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let mut host = variant("v");
    host.as_object_mut().unwrap().remove("ModelName");
    let scaling = json!({ "Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 4 });
    let variants = json!([with(host, "ManagedInstanceScaling", scaling)]);
    bench.ok("CreateEndpointConfig", with(config("c", variants), "ExecutionRoleArn", json!(ROLE)));
    bench.ok("CreateEndpoint", json!({ "EndpointName": "E", "EndpointConfigName": "c" }));
    bench.settle();
    bench
}

fn component(name: &str) -> Value {
    json!({ "InferenceComponentName": name, "EndpointName": "e", "VariantName": "v",
        "Specification": { "ModelName": "m", "ComputeResourceRequirements":
            { "MinMemoryRequiredInMb": 1_024, "NumberOfAcceleratorDevicesRequired": 1.0 } },
        "RuntimeConfig": { "CopyCount": 2 } })
}

fn adapter(name: &str, base: &str) -> Value {
    json!({ "InferenceComponentName": name, "EndpointName": "e",
        "Specification": { "BaseInferenceComponentName": base, "Container": { "ArtifactUrl": "s3://b/adapter" } } })
}

fn told(bench: &Bench, name: &str) -> Value {
    bench.ok("DescribeInferenceComponent", json!({ "InferenceComponentName": name }))
}

#[test]
fn a_component_lives_on_its_endpoint() {
    let bench = host();
    let created = bench.ok("CreateInferenceComponent", component("IC"));
    assert_eq!(created, json!({ "InferenceComponentArn": format!("{ARN}:inference-component/ic") }));
    let new = told(&bench, "ic");
    assert_eq!((&new["InferenceComponentStatus"], &new["VariantName"]), (&json!("Creating"), &json!("v")));
    assert_eq!(new["RuntimeConfig"], json!({ "DesiredCopyCount": 2, "CurrentCopyCount": 0 }));
    assert_eq!(new["Specification"], component("IC")["Specification"]);
    assert_eq!(new["EndpointArn"], json!(format!("{ARN}:endpoint/e")));
    bench.settle();

    let runtime = json!({ "InferenceComponentName": "ic", "DesiredRuntimeConfig": { "CopyCount": 3 } });
    bench.ok("UpdateInferenceComponentRuntimeConfig", runtime.clone());
    assert_eq!(told(&bench, "ic")["RuntimeConfig"], json!({ "DesiredCopyCount": 3, "CurrentCopyCount": 2 }));
    assert_eq!(
        bench.refused("UpdateInferenceComponentRuntimeConfig", runtime),
        format!(
            "Cannot update inference component \"{ARN}:inference-component/ic\" while it is in state UPDATE_RC_IN_PROGRESS"
        )
    );
    bench.settle();
    assert_eq!(told(&bench, "ic")["InferenceComponentStatus"], json!("InService"));

    assert_eq!(
        bench.refused("DeleteEndpoint", json!({ "EndpointName": "e" })),
        "Cannot delete endpoint with inference component associated. Please delete inference component and try it again."
    );
    bench.ok("DeleteInferenceComponent", json!({ "InferenceComponentName": "ic" }));
    assert_eq!(told(&bench, "ic")["InferenceComponentStatus"], json!("Deleting"));
    bench.settle();
    bench.ok("DeleteEndpoint", json!({ "EndpointName": "e" }));
}

#[test]
fn an_update_changes_what_it_names_alone() {
    let bench = host();
    bench.ok("CreateInferenceComponent", component("ic"));
    bench.settle();
    let rolling = json!({ "RollingUpdatePolicy":
        { "MaximumBatchSize": { "Type": "COPY_COUNT", "Value": 1 }, "WaitIntervalInSeconds": 0 } });
    let container = json!({ "Container": { "Image": "vllm:2", "Environment": { "A": "1" } } });
    bench.ok(
        "UpdateInferenceComponent",
        json!({ "InferenceComponentName": "ic", "Specification": container,
        "DeploymentConfig": rolling }),
    );
    let record = bench.plane.inference_component("123456789012", "ic").unwrap().unwrap();
    assert!(matches!(record.transition, Some(ComponentTransition::Update { .. })));
    bench.settle();
    let changed = told(&bench, "ic");
    let specification = &changed["Specification"];
    assert_eq!(specification.get("ModelName"), None, "the image took the model's place");
    assert_eq!(specification["Container"]["DeployedImage"]["SpecifiedImage"], json!("vllm:2"));
    assert_eq!(specification["ComputeResourceRequirements"]["MinMemoryRequiredInMb"], json!(1_024));
    assert_eq!(changed["LastDeploymentConfig"], rolling);
    assert_eq!(
        bench.refused("UpdateInferenceComponent", json!({ "InferenceComponentName": "ic" })),
        "One of Specification, Specifications and RuntimeConfig is required."
    );
    bench
        .ok("UpdateInferenceComponent", json!({ "InferenceComponentName": "ic", "RuntimeConfig": { "CopyCount": 0 } }));
    bench.settle();
    let scaled_in = told(&bench, "ic");
    assert_eq!(scaled_in["InferenceComponentStatus"], json!("InService"));
    assert_eq!(scaled_in["RuntimeConfig"], json!({ "DesiredCopyCount": 0, "CurrentCopyCount": 0 }));
}

#[test]
fn adapters_stand_on_their_base() {
    let bench = host();
    assert_eq!(
        bench.refused("CreateInferenceComponent", adapter("a", "ic")),
        format!("Could not find inference component \"{ARN}:inference-component/ic\".")
    );
    bench.ok("CreateInferenceComponent", component("ic"));
    bench.settle();
    bench.ok("CreateInferenceComponent", adapter("a", "IC"));
    bench.settle();
    let described = told(&bench, "a");
    assert_eq!((&described["VariantName"], described.get("RuntimeConfig")), (&json!("v"), None));
    assert_eq!(described["Specification"]["Container"], json!({ "ArtifactUrl": "s3://b/adapter" }));
    let runtime = json!({ "InferenceComponentName": "a", "DesiredRuntimeConfig": { "CopyCount": 1 } });
    assert!(
        bench.refused("UpdateInferenceComponentRuntimeConfig", runtime).starts_with("RuntimeConfig is not supported")
    );
    let upon = bench.refused("CreateInferenceComponent", adapter("b", "a"));
    assert_eq!(
        upon,
        format!("Inference component \"{ARN}:inference-component/a\" is an adapter and can't be the base of another.")
    );
    let refused = bench.refused("DeleteInferenceComponent", json!({ "InferenceComponentName": "ic" }));
    assert!(refused.contains("because it is the base of") && refused.contains("inference-component/a"), "{refused}");
    let moved = json!({ "InferenceComponentName": "a", "Specification": { "BaseInferenceComponentName": "other" } });
    assert_eq!(bench.refused("UpdateInferenceComponent", moved), "BaseInferenceComponentName can't be updated.");
    bench.ok("DeleteInferenceComponent", json!({ "InferenceComponentName": "a" }));
    bench.settle();
    bench.ok("DeleteInferenceComponent", json!({ "InferenceComponentName": "ic" }));
}

#[test]
fn components_that_can_not_be_are_refused() {
    let bench = host();
    let create = |input: Value| bench.refused("CreateInferenceComponent", input);
    assert_eq!(
        create(with(component("ic"), "VariantName", json!("w"))),
        "The variant name(s) \"w\" is/are not present within endpoint configuration \"c\"."
    );
    assert_eq!(
        create(with(component("ic"), "EndpointName", json!("none"))),
        format!("Could not find endpoint \"{ARN}:endpoint/none\".")
    );
    let mut copies = component("ic");
    copies.as_object_mut().unwrap().remove("RuntimeConfig");
    assert_eq!(create(copies), "RuntimeConfig with CopyCount is required.");
    bench.ok("CreateInferenceComponent", component("ic"));
    assert_eq!(
        create(component("IC")),
        format!("Cannot create already existing inference component \"{ARN}:inference-component/ic\".")
    );
    assert_eq!(
        in_service().refused("CreateInferenceComponent", component("ic")),
        format!("Endpoint \"{ARN}:endpoint/e\" can't host inference components because its variants have a ModelName.")
    );
    bench.ok("CreateEndpoint", json!({ "EndpointName": "young", "EndpointConfigName": "c" }));
    let early = create(with(component("ic2"), "EndpointName", json!("young")));
    assert!(early.ends_with("while its status is Creating. Wait until it is InService."), "{early}");
}

#[test]
fn components_are_listed_by_where_they_are() {
    let bench = host();
    bench.ok("CreateInferenceComponent", component("one"));
    bench.ok("CreateInferenceComponent", component("two"));
    let names = |input: Value| -> usize {
        bench.ok("ListInferenceComponents", input)["InferenceComponents"].as_array().unwrap().len()
    };
    assert_eq!(names(json!({})), 2);
    assert_eq!(names(json!({ "EndpointNameEquals": "E", "VariantNameEquals": "v" })), 2);
    assert_eq!(names(json!({ "EndpointNameEquals": "other" })), 0);
    assert_eq!(names(json!({ "StatusEquals": "InService" })), 0);
    bench.settle();
    assert_eq!(names(json!({ "StatusEquals": "InService", "NameContains": "tw" })), 1);
}

#[test]
fn managed_scaling_bounds_the_number_of_instances() {
    let bench = host();
    let set = |count: u32| bench.plane.set_instance_count(&bench.caller, "e", "v", count);
    let refused = set(5).unwrap_err().to_string();
    assert!(refused.ends_with("must be from 0 to 4, the bounds of its ManagedInstanceScaling, not 5."), "{refused}");
    set(0).unwrap();
    bench.settle();
    assert_eq!(describe(&bench)["ProductionVariants"][0]["CurrentInstanceCount"], json!(0));
}

#[test]
fn an_update_keeps_the_variants_that_host_components() {
    let bench = host();
    bench.ok("CreateInferenceComponent", component("ic"));
    bench.settle();
    let mut other = variant("w");
    other.as_object_mut().unwrap().remove("ModelName");
    bench.ok("CreateEndpointConfig", with(config("c2", json!([other])), "ExecutionRoleArn", json!(ROLE)));
    let refused = bench.refused("UpdateEndpoint", json!({ "EndpointName": "e", "EndpointConfigName": "c2" }));
    assert!(refused.starts_with("The variant \"v\" hosts the inference component"), "{refused}");
}
