"""The AWS CLI with the newest service models: the commands of AWS's own guides."""

import json
import os
import pathlib
import subprocess
import sys

import botocore
import pytest

from aws_clients import LEAST_OUTSTANDING, PREFIX_AWARE, ROLE, Load, eventually, question, variant


@pytest.fixture(scope="module")
def cli(aws):
    """Runs `aws …`. The CLI's own models are older than PREFIX_AWARE, so it is given boto3's."""
    program = pathlib.Path(sys.executable).with_name("aws")
    environment = {
        **os.environ,
        **aws.environment,
        "AWS_DATA_PATH": str(pathlib.Path(botocore.__file__).parent / "data"),
    }

    def run(*arguments, fails=False):
        command = [sys.executable, str(program), *arguments]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (ended.returncode != 0) is fails, ended.stdout + ended.stderr
        return ended.stderr if fails else json.loads(ended.stdout or "null")

    return run


def test_an_endpoint_from_its_creation_to_its_end(cli, tmp_path):
    assert cli("sts", "get-caller-identity")["Account"] == "123456789012"
    cli(
        "sagemaker",
        "create-model",
        "--model-name",
        "cli",
        "--execution-role-arn",
        ROLE,
        "--primary-container",
        "Image=vllm,Environment={HF_MODEL_ID=llama}",
    )
    cli(
        "sagemaker",
        "create-endpoint-config",
        "--endpoint-config-name",
        "cli",
        "--production-variants",
        json.dumps([variant("cli")]),
    )
    cli("sagemaker", "create-endpoint", "--endpoint-name", "cli", "--endpoint-config-name", "cli")
    cli("sagemaker", "wait", "endpoint-in-service", "--endpoint-name", "cli")
    described = cli("sagemaker", "describe-endpoint", "--endpoint-name", "cli")
    assert described["ProductionVariants"][0]["RoutingConfig"] == PREFIX_AWARE

    answer = tmp_path / "answer.json"
    told = cli(
        "sagemaker-runtime",
        "invoke-endpoint",
        "--endpoint-name",
        "cli",
        "--prefix-aware-id",
        "customer-1",
        "--content-type",
        "application/json",
        "--body",
        json.dumps(question(1)),
        str(answer),
    )
    assert told["InvokedProductionVariant"] == "AllTraffic"
    assert json.loads(answer.read_text())[0]["generated_text"]

    desired = "VariantName=AllTraffic,DesiredInstanceCount=3"
    cli(
        "sagemaker",
        "update-endpoint-weights-and-capacities",
        "--endpoint-name",
        "cli",
        "--desired-weights-and-capacities",
        desired,
    )
    listed = cli("sagemaker", "list-endpoints", "--name-contains", "cli", "--max-items", "1")
    assert listed["Endpoints"][0]["EndpointName"] == "cli"
    cli("sagemaker", "delete-endpoint", "--endpoint-name", "cli")
    refused = cli("sagemaker", "delete-endpoint-config", "--endpoint-config-name", "nothing", fails=True)
    assert "ValidationException" in refused and "Could not find endpoint configuration" in refused


@pytest.fixture
def invoke(cli, tmp_path):
    """`aws sagemaker-runtime invoke-endpoint`: what it tells, and the answer."""

    def invoke(endpoint, body, *options, **how):
        answer = tmp_path / "answer.json"
        members = ["--endpoint-name", endpoint, "--content-type", "application/json", "--body", json.dumps(body)]
        told = cli("sagemaker-runtime", "invoke-endpoint", *members, *options, str(answer), **how)
        return told, None if how else answer.read_text()

    return invoke


def in_service(cli, endpoint):
    """As `aws sagemaker wait` does, which looks every 30 seconds only."""
    describe = ("sagemaker", "describe-endpoint", "--endpoint-name", endpoint)
    return eventually(lambda: (seen := cli(*describe))["EndpointStatus"] == "InService" and seen, within=60)


def test_a_strategy_switches_and_instances_come_and_go_under_load(aws, cli):
    name = aws.deploy("cli-changed")
    even = json.dumps([variant(name, RoutingConfig=LEAST_OUTSTANDING)])
    create = ("sagemaker", "create-endpoint-config", "--endpoint-config-name")
    cli(*create, "cli-even", "--production-variants", even)
    instances = aws.router.instances(name)
    with Load(aws, name) as load:
        for config, strategy in (("cli-even", LEAST_OUTSTANDING), (name, PREFIX_AWARE)):
            update = ("sagemaker", "update-endpoint", "--endpoint-name", name)
            cli(*update, "--endpoint-config-name", config)
            assert in_service(cli, name)["ProductionVariants"][0]["RoutingConfig"] == strategy
            load.wait_for(20)
        assert aws.router.instances(name) == instances, "no instance was started anew"
        for count in (3, 1):
            scale = ("sagemaker", "update-endpoint-weights-and-capacities", "--endpoint-name", name)
            cli(*scale, "--desired-weights-and-capacities", f"VariantName=AllTraffic,DesiredInstanceCount={count}")
            assert in_service(cli, name)["ProductionVariants"][0]["CurrentInstanceCount"] == count
            load.wait_for(20)
    assert load.failures == [] and load.done >= 80


def test_a_session_begins_stays_and_is_closed(aws, invoke):
    name = aws.deploy("cli-session")
    told, _ = invoke(name, {"requestType": "NEW_SESSION"}, "--session-id", "NEW_SESSION")
    session, expires = told["NewSessionId"].split("; Expires=")
    assert len(expires) == len("2026-11-30T00:00:00Z")
    assert json.loads(invoke(name, question(1), "--session-id", session)[1])[0]["generated_text"]
    closed, _ = invoke(name, {"requestType": "CLOSE"}, "--session-id", session)
    assert closed["ClosedSessionId"] == session
    refused, _ = invoke(name, question(1), "--session-id", session, fails=True)
    assert f"(ValidationError) when calling the InvokeEndpoint operation: Session {session} of endpoint" in refused


def test_variants_attributes_and_errors(aws, invoke):
    name = "cli-variants"
    blue = variant(name, VariantName="blue", InitialVariantWeight=1, InitialInstanceCount=1)
    green = variant(name, VariantName="green", InitialVariantWeight=0, InitialInstanceCount=1)
    aws.deploy(name, blue, green)
    assert invoke(name, question(1))[0]["InvokedProductionVariant"] == "blue"
    options = ["--target-variant", "green", "--custom-attributes", "trace=1", "--inference-id", "run-7"]
    assert invoke(name, question(1), *options)[0]["InvokedProductionVariant"] == "green"

    unknown, _ = invoke(name, question(1), "--target-variant", "red", fails=True)
    assert f"(ValidationError) when calling the InvokeEndpoint operation: Variant red of endpoint {name}" in unknown
    model, _ = invoke(name, {"nothing": "that an engine knows"}, fails=True)
    assert "(ModelError)" in model and "Received client error (400) from primary" in model


def test_a_component_is_placed_scaled_and_called(cli, invoke):
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2}
    hosts = variant(None, InitialInstanceCount=1, ManagedInstanceScaling=scaling)
    del hosts["ModelName"]
    create = ("sagemaker", "create-endpoint-config", "--endpoint-config-name", "cli-hosts")
    cli(*create, "--execution-role-arn", ROLE, "--production-variants", json.dumps([hosts]))
    cli("sagemaker", "create-endpoint", "--endpoint-name", "cli-hosts", "--endpoint-config-name", "cli-hosts")
    in_service(cli, "cli-hosts")
    name = ("--inference-component-name", "cli-component")
    needs = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    specification = {"Container": {"Image": "vllm"}, "ComputeResourceRequirements": needs}
    place = ("--endpoint-name", "cli-hosts", "--variant-name", "AllTraffic", "--runtime-config", "CopyCount=1")
    cli("sagemaker", "create-inference-component", *name, *place, "--specification", json.dumps(specification))

    def copies(count):
        described = cli("sagemaker", "describe-inference-component", *name)
        there = described["RuntimeConfig"]["CurrentCopyCount"] == count
        return described["InferenceComponentStatus"] == "InService" and there

    eventually(lambda: copies(1), within=60)
    assert json.loads(invoke("cli-hosts", question(1), *name)[1])[0]["generated_text"]
    scale = ("sagemaker", "update-inference-component-runtime-config", *name)
    cli(*scale, "--desired-runtime-config", "CopyCount=2")
    eventually(lambda: copies(2), within=60)
    refused, _ = invoke("cli-hosts", question(1), fails=True)
    assert "Inference Component Name header is required" in refused
    listed = cli("sagemaker", "list-inference-components", "--endpoint-name-equals", "cli-hosts")
    assert [one["InferenceComponentName"] for one in listed["InferenceComponents"]] == ["cli-component"]
    cli("sagemaker", "delete-inference-component", *name)
    listing = ("sagemaker", "list-inference-components", "--name-contains", "cli-comp")
    eventually(lambda: cli(*listing) == {"InferenceComponents": []}, within=60)
    cli("sagemaker", "delete-endpoint", "--endpoint-name", "cli-hosts")
    cli("sagemaker", "wait", "endpoint-deleted", "--endpoint-name", "cli-hosts")


def test_an_asynchronous_answer_lies_where_it_was_promised(aws, cli):
    name = aws.deploy("cli-async")
    place = aws.s3 / "cli/question.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(question(1)))
    invoke = ("sagemaker-runtime", "invoke-endpoint-async", "--endpoint-name", name, "--request-ttl-seconds", "60")
    taken = cli(*invoke, "--input-location", "s3://cli/question.json", "--content-type", "application/json")
    output = aws.s3 / taken["OutputLocation"].removeprefix("s3://")
    assert json.loads(eventually(output.read_bytes))[0]["generated_text"]


def test_lists_come_in_pages_and_tags_are_kept(cli):
    for number in range(3):
        create = ("sagemaker", "create-model", "--model-name", f"cli-page-{number}")
        cli(*create, "--primary-container", "Image=vllm", "--tags", "Key=team,Value=search")
    listing = ("sagemaker", "list-models", "--name-contains", "cli-page-", "--sort-by", "Name")
    listing += ("--sort-order", "Ascending")
    # The CLI itself goes through all pages.
    models = cli(*listing, "--page-size", "2")["Models"]
    assert [model["ModelName"] for model in models] == [f"cli-page-{number}" for number in range(3)]
    first = cli(*listing, "--max-items", "2", "--page-size", "2")
    rest = cli(*listing, "--starting-token", first["NextToken"])
    assert [model["ModelName"] for model in rest["Models"]] == ["cli-page-2"]
    tags = cli("sagemaker", "list-tags", "--resource-arn", models[0]["ModelArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "search"}]


def test_the_commands_of_awss_tutorials_on_scaling_and_alarms(aws, cli):
    name = aws.deploy("cli-tutorial")
    target = ("--service-namespace", "sagemaker", "--resource-id", f"endpoint/{name}/variant/AllTraffic")
    dimension = ("--scalable-dimension", "sagemaker:variant:DesiredInstanceCount")
    scaling = "application-autoscaling"
    cli(scaling, "register-scalable-target", *target, *dimension, "--min-capacity", "1", "--max-capacity", "4")
    described = cli(scaling, "describe-scalable-targets", *target[:2], "--resource-ids", target[3])
    assert described["ScalableTargets"][0]["MaxCapacity"] == 4
    policy = {
        "TargetValue": 50.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        "ScaleInCooldown": 600,
        "ScaleOutCooldown": 300,
    }
    put = ("--policy-name", "my-scaling-policy", "--policy-type", "TargetTrackingScaling", *target, *dimension)
    put += ("--target-tracking-scaling-policy-configuration", json.dumps(policy))
    written = cli(scaling, "put-scaling-policy", *put)
    assert written["PolicyARN"].startswith("arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:")
    policies = cli(scaling, "describe-scaling-policies", *target)
    assert policies["ScalingPolicies"][0]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 50.0
    cli(scaling, "delete-scaling-policy", "--policy-name", "my-scaling-policy", *target, *dimension)
    cli(scaling, "deregister-scalable-target", *target, *dimension)

    dimensions = ("--dimensions", f"Name=EndpointName,Value={name}", "Name=VariantName,Value=AllTraffic")
    alarm = ("--alarm-name", "cli-errors", "--namespace", "AWS/SageMaker", "--metric-name", "Invocation5XXErrors")
    rule = ("--statistic", "Average", "--period", "60", "--evaluation-periods", "2", "--threshold", "1")
    comparison = ("--comparison-operator", "GreaterThanThreshold")
    cli("cloudwatch", "put-metric-alarm", *alarm, *rule, *comparison, *dimensions)
    found = cli("cloudwatch", "describe-alarms", "--alarm-names", "cli-errors")["MetricAlarms"]
    assert [one["MetricName"] for one in found] == ["Invocation5XXErrors"]
    cli("cloudwatch", "delete-alarms", "--alarm-names", "cli-errors")


def test_other_services_say_what_is_served(cli):
    for command in (("s3", "ls"), ("ec2", "describe-instances"), ("logs", "describe-log-groups")):
        refused = cli(*command, fails=True)
        assert "Isotherm serves SageMaker, its runtime, CloudWatch" in refused and f'not "{command[0]}"' in refused
    refused = cli("sagemaker", "list-notebook-instances", fails=True)
    assert "UnknownOperationException" in refused


def test_cloudwatch_and_scaling(cli):
    assert "Metrics" in cli("cloudwatch", "list-metrics", "--namespace", "AWS/SageMaker")
    described = cli("application-autoscaling", "describe-scalable-targets", "--service-namespace", "sagemaker")
    assert isinstance(described["ScalableTargets"], list)
