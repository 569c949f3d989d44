"""The AWS CLI with the newest service models: the commands of AWS's own guides."""

import json
import os
import pathlib
import subprocess
import sys

import botocore
import pytest

from aws_clients import PREFIX_AWARE, ROLE, question, variant


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


def test_cloudwatch_and_scaling(cli):
    assert "Metrics" in cli("cloudwatch", "list-metrics", "--namespace", "AWS/SageMaker")
    described = cli("application-autoscaling", "describe-scalable-targets", "--service-namespace", "sagemaker")
    assert isinstance(described["ScalableTargets"], list)
