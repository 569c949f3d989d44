//! Every kind of constraint, with the words that AWS has for it.

use serde_json::{Value, json};

use super::check;
use crate::error::ServiceError;

fn refusal(shape: &'static str, input: Value) -> String {
    match check(shape, &input).unwrap_err() {
        ServiceError::Validation(message) => message,
        other => panic!("{other:?}"),
    }
}

fn config(variant: Value) -> Value {
    json!({ "EndpointConfigName": "c", "ProductionVariants": [variant] })
}

#[test]
fn each_kind_of_constraint_has_its_words() {
    let cases = [
        (
            "DescribeModelInput",
            json!({}),
            "Value null at 'modelName' failed to satisfy constraint: Member must not be null",
        ),
        (
            "DescribeModelInput",
            json!({ "ModelName": "a_b" }),
            "Value 'a_b' at 'modelName' failed to satisfy constraint: Member must satisfy regular expression pattern: \
             [a-zA-Z0-9]([\\-a-zA-Z0-9]*[a-zA-Z0-9])?",
        ),
        (
            "ListModelsInput",
            json!({ "SortOrder": "Up" }),
            "Value 'Up' at 'sortOrder' failed to satisfy constraint: Member must satisfy enum value set: [Ascending, \
             Descending]",
        ),
        (
            "ListModelsInput",
            json!({ "MaxResults": 0 }),
            "Value '0' at 'maxResults' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        (
            "ListModelsInput",
            json!({ "MaxResults": 101 }),
            "Value '101' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 100",
        ),
        (
            "CreateEndpointConfigInput",
            json!({ "EndpointConfigName": "c", "ProductionVariants": [] }),
            "Value '[]' at 'productionVariants' failed to satisfy constraint: Member must have length greater than or \
             equal to 1",
        ),
        (
            "CreateEndpointConfigInput",
            config(json!({ "VariantName": "v", "InitialVariantWeight": -0.5 })),
            "Value '-0.5' at 'productionVariants.1.member.initialVariantWeight' failed to satisfy constraint: Member \
             must have value greater than or equal to 0",
        ),
        (
            "CreateEndpointConfigInput",
            config(json!({ "VariantName": "v", "ModelName": "m!" })),
            "Value 'm!' at 'productionVariants.1.member.modelName' failed to satisfy constraint: Member must satisfy \
             regular expression pattern: [a-zA-Z0-9]([\\-a-zA-Z0-9]*[a-zA-Z0-9])?",
        ),
        (
            "CreateEndpointConfigInput",
            config(json!({ "VariantName": "v", "RoutingConfig": { "RoutingStrategy": "PREFIX_AWARE",
                "PrefixAwareRoutingConfig": { "PrefixLength": 1_023, "ConcurrencyThreshold": 5 } } })),
            "Value '1023' at 'productionVariants.1.member.routingConfig.prefixAwareRoutingConfig.prefixLength' failed \
             to satisfy constraint: Member must have value greater than or equal to 1024",
        ),
        (
            "CreateEndpointConfigInput",
            config(json!({ "VariantName": "v", "RoutingConfig": { "RoutingStrategy": "ADAPTIVE" } })),
            "Value 'ADAPTIVE' at 'productionVariants.1.member.routingConfig.routingStrategy' failed to satisfy \
             constraint: Member must satisfy enum value set: [LEAST_OUTSTANDING_REQUESTS, RANDOM, PREFIX_AWARE, KV_AWARE]",
        ),
        (
            "CreateEndpointConfigInput",
            json!({ "EndpointConfigName": "c", "ProductionVariants": [{ "VariantName": "v" }],
                "MetricsConfig": { "MetricPublishFrequencyInSeconds": 15 } }),
            "Value '15' at 'metricsConfig.metricPublishFrequencyInSeconds' failed to satisfy constraint: Member must \
             satisfy enum value set: [10, 30, 60, 120, 180, 240, 300]",
        ),
        (
            "CreateModelInput",
            json!({ "ModelName": "m", "PrimaryContainer": { "Environment": { "1A": "x" } } }),
            "Value '{1A=x}' at 'primaryContainer.environment' failed to satisfy constraint: Map keys must satisfy \
             constraint: [Member must have length less than or equal to 1024, Member must have length greater than or \
             equal to 0, Member must satisfy regular expression pattern: [a-zA-Z_][a-zA-Z0-9_]*]",
        ),
        (
            "AddTagsInput",
            json!({ "ResourceArn": "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/e", "Tags": [null] }),
            "Value null at 'tags.1.member' failed to satisfy constraint: Member must not be null",
        ),
    ];
    for (shape, input, expected) in cases {
        assert_eq!(refusal(shape, input), format!("1 validation error detected: {expected}"));
    }
}

#[test]
fn several_violations_stand_in_one_message() {
    let message = refusal("CreateEndpointInput", json!({ "EndpointName": "a".repeat(64), "EndpointConfigName": "-" }));
    let pattern = "Member must satisfy regular expression pattern: [a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}";
    let name = format!("Value '{}' at 'endpointName' failed to satisfy constraint:", "a".repeat(64));
    assert_eq!(
        message,
        format!(
            "3 validation errors detected: {name} Member must have length less than or equal to 63; {name} {pattern}; \
             Value '-' at 'endpointConfigName' failed to satisfy constraint: {pattern}"
        )
    );
}

#[test]
fn long_messages_have_an_end() {
    let members = vec![json!({}); 100_000];
    let message = refusal(
        "UpdateEndpointWeightsAndCapacitiesInput",
        json!({ "EndpointName": "e", "DesiredWeightsAndCapacities": members }),
    );
    assert!(message.starts_with("100000 validation errors detected: ") && message.len() < 20_000, "{}", message.len());
}

#[test]
fn values_of_another_type_are_no_violations_but_unreadable() {
    let cases = [
        (json!([]), "START_ARRAY can not be converted to a structure"),
        (json!({ "EndpointConfigName": 1 }), "NUMBER_VALUE can not be converted to a String at 'endpointConfigName'"),
        (
            config(json!({ "VariantName": "v", "InitialInstanceCount": "2" })),
            "STRING_VALUE can not be converted to an Integer at 'productionVariants.1.member.initialInstanceCount'",
        ),
        (
            config(json!({ "VariantName": "v", "InitialInstanceCount": 1.5 })),
            "DECIMAL_VALUE can not be converted to an Integer at 'productionVariants.1.member.initialInstanceCount'",
        ),
        (
            config(json!({ "VariantName": "v", "InitialInstanceCount": 4_294_967_296_u64 })),
            "NUMBER_VALUE can not be converted to an Integer at 'productionVariants.1.member.initialInstanceCount'",
        ),
        (
            config(json!({ "VariantName": "v", "InitialVariantWeight": 1e39 })),
            "DECIMAL_VALUE can not be converted to a Float at 'productionVariants.1.member.initialVariantWeight'",
        ),
        (
            json!({ "EndpointConfigName": "c", "ProductionVariants": {} }),
            "START_OBJECT can not be converted to a list at 'productionVariants'",
        ),
        (
            json!({ "EndpointConfigName": "c", "EnableNetworkIsolation": "yes" }),
            "STRING_VALUE can not be converted to a Boolean at 'enableNetworkIsolation'",
        ),
    ];
    for (input, expected) in cases {
        match check("CreateEndpointConfigInput", &input).unwrap_err() {
            ServiceError::Serialization(message) => assert_eq!(message, expected),
            other => panic!("{other:?}"),
        }
    }
    let error = check("ListModelsInput", &json!({ "CreationTimeAfter": "2026-11-30" })).unwrap_err();
    assert_eq!(error.kind(), "SerializationException");
}

#[test]
fn only_what_the_model_knows_is_kept() {
    let input = json!({ "EndpointConfigName": "c", "Unknown": 1, "KmsKeyId": null,
        "ProductionVariants": [{ "VariantName": "v", "InitialInstanceCount": 2.0, "Extra": [] }] });
    assert_eq!(
        check("CreateEndpointConfigInput", &input).unwrap(),
        json!({ "EndpointConfigName": "c", "ProductionVariants": [{ "VariantName": "v", "InitialInstanceCount": 2 }] })
    );
}

#[test]
fn instance_types_are_told_by_their_form() {
    for kind in ["ml.p5.48xlarge", "ml.p6-b200.48xlarge", "ml.g9x.metal-24xl"] {
        check("CreateEndpointConfigInput", &config(json!({ "VariantName": "v", "InstanceType": kind }))).unwrap();
    }
    let message =
        refusal("CreateEndpointConfigInput", config(json!({ "VariantName": "v", "InstanceType": "p5.48xlarge" })));
    assert!(message.contains("'productionVariants.1.member.instanceType'"), "{message}");
}
