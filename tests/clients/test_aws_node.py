"""@aws-sdk/client-sagemaker-runtime on Node: invocations, streams, sessions, errors."""

import json
import os
import pathlib
import subprocess

import pytest

from aws_clients import ROLE, Aws, eventually, question, variant
from containers import Container

SCRIPT = pathlib.Path(__file__).with_name("node") / "invoke.cjs"
BEGIN, CLOSE = {"requestType": "NEW_SESSION"}, {"requestType": "CLOSE"}


class Sdk:
    """The SDK in a process of its own, which calls what it is told."""

    def __init__(self, node, aws):
        environment = {**os.environ, **aws.environment, "AWS_REGION": "us-east-1"}
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen([node, str(SCRIPT)], env=environment, **pipes)

    def call(self, command, **members):
        self.process.stdin.write(json.dumps({"command": command, "input": members}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def invoke(self, endpoint, body, **members):
        members = {"ContentType": "application/json", **members}
        return self.call("InvokeEndpointCommand", EndpointName=endpoint, Body=json.dumps(body), **members)

    def stream(self, endpoint, body, **members):
        members = {"ContentType": "application/json", **members}
        command = "InvokeEndpointWithResponseStreamCommand"
        return self.call(command, EndpointName=endpoint, Body=json.dumps(body), **members)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


@pytest.fixture(scope="module")
def sdk(aws, needs):
    sdk = Sdk(needs("node"), aws)
    yield sdk
    sdk.stop()


@pytest.fixture(scope="module")
def endpoint(aws):
    return aws.deploy("node", variant("node", InitialInstanceCount=3))


def chat(text, **fields):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, **fields}


def test_an_endpoint_is_invoked_and_streams(sdk, endpoint):
    answer = sdk.invoke(endpoint, question(1))
    assert answer["InvokedProductionVariant"] == "AllTraffic" and answer["ContentType"] == "application/json"
    assert json.loads(answer["body"])[0]["generated_text"]
    streamed = sdk.stream(endpoint, chat("Count to sixty.", max_tokens=60, stream=True))
    assert len(streamed["parts"]) > 3 and "".join(streamed["parts"]).endswith("data: [DONE]\n\n")
    assert streamed["ContentType"].startswith("text/event-stream")


def test_an_id_parts_the_homes_of_one_prefix(sdk, endpoint):
    def homes(**members):
        return {sdk.invoke(endpoint, question(number), **members)["instance"] for number in range(3)}

    by_id = [homes(PrefixAwareId=f"customer-{number}") for number in range(12)]
    assert all(len(instances) == 1 for instances in by_id)
    assert len(set.union(*by_id)) == 3


def test_a_session_is_begun_stays_and_is_closed(sdk, endpoint):
    began = sdk.invoke(endpoint, BEGIN, SessionId="NEW_SESSION")
    session, expires = began["NewSessionId"].split("; Expires=")
    assert len(expires) == len("2026-11-30T00:00:00Z")
    for about in range(8):
        assert sdk.invoke(endpoint, question(1, about=about), SessionId=session)["instance"] == began["instance"]
    streamed = sdk.stream(endpoint, chat("Hi", stream=True), SessionId=session)
    assert streamed["instance"] == began["instance"] and streamed["parts"][-1].endswith("data: [DONE]\n\n")
    assert sdk.invoke(endpoint, CLOSE, SessionId=session)["ClosedSessionId"] == session
    lost = sdk.invoke(endpoint, question(1), SessionId=session)["error"]
    assert (lost["name"], lost["status"]) == ("ValidationError", 400)
    assert lost["message"] == f"Session {session} of endpoint node not found."


def test_a_session_expires(sdk, aws):
    container = {"Image": "vllm", "Environment": {"SAGEMAKER_SESSIONS_EXPIRATION": "2"}}
    aws.sagemaker.create_model(ModelName="node-short", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    variants = [variant("node-short", InitialInstanceCount=1)]
    aws.sagemaker.create_endpoint_config(EndpointConfigName="node-short", ProductionVariants=variants)
    aws.sagemaker.create_endpoint(EndpointName="node-short", EndpointConfigName="node-short")
    aws.wait_in_service("node-short")
    session = sdk.invoke("node-short", BEGIN, SessionId="NEW_SESSION")["NewSessionId"].split(";")[0]
    error = eventually(lambda: sdk.invoke("node-short", question(1), SessionId=session).get("error"))
    expired = f"Session {session} has expired. Begin a new one with NEW_SESSION."
    assert (error["name"], error["message"]) == ("ValidationError", expired)


def test_a_component_is_called_by_its_name(sdk, aws):
    aws.host("node-hosts")
    aws.place("node-hosts", "node-component")
    answer = sdk.invoke("node-hosts", question(1), InferenceComponentName="node-component")
    assert json.loads(answer["body"])[0]["generated_text"]
    streamed = sdk.stream("node-hosts", chat("Hi", stream=True), InferenceComponentName="node-component")
    assert streamed["parts"][-1].endswith("data: [DONE]\n\n")
    assert "Inference Component Name header is required" in sdk.invoke("node-hosts", question(1))["error"]["message"]


def test_an_asynchronous_answer_lies_where_it_was_promised(sdk, aws, endpoint):
    place = aws.s3 / "node/question.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(question(1)))
    members = dict(EndpointName=endpoint, ContentType="application/json", InputLocation="s3://node/question.json")
    taken = sdk.call("InvokeEndpointAsyncCommand", InferenceId="run-7", **members)
    assert (taken["status"], taken["InferenceId"]) == (202, "run-7")
    output = aws.s3 / taken["OutputLocation"].removeprefix("s3://")
    assert json.loads(eventually(output.read_bytes))[0]["generated_text"]


def test_errors_are_of_the_sdks_own_types(sdk, endpoint):
    missing = sdk.invoke("nothing", question(1))["error"]
    message = "Endpoint nothing of account 123456789012 not found."
    assert (missing["name"], missing["status"], missing["message"]) == ("ValidationError", 400, message)
    unknown = sdk.invoke(endpoint, question(1), TargetVariant="red")["error"]
    assert (unknown["name"], unknown["message"]) == ("ValidationError", "Variant red of endpoint node not found.")
    model = sdk.invoke(endpoint, {"nothing": "that an engine knows"})["error"]
    assert (model["name"], model["status"], model["OriginalStatusCode"]) == ("ModelError", 424, 400)
    assert model["OriginalMessage"] and model["LogStreamArn"].endswith(":log-group:/aws/sagemaker/Endpoints/node")
    large = sdk.invoke(endpoint, "a" * (6 * 1024 * 1024))["error"]
    assert (large["status"], large["message"]) == (413, "HTTP content length exceeded 6291456 bytes.")


@pytest.fixture(scope="module")
def own(start, needs, tmp_path_factory):
    """The SDK before a router whose one instance is a container that does what it is asked to."""
    container = Container()
    configuration = tmp_path_factory.mktemp("node") / "isotherm.yaml"
    configuration.write_text(
        "timeouts: { idle: 1s }\n"
        f"aws: {{ data_dir: state, providers: [{{ static: {{ urls: ['{container.url}'] }} }}] }}\n"
    )
    aws = Aws(start("serve", "--config", str(configuration)).url)
    aws.deploy("own", variant("own", InitialInstanceCount=1))
    sdk = Sdk(needs("node"), aws)
    yield sdk, container
    sdk.stop()
    container.stop()


def test_members_reach_the_container_and_attributes_come_back(own):
    sdk, container = own
    members = dict(Accept="text/plain", InferenceId="run-7", CustomAttributes="trace=1", TargetVariant="AllTraffic")
    assert sdk.invoke("own", {}, ContentType="text/csv", **members)["CustomAttributes"] == "trace=1"
    path, headers, _ = container.seen[-1]
    assert path == "/invocations" and headers["content-type"] == "text/csv" and headers["accept"] == "text/plain"
    assert headers["x-amzn-sagemaker-inference-id"] == "run-7" and "authorization" not in headers
    sdk.stream("own", {}, Accept="text/plain", CustomAttributes="trace=2")
    assert container.seen[-1][1]["accept"] == "text/plain", "on streams it comes as X-Amzn-SageMaker-Accept"


@pytest.mark.parametrize(
    ("wish", "code"), [("break off", "StreamBroken"), ("stall", "ModelInvocationTimeExceeded")]
)
def test_a_stream_that_ends_too_early_throws_in_its_middle(own, wish, code):
    answer = own[0].stream("own", {}, CustomAttributes=wish)
    assert answer["parts"] == ["the beginning"]
    assert (answer["error"]["name"], answer["error"]["ErrorCode"]) == ("ModelStreamError", code)
