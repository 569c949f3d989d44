"""Every error whose body AWS is known to send, asked for by boto3 and openai-python: code, status and words."""

import datetime
import re

import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
import botocore.exceptions
import botocore.session
import httpx2
import openai
import pytest

from aws_clients import PREFIX_AWARE, ROLE, Aws, eventually, question, variant

ACCOUNT = "123456789012"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def arn(kind, name):
    return f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:{kind}/{name}"


def refused(operation, **members):
    """Code, status and words of an operation's error."""
    with pytest.raises(botocore.exceptions.ClientError) as error:
        operation(**members)
    told = error.value.response
    return told["Error"]["Code"], told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Message"]


def invalid(operation, **members):
    """The words of a ValidationException."""
    code, status, message = refused(operation, **members)
    assert (code, status) == ("ValidationException", 400)
    return message


@pytest.fixture(scope="module")
def sagemaker(aws):
    return aws.sagemaker


@pytest.fixture(scope="module")
def there(aws):
    return aws.deploy("there")


@pytest.fixture(scope="module")
def components(aws):
    """An endpoint with a component of two copies, and one of none."""
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2}
    hosts = variant(None, InitialInstanceCount=1, ManagedInstanceScaling=scaling)
    del hosts["ModelName"]
    aws.sagemaker.create_endpoint_config(EndpointConfigName="hosts", ProductionVariants=[hosts], ExecutionRoleArn=ROLE)
    aws.sagemaker.create_endpoint(EndpointName="hosts", EndpointConfigName="hosts")
    aws.wait_in_service("hosts")
    container = {"Container": {"Image": "vllm"}, "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024}}
    for name, copies in (("two", 2), ("none", 0)):
        aws.sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName="hosts",
            VariantName="AllTraffic",
            Specification=container,
            RuntimeConfig={"CopyCount": copies},
        )
        describe = aws.sagemaker.describe_inference_component
        eventually(lambda: describe(InferenceComponentName=name)["InferenceComponentStatus"] == "InService")
    return "hosts"


# The runtime. What containers do wrong is in test_sagemaker_containers.py.


def test_an_endpoint_that_is_not_there(aws):
    told = refused(aws.runtime.invoke_endpoint, EndpointName="my-ep", Body=b"{}")
    assert told == ("ValidationError", 400, f"Endpoint my-ep of account {ACCOUNT} not found.")
    told = refused(aws.runtime.invoke_endpoint_with_response_stream, EndpointName="my-ep", Body=b"{}")
    assert told == ("ValidationError", 400, f"Endpoint my-ep of account {ACCOUNT} not found.")


def test_a_component_that_is_not_named_or_has_no_copy(aws, components):
    with pytest.raises(aws.runtime.exceptions.ValidationError) as error:
        aws.invoke(components, question(1))
    message = (
        "Inference Component Name header is required for endpoints to which you plan to deploy inference components. "
        "Please include Inference Component Name header or consider using SageMaker models."
    )
    assert error.value.response["Error"]["Message"] == message
    body = httpx2.post(f"{aws.url}/endpoints/{components}/invocations", content=b"{}").json()
    assert body == {"ErrorCode": "INFERENCE_COMPONENT_NAME_MISSING", "Message": message}

    told = refused(aws.invoke, endpoint=components, body=question(1), InferenceComponentName="none")
    no_capacity = (
        "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if "
        "configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
    )
    assert told == ("ValidationError", 400, no_capacity)
    client = openai.OpenAI(
        base_url=f"{aws.url}/endpoints/{components}/inference-components/none/openai/v1", api_key="any", max_retries=0
    )
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model="", messages=[{"role": "user", "content": "Hi"}])
    assert (error.value.body["message"], error.value.code) == (no_capacity, "validation_error")


def test_errors_on_the_openai_compatible_path(aws, there):
    def ask(endpoint, messages):
        client = openai.OpenAI(base_url=f"{aws.url}/endpoints/{endpoint}/openai/v1", api_key="any", max_retries=0)
        with pytest.raises(openai.BadRequestError) as error:
            client.chat.completions.create(model="", messages=messages)
        return error.value.body

    hello = [{"role": "user", "content": "Hi"}]
    message = f"Endpoint X of account {ACCOUNT} not found."
    assert ask("X", hello) == {"message": message, "type": "invalid_request_error", "code": "validation_error"}
    body = ask(there, [])
    assert (body["type"], body["code"]) == ("server_error", "model_error")
    assert body["message"].startswith('Received client error (400) from primary with message "')
    assert body["message"].endswith(f" in account {ACCOUNT} for more information.")


# The control plane.


def test_what_is_not_there(sagemaker, there):
    missing = invalid(sagemaker.describe_endpoint, EndpointName="X")
    assert missing == f'Could not find endpoint "{arn("endpoint", "x")}".'
    missing = invalid(sagemaker.describe_endpoint_config, EndpointConfigName="X")
    assert missing == f'Could not find endpoint configuration "{arn("endpoint-config", "x")}".'
    missing = invalid(sagemaker.describe_model, ModelName="X")
    assert missing == f'Could not find model "{arn("model", "x")}".'


def test_an_update_after_the_old_configuration_was_deleted(aws, sagemaker):
    aws.deploy("forgotten")
    sagemaker.create_endpoint_config(EndpointConfigName="forgotten-2", ProductionVariants=[variant("forgotten")])
    sagemaker.delete_endpoint_config(EndpointConfigName="forgotten")
    missing = invalid(sagemaker.update_endpoint, EndpointName="forgotten", EndpointConfigName="forgotten-2")
    assert missing == f'Could not find endpoint configuration "{arn("endpoint-config", "forgotten")}".'


def test_what_is_there_already(sagemaker, there):
    again = invalid(sagemaker.create_endpoint, EndpointName="There", EndpointConfigName=there)
    assert again == f'Cannot create already existing endpoint "{arn("endpoint", "there")}".'
    again = invalid(sagemaker.create_model, ModelName=there, PrimaryContainer={"Image": "vllm"})
    assert again == f'Cannot create already existing model "{arn("model", "there")}".'
    again = invalid(sagemaker.create_endpoint_config, EndpointConfigName=there, ProductionVariants=[variant(there)])
    assert again == f'Cannot create already existing endpoint configuration "{arn("endpoint-config", "there")}".'


def configure(sagemaker, *variants, **members):
    return invalid(sagemaker.create_endpoint_config, EndpointConfigName="bad", ProductionVariants=variants, **members)


def test_constraints(sagemaker, there):
    bad_name = (
        "Value 'a b' at 'productionVariants.1.member.modelName' failed to satisfy constraint: Member must satisfy "
        "regular expression pattern: "
    )
    assert configure(sagemaker, variant("a b")).startswith(f"1 validation error detected: {bad_name}")
    both = configure(sagemaker, variant("a b", VariantName="c d"))
    assert both.startswith("2 validation errors detected: Value ") and "; Value " in both
    strategy = configure(sagemaker, variant(there, RoutingConfig={"RoutingStrategy": "BEST"}))
    assert "Member must satisfy enum value set: [" in strategy
    assert "Member must have length less than or equal to 63" in configure(sagemaker, variant("a" * 64))
    assert "Member must have length less than or equal to 10" in configure(
        sagemaker, *[variant(there, VariantName=f"v{number}") for number in range(11)]
    )
    few = PREFIX_AWARE["PrefixAwareRoutingConfig"] | {"PrefixLength": 65537}
    assert "Member must have value less than or equal to 65536" in configure(
        sagemaker, variant(there, RoutingConfig=PREFIX_AWARE | {"PrefixAwareRoutingConfig": few})
    )
    # boto3 itself refuses what is missing; others send it.
    missing = invalid(raw(sagemaker).create_endpoint, EndpointName="bad")
    null = "Value null at 'endpointConfigName' failed to satisfy constraint: Member must not be null"
    assert missing == f"1 validation error detected: {null}"
    short = invalid(raw(sagemaker).create_endpoint_config, EndpointConfigName="bad", ProductionVariants=[])
    assert short.endswith("Member must have length greater than or equal to 1")


def raw(client):
    """The same client without the checks of its own."""
    session = botocore.session.Session()
    config = botocore.config.Config(parameter_validation=False, retries={"total_max_attempts": 1})
    return session.create_client(
        "sagemaker",
        region_name="us-east-1",
        endpoint_url=client.meta.endpoint_url,
        config=config,
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


def test_variants_that_can_not_be(sagemaker, there):
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}
    message = configure(sagemaker, variant(there, ManagedInstanceScaling=scaling))
    assert message == "ManagedInstanceScaling is only supported for inference component endpoints."
    twice = configure(sagemaker, variant(there), variant(there))
    assert twice == 'The variant name "AllTraffic" was non-unique within the request.'
    desired = [{"VariantName": "red", "DesiredWeight": 1}]
    unknown = invalid(
        sagemaker.update_endpoint_weights_and_capacities, EndpointName=there, DesiredWeightsAndCapacities=desired
    )
    assert unknown.startswith('The variant name(s) "red" is/are not present within endpoint configuration "')


def test_changes_that_come_too_early_or_take_too_much(aws, sagemaker, components):
    told = refused(sagemaker.delete_endpoint, EndpointName=components)
    associated = "Cannot delete endpoint with inference component associated. "
    message = associated + "Please delete inference component and try it again."
    assert told == ("ValidationException", 400, message)

    copies = iter(range(2, 1000))

    def in_progress():
        """Changes of a component one behind the other, until one meets the one before."""
        try:
            for _ in range(2):
                sagemaker.update_inference_component_runtime_config(
                    InferenceComponentName="two", DesiredRuntimeConfig={"CopyCount": next(copies) % 2 + 1}
                )
        except botocore.exceptions.ClientError as error:
            return error.response["Error"]["Message"]

    expected = f'Cannot update inference component "{arn("inference-component", "two")}" while it is in state '
    assert eventually(in_progress) == expected + "UPDATE_RC_IN_PROGRESS"

    code, status, message = refused(
        sagemaker.update_endpoint_weights_and_capacities,
        EndpointName=aws.deploy("greedy"),
        DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 100_000}],
    )
    assert (code, status) == ("ResourceLimitExceeded", 400)
    limit = r"The account-level service limit '.+' is \d+ Instances, with current utilization of \d+ Instances and "
    # Whom to ask for more is not AWS here.
    assert re.match(limit + r"a request delta of 99998 Instances\. Please ", message)


def test_an_update_during_an_update(aws, sagemaker):
    name = aws.deploy("busy")
    sagemaker.create_model(ModelName="busy-2", PrimaryContainer={"Image": "vllm:2"}, ExecutionRoleArn=ROLE)
    sagemaker.create_endpoint_config(EndpointConfigName="busy-2", ProductionVariants=[variant("busy-2")])
    baking = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}
    policy = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": baking}}
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName="busy-2", DeploymentConfig=policy)
    message = invalid(sagemaker.update_endpoint, EndpointName=name, EndpointConfigName="busy-2")
    assert message == f'Cannot update in-progress endpoint "{arn("endpoint", "busy")}".'
    sagemaker.delete_endpoint(EndpointName=name)


def test_pages_and_operations_that_are_none(aws, sagemaker):
    assert invalid(sagemaker.list_models, NextToken="nonsense").startswith('Invalid pagination token because "')
    code, status, _ = refused(sagemaker.list_notebook_instances)
    assert (code, status) == ("UnknownOperationException", 400)


# Who calls.


@pytest.fixture(scope="module")
def guarded(start, tmp_path_factory):
    """A router that checks signatures, with a key for one endpoint."""
    folder = tmp_path_factory.mktemp("guarded")
    keys = folder / "keys"
    keys.write_text(f"alice aws:AKIDALICE:{SECRET}\nbob aws:AKIDBOB:{SECRET} endpoints=other\ncarol aws:ASIACAROL:{SECRET} expires=2026-01-01T00:00:00Z\n")
    keys.chmod(0o600)
    configuration = folder / "isotherm.yaml"
    configuration.write_text(
        "auth: { keys_file: keys }\naws: { data_dir: state, providers: [{ emulated: { speed: 20 } }] }\n"
    )
    guarded = Aws(start("serve", "--config", str(configuration)).url, "AKIDALICE", SECRET)
    guarded.deploy("mine")
    return guarded


def test_signatures_that_prove_nothing(guarded):
    def told(access_key, secret):
        return refused(Aws(guarded.url, access_key, secret).runtime.invoke_endpoint, EndpointName="mine", Body=b"{}")

    mismatch = (
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access "
        "Key and signing method. Consult the service documentation for details."
    )
    assert told("AKIDALICE", "wrong") == ("InvalidSignatureException", 403, mismatch)
    unknown = "The security token included in the request is invalid."
    assert told("AKIDNOBODY", SECRET) == ("UnrecognizedClientException", 403, unknown)
    denied = f"User: arn:aws:iam::{ACCOUNT}:user/bob is not authorized to perform: sagemaker:InvokeEndpoint on "
    denied += f"resource: {arn('endpoint', 'mine')}"
    assert told("AKIDBOB", SECRET) == ("AccessDeniedException", 403, denied)


def test_credentials_whose_time_is_over(guarded):
    carol = Aws(guarded.url, "ASIACAROL", SECRET)
    expired = ("ExpiredTokenException", 403, "The security token included in the request is expired")
    assert refused(carol.runtime.invoke_endpoint, EndpointName="mine", Body=b"{}") == expired
    stream = carol.runtime.invoke_endpoint_with_response_stream
    assert refused(stream, EndpointName="mine", Body=b"{}") == expired
    assert refused(carol.sagemaker.list_endpoints) == expired
    assert refused(carol.client("cloudwatch").list_metrics) == expired
    scaling = carol.client("application-autoscaling")
    assert refused(scaling.describe_scaling_activities, ServiceNamespace="sagemaker") == expired
    assert refused(carol.client("sts").get_caller_identity) == ("ExpiredToken", *expired[1:])


def test_requests_that_are_badly_signed_or_not_at_all(guarded):
    url = f"{guarded.url}/endpoints/mine/invocations"

    def told(headers):
        answer = httpx2.post(url, content=b"{}", headers=headers)
        return answer.headers["x-amzn-errortype"], answer.status_code, answer.json()["message"]

    assert told({}) == ("MissingAuthenticationTokenException", 403, "Missing Authentication Token")
    code, status, _ = told({"Authorization": "AWS4-HMAC-SHA256 Credential=AKIDALICE/20261130"})
    assert (code, status) == ("IncompleteSignatureException", 400)

    request = botocore.awsrequest.AWSRequest("POST", url, data=b"{}")
    signing = botocore.auth.SigV4Auth(botocore.credentials.Credentials("AKIDALICE", SECRET), "sagemaker", "us-east-1")
    with pytest.MonkeyPatch.context() as patch:
        an_hour_ago = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
        patch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: an_hour_ago.replace(tzinfo=None))
        signing.add_auth(request)
    code, status, message = told(dict(request.headers))
    assert (code, status) == ("InvalidSignatureException", 403)
    assert message.startswith(f"Signature expired: {an_hour_ago:%Y%m%dT%H%M%SZ} is now earlier than ")
    assert message.endswith(" - 15 min.)")
