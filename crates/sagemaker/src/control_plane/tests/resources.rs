//! Models, endpoint configurations and tags.

use serde_json::{Value, json};

use super::super::fake_deployer::Bench;
use super::{ARN, config, model, variant, with};

#[test]
fn a_model_is_told_as_it_was_created() {
    let bench = Bench::new();
    let input = with(model("My-Model"), "VpcConfig", json!({ "SecurityGroupIds": ["sg-1"], "Subnets": ["s-1"] }));
    assert_eq!(bench.ok("CreateModel", input.clone()), json!({ "ModelArn": format!("{ARN}:model/my-model") }));
    let mut told = bench.ok("DescribeModel", json!({ "ModelName": "my-model" }));
    let created = told.as_object_mut().unwrap().remove("CreationTime").unwrap();
    assert!(created.as_f64().is_some_and(|seconds| seconds > 1.7e9), "{created}");
    let expected = with(input, "ModelArn", json!(format!("{ARN}:model/my-model")));
    assert_eq!(told, with(expected, "EnableNetworkIsolation", json!(false)));
    assert_eq!(bench.times_woken(), 0, "a model alone is nothing to deploy");
}

#[test]
fn names_are_taken_whatever_their_case() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    assert_eq!(
        bench.refused("CreateModel", model("M")),
        format!("Cannot create already existing model \"{ARN}:model/m\".")
    );
    bench.ok("CreateEndpointConfig", config("c", json!([variant("v")])));
    assert_eq!(
        bench.refused("CreateEndpointConfig", config("C", json!([variant("v")]))),
        format!("Cannot create already existing endpoint configuration \"{ARN}:endpoint-config/c\".")
    );
}

#[test]
fn what_is_not_there_is_named_by_its_arn() {
    let bench = Bench::new();
    for (operation, member, kind) in [
        ("DescribeModel", "ModelName", "model \"model"),
        ("DeleteModel", "ModelName", "model \"model"),
        ("DescribeEndpointConfig", "EndpointConfigName", "endpoint configuration \"endpoint-config"),
        ("DeleteEndpointConfig", "EndpointConfigName", "endpoint configuration \"endpoint-config"),
        ("DescribeEndpoint", "EndpointName", "endpoint \"endpoint"),
        ("DeleteEndpoint", "EndpointName", "endpoint \"endpoint"),
        ("DescribeInferenceComponent", "InferenceComponentName", "inference component \"inference-component"),
        ("DeleteInferenceComponent", "InferenceComponentName", "inference component \"inference-component"),
    ] {
        let message = bench.refused(operation, json!({ member: "X" }));
        let (words, arn) = kind.split_once('"').unwrap();
        assert_eq!(message, format!("Could not find {words}\"{ARN}:{arn}/x\"."));
    }
    let missing = bench.refused("CreateEndpointConfig", config("c", json!([variant("v")])));
    assert_eq!(missing, format!("Could not find model \"{ARN}:model/m\"."));
}

#[test]
fn resources_belong_to_their_account() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let mut other = bench.caller.clone();
    other.account = String::from("210987654321");
    let missing = bench.plane.run(&other, "DescribeModel", &json!({ "ModelName": "m" })).unwrap_err();
    assert!(missing.to_string().contains(":210987654321:model/m"), "{missing}");
    assert_eq!(bench.plane.run(&other, "ListModels", &json!({})).unwrap(), json!({ "Models": [] }));
}

#[test]
fn an_endpoint_configuration_is_told_as_it_was_created() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let routing = json!({ "RoutingStrategy": "PREFIX_AWARE",
        "PrefixAwareRoutingConfig": { "PrefixLength": 4_096, "ConcurrencyThreshold": 10 } });
    let capture = json!({ "EnableCapture": true, "InitialSamplingPercentage": 50, "DestinationS3Uri": "s3://b/p",
        "CaptureOptions": [{ "CaptureMode": "Input" }] });
    let one = with(with(variant("v"), "RoutingConfig", routing), "VolumeSizeInGB", json!(64));
    let input = with(config("c", json!([one])), "DataCaptureConfig", capture.clone());
    bench.ok("CreateEndpointConfig", input);
    let told = bench.ok("DescribeEndpointConfig", json!({ "EndpointConfigName": "C" }));
    assert_eq!(told["ProductionVariants"], json!([with(one, "InitialVariantWeight", json!(1.0))]));
    assert_eq!(told["DataCaptureConfig"], capture);
    assert_eq!(told["EndpointConfigArn"], json!(format!("{ARN}:endpoint-config/c")));
    assert_eq!(told.get("ShadowProductionVariants"), None);
    bench.ok("DeleteEndpointConfig", json!({ "EndpointConfigName": "c" }));
    assert_eq!(bench.ok("ListEndpointConfigs", json!({})), json!({ "EndpointConfigs": [] }));
}

#[test]
fn lists_go_page_by_page() {
    let bench = Bench::new();
    for index in 0..25 {
        bench.ok("CreateModel", model(&format!("m{index:02}")));
    }
    let mut seen = Vec::new();
    let mut ask = json!({ "SortBy": "Name", "SortOrder": "Ascending" });
    loop {
        let page = bench.ok("ListModels", ask.clone());
        let names =
            page["Models"].as_array().unwrap().iter().map(|model| model["ModelName"].as_str().unwrap().to_owned());
        seen.extend(names);
        match page.get("NextToken") {
            Some(token) => ask["NextToken"] = token.clone(),
            None => break,
        }
    }
    assert_eq!(seen, (0..25).map(|index| format!("m{index:02}")).collect::<Vec<_>>());
    let refused = bench.refused("ListModels", json!({ "NextToken": "abc" }));
    assert_eq!(refused, "Invalid pagination token because \"it is not one that a list gave\".");
}

#[test]
fn tags_come_with_a_resource_and_go_with_it() {
    let bench = Bench::new();
    let arn = format!("{ARN}:model/m");
    let tag = |key: &str, value: &str| json!({ "Key": key, "Value": value });
    bench.ok("CreateModel", with(model("m"), "Tags", json!([tag("team", "a"), tag("stage", "b")])));
    let tags = || bench.ok("ListTags", json!({ "ResourceArn": arn }));
    let added = bench.ok("AddTags", json!({ "ResourceArn": arn, "Tags": [tag("stage", "c"), tag("cost", "")] }));
    assert_eq!(added, json!({ "Tags": [tag("team", "a"), tag("stage", "c"), tag("cost", "")] }));
    assert_eq!(tags(), added);
    let deleted = bench.ok("DeleteTags", json!({ "ResourceArn": arn, "TagKeys": ["team", "cost", "unknown"] }));
    assert_eq!(deleted, json!({}));
    assert_eq!(tags(), json!({ "Tags": [tag("stage", "c")] }));
    bench.ok("DeleteModel", json!({ "ModelName": "m" }));
    assert_eq!(bench.refused("ListTags", json!({ "ResourceArn": arn })), format!("Could not find model \"{arn}\"."));
    bench.ok("CreateModel", model("m"));
    assert_eq!(tags(), json!({ "Tags": [] }));
}

#[test]
fn tags_have_their_limits() {
    let bench = Bench::new();
    bench.ok("CreateModel", model("m"));
    let arn = format!("{ARN}:model/m");
    let tags = |from: usize| -> Vec<Value> {
        (from..from + 30).map(|index| json!({ "Key": format!("k{index}"), "Value": "" })).collect()
    };
    bench.ok("AddTags", json!({ "ResourceArn": arn, "Tags": tags(0) }));
    let refused = bench.refused("AddTags", json!({ "ResourceArn": arn, "Tags": tags(30) }));
    assert_eq!(refused, format!("A resource can have 50 tags; \"{arn}\" would have 60."));
    for arn in [format!("{ARN}:notebook-instance/n"), String::from("arn:aws:sagemaker:eu-west-1:000000000000:model/m")]
    {
        assert!(bench.refused("ListTags", json!({ "ResourceArn": arn })).starts_with("Could not find "));
    }
    let refused = bench.refused("ListTags", json!({ "ResourceArn": arn, "MaxResults": 49 }));
    assert!(refused.ends_with("Member must have value greater than or equal to 50"), "{refused}");
}
