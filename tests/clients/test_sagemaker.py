"""SageMaker's control plane and runtime, by boto3."""

import json

import botocore.exceptions
import pytest

from aws_clients import LEAST_OUTSTANDING, PREFIX_AWARE, ROLE, Aws, Load, eventually, question, variant


@pytest.fixture(scope="module")
def chat(aws):
    return aws.deploy("chat")


def test_an_event_stream_is_read_by_boto3s_own_parser(aws, chat):
    body = {"messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 12, "stream": True}
    answer = aws.runtime.invoke_endpoint_with_response_stream(
        EndpointName=chat, ContentType="application/json", Body=json.dumps(body)
    )
    parts = [event["PayloadPart"]["Bytes"] for event in answer["Body"]]
    events = b"".join(parts).decode().split("\n\n")
    assert len(parts) > 3 and events[-2:] == ["data: [DONE]", ""]
    deltas = [json.loads(event.removeprefix("data: "))["choices"][0]["delta"] for event in events[:-2]]
    assert "".join(delta.get("content", "") for delta in deltas)
    assert answer["ContentType"].startswith("text/event-stream") and answer["InvokedProductionVariant"] == "AllTraffic"


def test_an_id_parts_the_homes_of_one_prefix(aws, chat):
    def homes(**members):
        return {aws.invoke(chat, question(number), **members)[1] for number in range(3)}

    by_id = [homes(PrefixAwareId=f"customer-{number}") for number in range(12)]
    assert all(len(instances) == 1 for instances in by_id)
    assert len(set.union(*by_id)) == 2


def test_a_target_variant_and_weights_choose_the_variant(aws):
    name = "two-variants"
    blue = variant(name, VariantName="blue", InitialVariantWeight=1)
    green = variant(name, VariantName="green", InitialVariantWeight=0)
    aws.deploy(name, blue, green)
    assert {aws.invoke(name, question(number))[0]["InvokedProductionVariant"] for number in range(5)} == {"blue"}
    assert aws.invoke(name, question(1), TargetVariant="green")[0]["InvokedProductionVariant"] == "green"
    with pytest.raises(aws.runtime.exceptions.ValidationError):
        aws.invoke(name, question(1), TargetVariant="red")

    weights = [{"VariantName": "blue", "DesiredWeight": 0}, {"VariantName": "green", "DesiredWeight": 2}]
    aws.sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=weights)
    described = aws.wait_in_service(name)["ProductionVariants"]
    assert {one["VariantName"]: one["CurrentWeight"] for one in described} == {"blue": 0, "green": 2}
    assert {aws.invoke(name, question(number))[0]["InvokedProductionVariant"] for number in range(5)} == {"green"}


def test_the_strategy_changes_under_load_and_no_request_fails(aws):
    name = aws.deploy("switched")
    before = {about: aws.invoke(name, question(1, about))[1] for about in range(12)}
    aws.sagemaker.create_endpoint_config(
        EndpointConfigName="switched-2", ProductionVariants=[variant(name, RoutingConfig=LEAST_OUTSTANDING)]
    )
    instances = aws.router.instances(name)
    with Load(aws, name) as load:
        for config in ("switched-2", name):
            aws.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=config)
            aws.wait_in_service(name)
            load.wait_for(100)
    assert load.failures == [] and load.done >= 200
    assert aws.router.instances(name) == instances
    assert {about: aws.invoke(name, question(1, about))[1] for about in range(12)} == before


def test_blue_green_and_rolling_updates_bring_new_instances_and_no_request_fails(aws):
    name = aws.deploy("renewed")
    aws.sagemaker.create_model(ModelName="renewed-2", PrimaryContainer={"Image": "vllm:2"}, ExecutionRoleArn=ROLE)
    aws.sagemaker.create_endpoint_config(EndpointConfigName="renewed-2", ProductionVariants=[variant("renewed-2")])
    half = {"Type": "CAPACITY_PERCENT", "Value": 50}
    canary = {"Type": "CANARY", "WaitIntervalInSeconds": 1, "CanarySize": half}
    policies = [
        ("renewed-2", {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": canary}}),
        (name, {"RollingUpdatePolicy": {"MaximumBatchSize": half, "WaitIntervalInSeconds": 0}}),
    ]
    with Load(aws, name) as load:
        for config, policy in policies:
            aws.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=config, DeploymentConfig=policy)
            assert aws.sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "Updating"
            described = aws.wait_in_service(name)
            assert described["EndpointConfigName"] == config and "FailureReason" not in described
            load.wait_for(100)
    assert load.failures == []


def test_kv_aware_keeps_conversations_where_their_cache_is(aws):
    name = aws.deploy("kv-aware", variant("kv-aware", RoutingConfig={"RoutingStrategy": "KV_AWARE"}))
    talks = {about: aws.invoke(name, question(0, about))[1] for about in range(8)}
    assert len(set(talks.values())) == 2
    assert {about: aws.invoke(name, question(1, about))[1] for about in range(8)} == talks


def test_a_killed_router_comes_back_with_its_endpoints_and_goes_on_with_what_was_under_way(start, tmp_path):
    flags = ("up", "--engines", "1", "--speed", "20", "--data-dir", str(tmp_path))
    router = start(*flags)
    aws = Aws(router.url)
    name = aws.deploy("kept", variant("kept", InitialInstanceCount=3))
    homes = {about: aws.invoke(name, question(1, about))[1] for about in range(8)}
    aws.sagemaker.create_endpoint(EndpointName="under-way", EndpointConfigName=name)
    router.stop()

    aws = Aws(start(*flags).url)
    assert aws.wait_in_service(name)["ProductionVariants"][0]["CurrentInstanceCount"] == 3
    assert {about: aws.invoke(name, question(1, about))[1] for about in range(8)} == homes
    aws.wait_in_service("under-way")


def test_an_alarm_takes_an_update_back(aws):
    name, cloudwatch = aws.deploy("guarded"), aws.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="errors",
        Namespace="Ours",
        MetricName="Errors",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    aws.sagemaker.create_model(ModelName="guarded-2", PrimaryContainer={"Image": "vllm:2"}, ExecutionRoleArn=ROLE)
    aws.sagemaker.create_endpoint_config(EndpointConfigName="guarded-2", ProductionVariants=[variant("guarded-2")])
    baking = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}
    policy = {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": baking},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]},
    }
    aws.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName="guarded-2", DeploymentConfig=policy)
    cloudwatch.set_alarm_state(AlarmName="errors", StateValue="ALARM", StateReason="too many")
    alarms = cloudwatch.describe_alarms(StateValue="ALARM")["MetricAlarms"]
    assert "errors" in [alarm["AlarmName"] for alarm in alarms]
    described = aws.wait_in_service(name)
    assert described["EndpointConfigName"] == name and "errors" in described["FailureReason"]
    cloudwatch.delete_alarms(AlarmNames=["errors"])


def test_asynchronous_answers_lie_where_they_were_promised(aws, chat):
    place = aws.s3 / "inputs/question.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(question(1)))
    invoke = aws.runtime.invoke_endpoint_async
    taken = invoke(EndpointName=chat, InputLocation="s3://inputs/question.json", ContentType="application/json")
    output = aws.s3 / taken["OutputLocation"].removeprefix("s3://")
    assert json.loads(eventually(lambda: output.read_bytes()))[0]["generated_text"]

    lost = invoke(EndpointName=chat, InputLocation="s3://inputs/nothing.json")
    failure = aws.s3 / lost["FailureLocation"].removeprefix("s3://")
    assert "s3://inputs/nothing.json" in eventually(failure.read_text)
    place.write_text(json.dumps({"nothing": "that an engine knows"}))
    refused = invoke(EndpointName=chat, InputLocation="s3://inputs/question.json", InferenceId="run-8")
    assert refused["InferenceId"] == "run-8"
    failure = aws.s3 / refused["FailureLocation"].removeprefix("s3://")
    assert json.loads(eventually(failure.read_text))["OriginalStatusCode"] == 400
    # boto3 itself refuses what is too little.
    with pytest.raises(aws.runtime.exceptions.ValidationError, match="requestTTLSeconds.*less than or equal to 21600"):
        invoke(EndpointName=chat, InputLocation="s3://inputs/question.json", RequestTTLSeconds=21_601)


def test_lists_come_in_pages(aws):
    names = [f"listed-{number}" for number in range(5)]
    for name in names:
        aws.sagemaker.create_model(ModelName=name, PrimaryContainer={"Image": "vllm"})
    listing = dict(NameContains="listed-", SortBy="Name", SortOrder="Ascending")
    pages = list(aws.sagemaker.get_paginator("list_models").paginate(**listing, PaginationConfig={"PageSize": 2}))
    assert [[model["ModelName"] for model in page["Models"]] for page in pages] == [names[:2], names[2:4], names[4:]]
    with pytest.raises(botocore.exceptions.ClientError, match="Invalid pagination token"):
        aws.sagemaker.list_models(NextToken="nonsense")


def test_tags_are_kept(aws, chat):
    arn = aws.sagemaker.describe_endpoint(EndpointName=chat)["EndpointArn"]
    aws.sagemaker.add_tags(
        ResourceArn=arn, Tags=[{"Key": "team", "Value": "search"}, {"Key": "stage", "Value": "test"}]
    )
    aws.sagemaker.delete_tags(ResourceArn=arn, TagKeys=["stage"])
    assert aws.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "search"}]


@pytest.mark.parametrize(
    ("operation", "members", "message"),
    [
        (
            "describe_endpoint",
            {"EndpointName": "nothing"},
            'Could not find endpoint "arn:aws:sagemaker:us-east-1:123456789012:endpoint/nothing".',
        ),
        (
            "create_endpoint",
            {"EndpointName": "nothing", "EndpointConfigName": "nothing"},
            'Could not find endpoint configuration "arn:aws:sagemaker:us-east-1:123456789012:endpoint-config/nothing".',
        ),
        (
            "create_model",
            {"ModelName": "two words", "PrimaryContainer": {"Image": "vllm"}},
            "1 validation error detected: Value 'two words' at 'modelName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: ",
        ),
        (
            "create_endpoint_config",
            {
                "EndpointConfigName": "bad",
                "ProductionVariants": [variant("llama", RoutingConfig={"RoutingStrategy": "BEST"})],
            },
            "Member must satisfy enum value set: ",
        ),
        (
            "create_endpoint_config",
            {
                "EndpointConfigName": "bad",
                "ProductionVariants": [
                    variant(
                        "llama",
                        RoutingConfig={
                            **PREFIX_AWARE,
                            "PrefixAwareRoutingConfig": {"PrefixLength": 65537, "ConcurrencyThreshold": 4},
                        },
                    )
                ],
            },
            "Member must have value less than or equal to 65536",
        ),
    ],
)
def test_refusals_are_in_awss_words(aws, operation, members, message):
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        getattr(aws.sagemaker, operation)(**members)
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert message in refused.value.response["Error"]["Message"]


def test_a_body_beyond_six_mebibytes_is_refused(aws, chat):
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        aws.runtime.invoke_endpoint(EndpointName=chat, Body=b"a" * (6 * 1024 * 1024 + 1))
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert refused.value.response["Error"]["Message"] == "HTTP content length exceeded 6291456 bytes."


def test_other_services_say_what_is_served(aws):
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        aws.client("logs").describe_log_groups()
    assert "SageMaker" in refused.value.response["Error"]["Message"]


def test_inference_components_are_placed_scaled_and_called_by_name(aws):
    aws.host("shared", instances=2)
    base = aws.place("shared", "base", copies=2)
    assert base["RuntimeConfig"]["CurrentCopyCount"] == 2

    answers = [aws.invoke("shared", question(number), InferenceComponentName="base") for number in range(4)]
    assert len({copy for _, copy in answers}) == 1
    with pytest.raises(aws.runtime.exceptions.ValidationError, match="Inference Component Name header is required"):
        aws.invoke("shared", question(1))

    aws.place("shared", "sql", BaseInferenceComponentName="base", Container={"ArtifactUrl": "s3://adapters/sql"})
    assert aws.invoke("shared", question(1), InferenceComponentName="sql")[0]["Body"].read()

    update = aws.sagemaker.update_inference_component_runtime_config
    update(InferenceComponentName="base", DesiredRuntimeConfig={"CopyCount": 4})
    aws.wait_for_copies("base", 4)
    with pytest.raises(botocore.exceptions.ClientError, match="Please delete inference component"):
        aws.sagemaker.delete_endpoint(EndpointName="shared")
    listed = aws.sagemaker.list_inference_components(EndpointNameEquals="shared", SortBy="Name", SortOrder="Ascending")
    assert [one["InferenceComponentName"] for one in listed["InferenceComponents"]] == ["base", "sql"]
    for name in ("sql", "base"):
        aws.sagemaker.delete_inference_component(InferenceComponentName=name)
        listed = aws.sagemaker.list_inference_components
        eventually(lambda: not listed(EndpointNameEquals="shared", NameContains=name)["InferenceComponents"])
    aws.sagemaker.delete_endpoint(EndpointName="shared")
