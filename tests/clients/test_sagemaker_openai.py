"""openai-python on SageMaker's OpenAI-compatible path, with the tokens that sagemaker-core makes."""

from datetime import timedelta

import botocore.credentials
import openai
import pytest

from aws_clients import ROLE, eventually, variant

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ACCOUNT = "123456789012"


@pytest.fixture(scope="module")
def endpoint(aws):
    return aws.deploy("openai")


@pytest.fixture(scope="module")
def client(aws, endpoint):
    return openai_client(aws.url, endpoint, "sagemaker-api-key-any")


def openai_client(url, endpoint, key):
    return openai.OpenAI(base_url=f"{url}/endpoints/{endpoint}/openai/v1", api_key=key, max_retries=0)


def ask(text, **fields):
    return {"model": "", "messages": [{"role": "user", "content": text}], "max_tokens": 8, **fields}


def test_chat_answers_and_streams(client):
    completion = client.chat.completions.create(**ask("Hello"))
    assert completion.choices[0].message.content and completion.usage.completion_tokens > 0
    chunks = list(client.chat.completions.create(stream=True, **ask("Hello")))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_equal_beginnings_share_an_instance_and_cache_keys_part_them(client):
    policy = "The traveller shall keep every receipt. " * 400

    def answers(**fields):
        create = client.chat.completions.with_raw_response.create
        return [create(**ask(policy + question, **fields)) for question in ("Taxis?", "Hotels?", "Meals?")]

    plain = answers()
    assert len({answer.headers["x-isotherm-instance"] for answer in plain}) == 1
    assert plain[2].parse().usage.prompt_tokens_details.cached_tokens > 2_000
    by_key = [answers(prompt_cache_key=f"tenant-{number}")[0].headers["x-isotherm-instance"] for number in range(12)]
    assert len(set(by_key)) == 2


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["openai"]


def test_an_unknown_endpoint_is_an_error_in_openais_form(aws):
    with pytest.raises(openai.BadRequestError) as error:
        openai_client(aws.url, "nothing", "any").chat.completions.create(**ask("Hello"))
    assert error.value.body["message"] == f"Endpoint nothing of account {ACCOUNT} not found."
    assert (error.value.type, error.value.code) == ("invalid_request_error", "validation_error")


def test_an_inference_component_is_in_the_path(aws):
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2}
    hosts = variant(None, ManagedInstanceScaling=scaling)
    del hosts["ModelName"]
    config = dict(EndpointConfigName="openai-shared", ProductionVariants=[hosts], ExecutionRoleArn=ROLE)
    aws.sagemaker.create_endpoint_config(**config)
    aws.sagemaker.create_endpoint(EndpointName="openai-shared", EndpointConfigName="openai-shared")
    aws.wait_in_service("openai-shared")
    specification = {"Container": {"Image": "vllm"}, "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024}}
    aws.sagemaker.create_inference_component(
        InferenceComponentName="chatty",
        EndpointName="openai-shared",
        VariantName="AllTraffic",
        Specification=specification,
        RuntimeConfig={"CopyCount": 1},
    )
    chatty = openai_client(aws.url, "openai-shared/inference-components/chatty", "any")
    assert eventually(lambda: chatty.chat.completions.create(**ask("Hello"))).choices[0].message.content


def test_sagemaker_cores_tokens_are_taken_until_they_expire(start, aws, endpoint, tmp_path):
    generate_token = pytest.importorskip("sagemaker.core.token_generator").generate_token
    keys = tmp_path / "keys"
    keys.write_text(f"alice aws:AKIDALICE:{SECRET}\n")
    keys.chmod(0o600)
    guarded = start("serve", "--instance", next(iter(aws.router.instances(endpoint))), "--keys-file", str(keys))

    def token(secret=SECRET, region="us-east-1", **lasting):
        return generate_token(region, Holder(secret), **lasting)

    def complete(token):
        return openai_client(guarded.url, "default", token).chat.completions.create(**ask("Hello"))

    # Its own default: twelve hours, the longest that there is.
    for token_of_alice in (token(), token(expiry=timedelta(minutes=1)), token(region="eu-west-1")):
        assert complete(token_of_alice).choices[0].message.content
    refusals = openai.AuthenticationError, openai.PermissionDeniedError
    for forged in (token("wrong"), token()[:-8] + "AAAAAAA=", "sagemaker-api-key-", token().removeprefix("sagemaker-")):
        with pytest.raises(refusals):
            complete(forged)
    expiring = token(expiry=timedelta(seconds=1))

    def refusal():
        try:
            complete(expiring)
        except refusals as error:
            return error

    error = eventually(refusal)
    assert (error.status_code, error.code) == (401, "expired_token")
    assert error.body["message"] == "The security token included in the request is expired"


class Holder:
    """Provides the credentials of one key, in the form that the generator asks for."""

    def __init__(self, secret):
        self.secret = secret

    def load(self):
        return botocore.credentials.Credentials("AKIDALICE", self.secret)
