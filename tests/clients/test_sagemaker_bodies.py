"""Every error whose body AWS is known to send, whole. Clients read them in test_sagemaker_errors.py."""

import httpx2
import pytest

from aws_clients import Aws, variant
from containers import Container

ACCOUNT, REGION = "123456789012", "us-east-1"
LOG_GROUP = "/aws/sagemaker/Endpoints/my-ep"
CONSOLE = f"https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}#logEventViewer:group={LOG_GROUP}"
SEE = f"See {CONSOLE} in account {ACCOUNT} for more information."
NAME_MISSING = (
    "Inference Component Name header is required for endpoints to which you plan to deploy inference components. "
    "Please include Inference Component Name header or consider using SageMaker models."
)
NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if "
    "configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
)
TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container primary. Review the latency metrics for "
    "each container in Amazon CloudWatch, resolve the issue, and try again."
)
NO_RESPONSE = (
    "Amazon SageMaker could not get a response from the my-ep endpoint. This can occur when CPU or memory utilization "
    "is high. To check your utilization, see Amazon CloudWatch. To fix this problem, use an instance type with more "
    "CPU capacity or memory."
)


@pytest.fixture(scope="module")
def url(start, tmp_path_factory):
    """A router with the endpoint `my-ep` on a container that fails as it is asked to, and `ics` for components."""
    container, folder = Container(), tmp_path_factory.mktemp("bodies")
    configuration = folder / "isotherm.yaml"
    configuration.write_text(
        "timeouts: { invocation: 1s }\n"
        "aws:\n  data_dir: state\n  providers:\n"
        f"    - {{ match: {{ image: own }}, static: {{ urls: ['{container.url}'] }} }}\n"
        "    - emulated: { speed: 20 }\n"
    )
    aws = Aws(start("serve", "--config", str(configuration)).url)
    aws.sagemaker.create_model(ModelName="own", PrimaryContainer={"Image": "own"})
    variants = [variant("own", InitialInstanceCount=1)]
    aws.sagemaker.create_endpoint_config(EndpointConfigName="own", ProductionVariants=variants)
    aws.sagemaker.create_endpoint(EndpointName="my-ep", EndpointConfigName="own")
    aws.wait_in_service("my-ep")
    aws.host("ics")
    aws.place("ics", "empty", copies=0)
    yield aws.url
    container.stop()


def model_error(status, message, original=""):
    return {
        "ErrorCode": "CLIENT_ERROR_FROM_MODEL" if 400 <= status < 500 else "SERVER_ERROR_FROM_MODEL",
        "LogStreamArn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{LOG_GROUP}",
        "Message": message,
        "OriginalMessage": original,
        "OriginalStatusCode": status,
    }


# What the container does, and the ModelError that becomes of it.
OF_CONTAINERS = {
    "status=400": model_error(
        400, f'Received client error (400) from primary with message "prompt is too long". {SEE}', "prompt is too long"
    ),
    "status=500": model_error(
        500, f'Received server error (500) from primary with message "prompt is too long". {SEE}', "prompt is too long"
    ),
    "hang": model_error(0, f'Received server error (0) from primary with message "{TIMED_OUT}". {SEE}', TIMED_OUT),
    "break off": model_error(
        500, f"Received server error (500) from primary and could not load the entire response body. {SEE}"
    ),
    "vanish": model_error(0, NO_RESPONSE),
}


@pytest.mark.parametrize("wish", OF_CONTAINERS)
def test_a_containers_failure(url, wish):
    # A body of its own: one on which instances die is not sent again for a while.
    headers = {"X-Amzn-SageMaker-Custom-Attributes": wish}
    answer = httpx2.post(f"{url}/endpoints/my-ep/invocations", content=wish.encode(), headers=headers, timeout=20)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (424, "ModelError")
    assert answer.json() == OF_CONTAINERS[wish]
    is_of_json(answer)


@pytest.mark.parametrize(
    ("endpoint", "component", "body"),
    [
        ("X", None, {"Message": f"Endpoint X of account {ACCOUNT} not found."}),
        ("ics", None, {"ErrorCode": "INFERENCE_COMPONENT_NAME_MISSING", "Message": NAME_MISSING}),
        ("ics", "empty", {"Message": NO_CAPACITY}),
    ],
)
@pytest.mark.parametrize("operation", ["invocations", "invocations-response-stream"])
def test_a_call_that_leads_nowhere(url, operation, endpoint, component, body):
    headers = {"X-Amzn-SageMaker-Inference-Component": component} if component else {}
    answer = httpx2.post(f"{url}/endpoints/{endpoint}/{operation}", content=b"{}", headers=headers)
    assert (answer.status_code, answer.headers["x-amzn-errortype"], answer.json()) == (400, "ValidationError", body)
    is_of_json(answer)


def test_a_body_that_is_too_large_has_no_type(url):
    answer = httpx2.post(f"{url}/endpoints/my-ep/invocations", content=b"a" * 6_291_457)
    assert answer.status_code == 413 and "x-amzn-errortype" not in answer.headers
    assert answer.json() == {"Message": "HTTP content length exceeded 6291456 bytes."}


@pytest.mark.parametrize(
    ("path", "wish", "status", "error"),
    [
        ("X", "", 400, (f"Endpoint X of account {ACCOUNT} not found.", "invalid_request_error", "validation_error")),
        ("ics/inference-components/empty", "", 400, (NO_CAPACITY, "invalid_request_error", "validation_error")),
        (
            "my-ep",
            "status=400",
            400,
            (
                f'Received client error (400) from primary with message "prompt is too long". {SEE}',
                "server_error",
                "model_error",
            ),
        ),
    ],
)
def test_the_openai_compatible_path(url, path, wish, status, error):
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    headers = {"X-Amzn-SageMaker-Custom-Attributes": wish} if wish else {}
    answer = httpx2.post(f"{url}/endpoints/{path}/openai/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == status
    assert answer.json() == {"error": dict(zip(("message", "type", "code"), error))}
    is_of_json(answer)


def is_of_json(answer):
    assert answer.headers["content-type"] == "application/json" and answer.headers["x-amzn-requestid"]


def arn(kind, name):
    return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind}/{name}"


SCALED = {"ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}}
PATTERN = "Member must satisfy regular expression pattern: [a-zA-Z0-9]([\\-a-zA-Z0-9]*[a-zA-Z0-9])?"


AT_LEAST_1 = "Member must have value greater than or equal to 1"
FIRST = "productionVariants.1.member"
SERVERLESS = {"MemorySizeInMB": 1024, "MaxConcurrency": 1}


def config(*variants, **members):
    return {"EndpointConfigName": "bad", "ProductionVariants": list(variants), **members}


def violation(count, *violations):
    return f"{count} validation error{'s' if count > 1 else ''} detected: " + "; ".join(violations)


def value(given, at, constraint):
    return f"Value {given} at '{at}' failed to satisfy constraint: {constraint}"


# What is asked of the control plane, and the words of the ValidationException.
OF_THE_CONTROL_PLANE = [
    ("DescribeEndpoint", {"EndpointName": "X"}, f'Could not find endpoint "{arn("endpoint", "x")}".'),
    (
        "DescribeEndpointConfig",
        {"EndpointConfigName": "X"},
        f'Could not find endpoint configuration "{arn("endpoint-config", "x")}".',
    ),
    ("DescribeModel", {"ModelName": "X"}, f'Could not find model "{arn("model", "x")}".'),
    (
        "CreateEndpoint",
        {"EndpointName": "My-Ep", "EndpointConfigName": "own"},
        f'Cannot create already existing endpoint "{arn("endpoint", "my-ep")}".',
    ),
    (
        "CreateEndpointConfig",
        {"EndpointConfigName": "own", "ProductionVariants": [variant("own")]},
        f'Cannot create already existing endpoint configuration "{arn("endpoint-config", "own")}".',
    ),
    (
        "CreateModel",
        {"ModelName": "own", "PrimaryContainer": {"Image": "own"}},
        f'Cannot create already existing model "{arn("model", "own")}".',
    ),
    (
        "CreateEndpointConfig",
        config(variant("a b")),
        violation(1, value("'a b'", f"{FIRST}.modelName", PATTERN)),
    ),
    (
        "CreateEndpointConfig",
        config(variant("a b", InitialInstanceCount=0)),
        violation(
            2,
            value("'a b'", f"{FIRST}.modelName", PATTERN),
            value("'0'", f"{FIRST}.initialInstanceCount", AT_LEAST_1),
        ),
    ),
    (
        "CreateEndpointConfig",
        config(variant("a" * 64)),
        violation(1, value(f"'{'a' * 64}'", f"{FIRST}.modelName", "Member must have length less than or equal to 63")),
    ),
    (
        "CreateEndpointConfig",
        config(),
        violation(1, value("'[]'", "productionVariants", "Member must have length greater than or equal to 1")),
    ),
    (
        "CreateEndpointConfig",
        config(variant("own", VolumeSizeInGB=513)),
        violation(1, value("'513'", f"{FIRST}.volumeSizeInGB", "Member must have value less than or equal to 512")),
    ),
    (
        "CreateEndpoint",
        {"EndpointName": "bad"},
        violation(1, value("null", "endpointConfigName", "Member must not be null")),
    ),
    (
        "CreateEndpointConfig",
        config(variant("own", RoutingConfig={"RoutingStrategy": "BEST"})),
        violation(
            1,
            value(
                "'BEST'",
                f"{FIRST}.routingConfig.routingStrategy",
                "Member must satisfy enum value set: [LEAST_OUTSTANDING_REQUESTS, RANDOM, PREFIX_AWARE, KV_AWARE]",
            ),
        ),
    ),
    (
        "CreateEndpointConfig",
        config(variant("own", **SCALED)),
        "ManagedInstanceScaling is only supported for inference component endpoints.",
    ),
    (
        "CreateEndpointConfig",
        config({"VariantName": "v", "ModelName": "own", "ServerlessConfig": SERVERLESS, **SCALED}),
        "ManagedInstanceScaling is not supported with the given EndpointConfig setup.",
    ),
    (
        "CreateEndpointConfig",
        config(variant("own"), variant("own")),
        'The variant name "AllTraffic" was non-unique within the request.',
    ),
    (
        "UpdateEndpointWeightsAndCapacities",
        {"EndpointName": "my-ep", "DesiredWeightsAndCapacities": [{"VariantName": "red", "DesiredWeight": 1}]},
        'The variant name(s) "red" is/are not present within endpoint configuration "own".',
    ),
    (
        "DeleteEndpoint",
        {"EndpointName": "ics"},
        "Cannot delete endpoint with inference component associated. Please delete inference component and try it "
        "again.",
    ),
]


@pytest.mark.parametrize(("operation", "members", "message"), OF_THE_CONTROL_PLANE)
def test_the_control_plane(url, operation, members, message):
    headers = {"X-Amz-Target": f"SageMaker.{operation}", "Content-Type": "application/x-amz-json-1.1"}
    answer = httpx2.post(url, json=members, headers=headers)
    assert (answer.status_code, answer.json()) == (400, {"__type": "ValidationException", "message": message})
    assert answer.headers["content-type"] == "application/x-amz-json-1.1" and answer.headers["x-amzn-requestid"]
