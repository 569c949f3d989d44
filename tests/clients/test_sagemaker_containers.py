"""What SageMaker's runtime passes to containers and back, on instances of one's own: sessions, attributes, errors."""

import time

import botocore.eventstream
import botocore.exceptions
import pytest

from aws_clients import Aws, variant
from containers import Container

ATTRIBUTES = "x-amzn-sagemaker-custom-attributes"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
CONFIGURATION = """
auth: {{ keys_file: keys }}
expose_decisions: true
aws:
  data_dir: state
  providers:
    - static: {{ urls: [{urls}] }}
"""


@pytest.fixture(scope="module")
def containers():
    containers = [Container() for _ in range(3)]
    yield containers
    for container in containers:
        container.stop()


@pytest.fixture(scope="module")
def own(start, containers, tmp_path_factory):
    """A router that gives out running containers as instances, to callers who sign with a key that it knows."""
    folder = tmp_path_factory.mktemp("own")
    keys = folder / "keys"
    keys.write_text(f"alice aws:AKIDALICE:{SECRET}\nbob aws:AKIDBOB:{SECRET[::-1]} endpoints=other\n")
    keys.chmod(0o600)
    configuration = folder / "isotherm.yaml"
    configuration.write_text(CONFIGURATION.format(urls=", ".join(container.url for container in containers)))
    own = Aws(start("serve", "--config", str(configuration)).url, "AKIDALICE", SECRET)
    own.deploy("chat")
    return own


def invoke(aws, **members):
    answer = aws.runtime.invoke_endpoint(EndpointName="chat", Body=b"{}", **members)
    return answer, answer["ResponseMetadata"]["HTTPHeaders"]["x-isotherm-instance"]


def test_a_session_stays_where_it_began_until_it_is_closed(own):
    began, instance = invoke(own, SessionId="NEW_SESSION", PrefixAwareId="one")
    session = began["NewSessionId"].split(";")[0]
    for number in range(8):
        assert invoke(own, SessionId=session, PrefixAwareId=f"other {number}")[1] == instance
    assert invoke(own, SessionId=session, CustomAttributes="close")[0]["ClosedSessionId"] == session
    with pytest.raises(own.runtime.exceptions.ValidationError, match=session):
        invoke(own, SessionId=session)


def test_members_reach_the_container_under_their_names_and_attributes_come_back(own, containers):
    members = dict(ContentType="text/csv", Accept="text/plain", InferenceId="run-7", CustomAttributes="trace=1")
    assert invoke(own, **members)[0]["CustomAttributes"] == "trace=1"
    seen = [request for container in containers for request in container.seen]
    ((path, headers, body),) = [request for request in seen if request[1].get(ATTRIBUTES) == "trace=1"]
    assert (path, body) == ("/invocations", b"{}")
    assert headers["content-type"] == "text/csv" and headers["accept"] == "text/plain"
    assert headers["x-amzn-sagemaker-inference-id"] == "run-7"
    assert "authorization" not in headers and "x-amz-date" not in headers


@pytest.fixture(scope="module")
def strict(start, containers, tmp_path_factory):
    """A router that takes less than SageMaker: 1 KiB, one second, and two for streams."""
    folder = tmp_path_factory.mktemp("strict")
    configuration = folder / "isotherm.yaml"
    configuration.write_text(
        "limits: { invocation_body: 1KiB }\ntimeouts: { invocation: 1s, invocation_stream: 2s }\n"
        f"aws:\n  data_dir: state\n  providers: [{{ static: {{ urls: [{containers[0].url}] }} }}]\n"
    )
    strict = Aws(start("serve", "--config", str(configuration)).url)
    strict.deploy("chat", variant("chat", InitialInstanceCount=1))
    return strict


def model_error(aws, body=b"{}", **members):
    with pytest.raises(aws.runtime.exceptions.ModelError) as error:
        aws.runtime.invoke_endpoint(EndpointName="chat", Body=body, **members)
    told = error.value.response
    assert told["ResponseMetadata"]["HTTPStatusCode"] == 424
    return told


def test_limits_of_size_and_time_are_those_of_the_configuration(strict):
    invoke = strict.runtime.invoke_endpoint
    assert invoke(EndpointName="chat", Body=b"a" * 1024, CustomAttributes="size=1024")["Body"].read() == b"a" * 1024
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        invoke(EndpointName="chat", Body=b"a" * 1025)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert refused.value.response["Error"]["Message"] == "HTTP content length exceeded 1024 bytes."
    told = model_error(strict, CustomAttributes="size=1025")
    assert "could not load the entire response body" in told["Error"]["Message"]

    begun = time.monotonic()
    for wish in ("hang", "stall"):
        told = model_error(strict, CustomAttributes=wish)
        assert told["OriginalStatusCode"] == 0
        assert told["OriginalMessage"].startswith("Your invocation timed out while waiting for a response from")
    assert 2 <= time.monotonic() - begun < 10


def test_an_answer_that_breaks_off_or_never_comes_is_a_model_error(own):
    told = model_error(own, CustomAttributes="break off")
    said = "Received server error (500) from primary and could not load the entire response body. See https://"
    assert told["Error"]["Message"].startswith(said) and told["OriginalStatusCode"] == 500
    # A body of its own: one on which instances die is not sent again for a while.
    told = model_error(own, body=b"poison", CustomAttributes="vanish")
    said = "Amazon SageMaker could not get a response from the chat endpoint. This can occur when CPU or memory"
    assert told["Error"]["Message"].startswith(said) and told["OriginalStatusCode"] == 0


@pytest.mark.parametrize(("status", "side"), [(400, "client"), (500, "server")])
def test_a_containers_error_is_a_model_error(own, status, side):
    told = model_error(own, CustomAttributes=f"status={status}")
    assert told["OriginalStatusCode"] == status and told["OriginalMessage"] == "prompt is too long"
    assert told["LogStreamArn"] == "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/chat"
    said = f'Received {side} error ({status}) from primary with message "prompt is too long".'
    assert told["Error"]["Message"].startswith(said)


def stream_error(aws, meanwhile=lambda: None, **members):
    """The exception that ends a stream after its beginning, as boto3's own parser reads it."""
    answer = aws.runtime.invoke_endpoint_with_response_stream(EndpointName="chat", Body=b"{}", **members)
    events = iter(answer["Body"])
    assert next(events)["PayloadPart"]["Bytes"] == b"the beginning"
    meanwhile()
    with pytest.raises(botocore.eventstream.EventStreamError) as error:
        next(events)
    return error.value.response["Error"]


def test_a_stream_that_breaks_off_ends_with_an_exception(own):
    error = stream_error(own, CustomAttributes="break off")
    assert error["Code"] == "ModelStreamError" and error["Message"]


def test_a_stream_that_takes_too_long_ends_with_an_exception(strict):
    begun = time.monotonic()
    error = stream_error(strict, CustomAttributes="stall")
    assert 2 <= time.monotonic() - begun < 10
    assert error == {"Code": "ModelStreamError", "Message": "the answer took too long as a whole"}


def test_a_stream_ends_with_an_exception_when_the_router_stops(start, containers, tmp_path):
    configuration = tmp_path / "isotherm.yaml"
    configuration.write_text(
        "timeouts: { shutdown_grace: 1s }\n"
        f"aws:\n  data_dir: state\n  providers: [{{ static: {{ urls: [{containers[0].url}] }} }}]\n"
    )
    router = start("serve", "--config", str(configuration))
    aws = Aws(router.url)
    aws.deploy("chat", variant("chat", InitialInstanceCount=1))
    error = stream_error(aws, meanwhile=router.process.terminate, CustomAttributes="stall")
    assert error["Code"] == "InternalStreamFailure" and error["Message"]


def test_signatures_are_checked(own):
    def refusal(access_key, secret, operation=lambda aws: aws.sagemaker.list_endpoints()):
        with pytest.raises(botocore.exceptions.ClientError) as refused:
            operation(Aws(own.url, access_key, secret))
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
        return refused.value.response["Error"]["Code"]

    assert refusal("AKIDALICE", "wrong") == "InvalidSignatureException"
    assert refusal("AKIDNOBODY", SECRET) == "UnrecognizedClientException"
    assert refusal("AKIDBOB", SECRET[::-1], invoke) == "AccessDeniedException"


def test_no_more_instances_than_there_are_machines(own):
    desired = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 4}]
    own.sagemaker.update_endpoint_weights_and_capacities(EndpointName="chat", DesiredWeightsAndCapacities=desired)
    described = own.wait_in_service("chat")
    assert described["FailureReason"] and described["ProductionVariants"][0]["CurrentInstanceCount"] == 2
    assert invoke(own)[0]["Body"].read()
