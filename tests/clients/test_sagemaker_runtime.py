"""SageMaker's runtime by boto3, before the emulated engines of `up`: sessions, adapters, shadows."""

import json

import pytest

from aws_clients import ROLE, eventually, question, variant

BEGIN, CLOSE = {"requestType": "NEW_SESSION"}, {"requestType": "CLOSE"}


def chat(text, **fields):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 8, **fields}


@pytest.fixture(scope="module")
def talk(aws):
    return aws.deploy("talk", variant("talk", InitialInstanceCount=3))


def begin(aws, endpoint, body=BEGIN, **members):
    answer, instance = aws.invoke(endpoint, body, SessionId="NEW_SESSION", **members)
    identity, expires = answer["NewSessionId"].split("; Expires=")
    assert len(expires) == len("2026-11-30T00:00:00Z")
    return identity, instance


def test_a_session_beats_every_strategy_until_it_is_closed(aws, talk):
    homes = {}
    for number in range(24):
        session, instance = begin(aws, talk, PrefixAwareId=f"customer {number}")
        homes.setdefault(instance, session)
    assert len(homes) == 3, "sessions begin where the strategy says"
    for instance, session in homes.items():
        # Whatever the prefix: each of these has a home of its own.
        went = {aws.invoke(talk, question(1, about=about), SessionId=session)[1] for about in range(8)}
        assert went == {instance}
        stream = aws.runtime.invoke_endpoint_with_response_stream
        streamed = stream(EndpointName=talk, Body=json.dumps(chat("Hi", stream=True)), SessionId=session)
        assert streamed["ResponseMetadata"]["HTTPHeaders"]["x-isotherm-instance"] == instance
        assert b"".join(event["PayloadPart"]["Bytes"] for event in streamed["Body"]).endswith(b"data: [DONE]\n\n")
    for session in homes.values():
        assert aws.invoke(talk, CLOSE, SessionId=session)[0]["ClosedSessionId"] == session
        with pytest.raises(aws.runtime.exceptions.ValidationError, match=f"Session {session} of endpoint talk not"):
            aws.invoke(talk, question(1), SessionId=session)


def test_an_ordinary_request_may_begin_its_session(aws, talk):
    answer, instance = aws.invoke(talk, chat("Hello"), SessionId="NEW_SESSION")
    assert json.loads(answer["Body"].read())["object"] == "chat.completion"
    assert aws.invoke(talk, chat("And then?"), SessionId=answer["NewSessionId"].split(";")[0])[1] == instance


def test_a_session_expires(aws):
    container = {"Image": "vllm", "Environment": {"SAGEMAKER_SESSIONS_EXPIRATION": "2"}}
    aws.sagemaker.create_model(ModelName="short", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    aws.sagemaker.create_endpoint_config(EndpointConfigName="short", ProductionVariants=[variant("short")])
    aws.sagemaker.create_endpoint(EndpointName="short", EndpointConfigName="short")
    aws.wait_in_service("short")
    session, _ = begin(aws, "short")

    def refusal():
        try:
            aws.invoke("short", question(1), SessionId=session)
        except aws.runtime.exceptions.ValidationError as error:
            return error.response["Error"]["Message"]

    assert eventually(refusal) == f"Session {session} has expired. Begin a new one with NEW_SESSION."


def test_a_session_ends_with_its_instance(aws):
    name = aws.deploy("shrinking")
    on_each = dict(begin(aws, name, PrefixAwareId=f"customer {number}")[::-1] for number in range(16))
    assert len(on_each) == 2
    desired = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}]
    aws.sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=desired)
    aws.wait_in_service(name)
    stays = aws.invoke(name, question(1))[1]
    assert aws.invoke(name, question(1), SessionId=on_each.pop(stays))[1] == stays
    (lost,) = on_each.values()
    with pytest.raises(aws.runtime.exceptions.ValidationError, match=f"The instance of session {lost} is no longer"):
        aws.invoke(name, question(1), SessionId=lost)


def test_an_adapter_is_named_in_answers_and_has_a_cache_of_its_own(aws):
    aws.host("tuned")
    aws.place("tuned", "foundation")
    adapter = {"BaseInferenceComponentName": "foundation", "Container": {"ArtifactUrl": "s3://adapters/translator"}}
    aws.place("tuned", "translator", **adapter)

    def ask(component):
        answer, _ = aws.invoke("tuned", chat("word " * 2000), InferenceComponentName=component)
        answer = json.loads(answer["Body"].read())
        return answer["model"], (answer["usage"]["prompt_tokens_details"] or {}).get("cached_tokens", 0)

    base = ask("foundation")[0]
    assert base != "translator" and ask("foundation")[1] > 1000
    assert ask("translator") == ("translator", 0)
    assert ask("translator")[1] > 1000


def test_a_shadow_gets_copies_and_its_answers_are_dropped(aws):
    shadow = variant("shadowed", VariantName="dark", InitialInstanceCount=1)
    aws.deploy("shadowed", variant("shadowed", InitialInstanceCount=1), ShadowProductionVariants=[shadow])
    described = aws.sagemaker.describe_endpoint(EndpointName="shadowed")
    assert [one["VariantName"] for one in described["ShadowProductionVariants"]] == ["dark"]
    for number in range(10):
        assert aws.invoke("shadowed", question(number))[0]["InvokedProductionVariant"] == "AllTraffic"

    def answered(variant):
        return aws.router.metric("isotherm_requests_total", endpoint="shadowed", variant=variant)

    assert answered("AllTraffic") == 10
    eventually(lambda: answered("dark") == 10)
    with pytest.raises(aws.runtime.exceptions.ValidationError, match="Variant dark of endpoint shadowed not found."):
        aws.invoke("shadowed", question(1), TargetVariant="dark")
