"""sagemaker-core, the SageMaker Python SDK's resources and runtime: an endpoint from its creation to its end."""

import json
import sys

import botocore.exceptions
import pytest

from aws_clients import INSTANCE_TYPE, ROLE, Load, eventually, question

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="it imports numpy and pandas, for Python 3.11")


@pytest.fixture(scope="module")
def core(aws):
    """Its modules. They find the router and their credentials as users have them find AWS: by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment.items():
            patch.setenv(name, value)
        import sagemaker.core.resources
        import sagemaker.core.shapes

        yield sagemaker.core


@pytest.fixture(scope="module")
def endpoint(core):
    resources, shapes = core.resources, core.shapes
    container = shapes.ContainerDefinition(image="vllm", environment={"SAGEMAKER_ENABLE_STATEFUL_SESSIONS": "true"})
    resources.Model.create(model_name="core", primary_container=container, execution_role_arn=ROLE)
    routing = shapes.ProductionVariantRoutingConfig(
        routing_strategy="PREFIX_AWARE",
        prefix_aware_routing_config=shapes.PrefixAwareRoutingConfig(prefix_length=1024, concurrency_threshold=4),
    )
    variant = shapes.ProductionVariant(
        variant_name="AllTraffic",
        model_name="core",
        instance_type=INSTANCE_TYPE,
        initial_instance_count=2,
        routing_config=routing,
    )
    resources.EndpointConfig.create(endpoint_config_name="core", production_variants=[variant])
    endpoint = resources.Endpoint.create(endpoint_name="core", endpoint_config_name="core")
    endpoint.wait_for_status("InService", poll=1)
    return endpoint


def invoke(endpoint, body, **members):
    return endpoint.invoke(body=json.dumps(body), content_type="application/json", **members)


def test_an_endpoint_is_described_and_invoked(core, endpoint):
    described = core.resources.Endpoint.get("core")
    assert described.endpoint_status == "InService"
    assert described.production_variants[0].routing_config.routing_strategy == "PREFIX_AWARE"
    members = dict(target_variant="AllTraffic", inference_id="run-7", custom_attributes="trace=1")
    answer = invoke(endpoint, question(1), **members)
    assert json.loads(answer.body.read())[0]["generated_text"]
    assert (answer.invoked_production_variant, answer.content_type) == ("AllTraffic", "application/json")


def test_a_session_is_begun_used_and_closed(core, endpoint):
    began = invoke(endpoint, {"requestType": "NEW_SESSION"}, session_id="NEW_SESSION")
    session = began.new_session_id.split(";")[0]
    assert invoke(endpoint, question(1), session_id=session).body.read()
    assert invoke(endpoint, {"requestType": "CLOSE"}, session_id=session).closed_session_id == session
    with pytest.raises(botocore.exceptions.ClientError, match=f"Session {session} of endpoint core not found."):
        invoke(endpoint, question(1), session_id=session)


def test_its_strategy_switches_and_instances_come_and_go_under_load(aws, core, endpoint):
    resources, shapes = core.resources, core.shapes
    even = shapes.ProductionVariant(
        variant_name="AllTraffic",
        model_name="core",
        instance_type=INSTANCE_TYPE,
        initial_instance_count=2,
        routing_config=shapes.ProductionVariantRoutingConfig(routing_strategy="LEAST_OUTSTANDING_REQUESTS"),
    )
    resources.EndpointConfig.create(endpoint_config_name="core-even", production_variants=[even])
    instances = aws.router.instances("core")
    with Load(aws, "core") as load:
        for config, strategy in (("core-even", "LEAST_OUTSTANDING_REQUESTS"), ("core", "PREFIX_AWARE")):
            endpoint.endpoint_config_name = config
            endpoint.update()
            endpoint.wait_for_status("InService", poll=1)
            assert endpoint.production_variants[0].routing_config.routing_strategy == strategy
            load.wait_for(50)
        assert aws.router.instances("core") == instances, "no instance was started anew"
        for count in (3, 2):
            desired = shapes.DesiredWeightAndCapacity(variant_name="AllTraffic", desired_instance_count=count)
            endpoint.update_weights_and_capacities(desired_weights_and_capacities=[desired])
            endpoint.wait_for_status("InService", poll=1)
            assert endpoint.production_variants[0].current_instance_count == count
            load.wait_for(50)
    assert load.failures == []


def test_a_component_is_placed_scaled_and_called(aws, core):
    resources, shapes = core.resources, core.shapes
    aws.host("core-hosts")
    needs = shapes.InferenceComponentComputeResourceRequirements(
        number_of_accelerator_devices_required=1, min_memory_required_in_mb=1024
    )
    component = resources.InferenceComponent.create(
        inference_component_name="core-component",
        endpoint_name="core-hosts",
        variant_name="AllTraffic",
        specification=shapes.InferenceComponentSpecification(
            container=shapes.InferenceComponentContainerSpecification(image="vllm"), compute_resource_requirements=needs
        ),
        runtime_config=shapes.InferenceComponentRuntimeConfig(copy_count=1),
    )
    component.wait_for_status("InService", poll=1)
    hosts = resources.Endpoint.get("core-hosts")
    answer = invoke(hosts, question(1), inference_component_name="core-component")
    assert json.loads(answer.body.read())[0]["generated_text"]
    component.update_runtime_configs(desired_runtime_config=shapes.InferenceComponentRuntimeConfig(copy_count=2))
    component.wait_for_status("InService", poll=1)
    assert component.runtime_config.current_copy_count == 2
    with pytest.raises(botocore.exceptions.ClientError, match="Inference Component Name header is required"):
        invoke(hosts, question(1))


def test_lists_go_through_all_pages(core):
    names = [f"core-page-{number:02}" for number in range(12)]
    container = core.shapes.ContainerDefinition(image="vllm")
    for name in names:
        core.resources.Model.create(model_name=name, primary_container=container, execution_role_arn=ROLE)
    # Ten come at a time.
    listed = core.resources.Model.get_all(name_contains="core-page", sort_by="Name", sort_order="Ascending")
    assert [model.model_name for model in listed] == names


def test_an_asynchronous_answer_lies_where_it_was_promised(aws, endpoint):
    place = aws.s3 / "core/question.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(question(1)))
    taken = endpoint.invoke_async(input_location="s3://core/question.json", content_type="application/json")
    output = aws.s3 / taken.output_location.removeprefix("s3://")
    assert json.loads(eventually(output.read_bytes))[0]["generated_text"]


def test_errors_are_those_of_the_runtime(endpoint):
    with pytest.raises(botocore.exceptions.ClientError) as error:
        invoke(endpoint, {"nothing": "that an engine knows"})
    assert error.value.response["Error"]["Code"] == "ModelError"
    assert error.value.response["OriginalStatusCode"] == 400


@pytest.mark.xfail(strict=True, raises=AttributeError, reason="it takes botocore's EventStream for a dictionary")
def test_a_stream_is_read(endpoint):
    body = {"messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 8, "stream": True}
    streamed = endpoint.invoke_with_response_stream(body=json.dumps(body), content_type="application/json")
    assert list(streamed.body)


def test_an_endpoint_is_deleted(core):
    core.resources.Model.create(
        model_name="core-2", primary_container=core.shapes.ContainerDefinition(image="vllm"), execution_role_arn=ROLE
    )
    core.resources.Endpoint.create(endpoint_name="core-2", endpoint_config_name="core").delete()
    core.resources.Model.get("core-2").delete()

    def is_missing(find):
        try:
            find("core-2")
        except botocore.exceptions.ClientError as error:
            return "Could not find" in error.response["Error"]["Message"]

    assert is_missing(core.resources.Model.get)
    assert eventually(lambda: is_missing(core.resources.Endpoint.get))
