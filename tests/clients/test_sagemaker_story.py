"""One endpoint's whole life by boto3, step by step: from create-model to delete-endpoint."""

import json

import pytest

from aws_clients import LEAST_OUTSTANDING, PREFIX_AWARE, ROLE, SOON, Load, question, variant


def test_the_whole_story_from_create_model_to_delete_endpoint(aws):
    sagemaker, runtime = aws.sagemaker, aws.runtime
    assert aws.client("sts").get_caller_identity()["Account"] == "123456789012"

    container = {"Image": "vllm", "Environment": {"HF_MODEL_ID": "llama"}}
    sagemaker.create_model(ModelName="llama", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    for name, routing in (("llama-warm", PREFIX_AWARE), ("llama-even", LEAST_OUTSTANDING)):
        variants = [variant("llama", InitialInstanceCount=3, RoutingConfig=routing)]
        sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=variants)
        kept = sagemaker.describe_endpoint_config(EndpointConfigName=name)["ProductionVariants"][0]
        assert kept["RoutingConfig"] == routing and kept["InitialVariantWeight"] == 1.0

    listing = dict(NameContains="llama-", SortBy="Name", SortOrder="Ascending", PaginationConfig={"PageSize": 1})
    pages = list(sagemaker.get_paginator("list_endpoint_configs").paginate(**listing))
    names = [[config["EndpointConfigName"] for config in page["EndpointConfigs"]] for page in pages]
    assert names == [["llama-even"], ["llama-warm"]]

    arn = sagemaker.create_endpoint(EndpointName="Llama", EndpointConfigName="llama-warm")["EndpointArn"]
    assert arn == "arn:aws:sagemaker:us-east-1:123456789012:endpoint/llama"
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="Llama", WaiterConfig=SOON)
    serving = sagemaker.describe_endpoint(EndpointName="Llama")["ProductionVariants"][0]
    assert (serving["CurrentInstanceCount"], serving["DesiredInstanceCount"]) == (3, 3)

    # Equal beginnings meet on one instance, different ones use all of them.
    answers = [aws.invoke("Llama", question(number)) for number in range(5)]
    assert len({instance for _, instance in answers}) == 1
    assert all(answer["InvokedProductionVariant"] == "AllTraffic" for answer, _ in answers)
    assert json.loads(answers[0][0]["Body"].read())[0]["generated_text"]
    assert len({aws.invoke("Llama", question(1, about=f"thing {number}"))[1] for number in range(20)}) == 3

    streamed = {"messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 12, "stream": True}
    stream = runtime.invoke_endpoint_with_response_stream(EndpointName="Llama", Body=json.dumps(streamed))
    parts = [event["PayloadPart"]["Bytes"] for event in stream["Body"]]
    assert len(parts) > 3 and b"".join(parts).endswith(b"data: [DONE]\n\n")

    began, instance = aws.invoke("Llama", {"requestType": "NEW_SESSION"}, SessionId="NEW_SESSION")
    session = began["NewSessionId"].split(";")[0]

    with Load(aws, "Llama") as load:
        for config in ("llama-even", "llama-warm"):
            sagemaker.update_endpoint(EndpointName="Llama", EndpointConfigName=config)
            aws.wait_in_service("Llama")
            load.wait_for(50)
            assert aws.invoke("Llama", question(1, about="anything"), SessionId=session)[1] == instance
        for count in (5, 3):
            desired = [{"VariantName": "AllTraffic", "DesiredInstanceCount": count}]
            sagemaker.update_endpoint_weights_and_capacities(EndpointName="Llama", DesiredWeightsAndCapacities=desired)
            scaled = aws.wait_in_service("Llama")["ProductionVariants"][0]
            assert scaled["CurrentInstanceCount"] == scaled["DesiredInstanceCount"] == count
            load.wait_for(50)
    assert load.failures == []
    # Who left and came back since: nobody that had the prefix, or the session.
    assert aws.invoke("Llama", question(6))[1] == answers[0][1]
    closed = aws.invoke("Llama", {"requestType": "CLOSE"}, SessionId=session)
    assert (closed[0]["ClosedSessionId"], closed[1]) == (session, instance)

    with pytest.raises(runtime.exceptions.ModelError) as error:
        aws.invoke("Llama", {"nothing": "that an engine knows"})
    assert error.value.response["OriginalStatusCode"] == 400

    sagemaker.delete_endpoint(EndpointName="Llama")
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName="Llama", WaiterConfig=SOON)
    for config in ("llama-warm", "llama-even"):
        sagemaker.delete_endpoint_config(EndpointConfigName=config)
    sagemaker.delete_model(ModelName="llama")
    with pytest.raises(runtime.exceptions.ValidationError, match="Endpoint Llama of account 123456789012 not found."):
        aws.invoke("Llama", question(1))
