"""Application Auto Scaling and managed instance scaling under a client's load, by boto3: out when it comes, in when it
goes, and no request fails meanwhile."""

import json
from contextlib import contextmanager

import pytest

from aws_clients import ROLE, Aws, Load, eventually, variant

# Sixty times faster than on AWS, as far as metrics go: their finest period is ten seconds.
CONFIGURATION = """
expose_decisions: true
aws: { data_dir: state, scaling_speed: 60, providers: [{ emulated: { speed: 1 } }] }
"""
BOUNDS = {"MinCapacity": 1, "MaxCapacity": 3}


@pytest.fixture(scope="module")
def fast(start, tmp_path_factory):
    configuration = tmp_path_factory.mktemp("scaling") / "isotherm.yaml"
    configuration.write_text(CONFIGURATION)
    return Aws(start("serve", "--config", str(configuration)).url)


@contextmanager
def calling(aws, callers, endpoint, **members):
    """Callers of whose requests each is half a second of an engine's work, and none may fail."""

    def ask(body):
        body |= {"parameters": {"max_new_tokens": 20}}
        assert json.loads(aws.invoke(endpoint, body, **members)[0]["Body"].read())

    with Load(aws, endpoint, callers, ask) as load:
        yield
    assert load.failures == [] and load.done > 0


def track(scaling, resource, dimension, metric):
    target = dict(ServiceNamespace="sagemaker", ResourceId=resource, ScalableDimension=f"sagemaker:{dimension}")
    scaling.register_scalable_target(**target, **BOUNDS)
    tracking = {
        "TargetValue": 2.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
        "ScaleOutCooldown": 5,
        "ScaleInCooldown": 5,
    }
    scaling.put_scaling_policy(
        **target,
        PolicyName="two-each",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration=tracking,
    )


def test_load_above_the_target_scales_out_and_its_end_scales_in(fast):
    fast.deploy("tracked", variant("tracked", InitialInstanceCount=1))
    managed = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 3}
    managed["ScaleInPolicy"] = {"Strategy": "IDLE_RELEASE", "MaximumStepSize": 2, "CooldownInMinutes": 5}
    hosts = variant(None, InitialInstanceCount=1, ManagedInstanceScaling=managed)
    del hosts["ModelName"]
    create = fast.sagemaker.create_endpoint_config
    create(EndpointConfigName="hosting", ProductionVariants=[hosts], ExecutionRoleArn=ROLE)
    fast.sagemaker.create_endpoint(EndpointName="hosting", EndpointConfigName="hosting")
    fast.wait_in_service("hosting")
    # All eight accelerators of an instance: each copy needs one of its own.
    whole = {"NumberOfAcceleratorDevicesRequired": 8, "MinMemoryRequiredInMb": 1024}
    fast.sagemaker.create_inference_component(
        InferenceComponentName="copied",
        EndpointName="hosting",
        VariantName="AllTraffic",
        Specification={"Container": {"Image": "vllm"}, "ComputeResourceRequirements": whole},
        RuntimeConfig={"CopyCount": 1},
    )
    scaling = fast.client("application-autoscaling")
    variant_metric = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    track(scaling, "endpoint/tracked/variant/AllTraffic", "variant:DesiredInstanceCount", variant_metric)

    def instances(endpoint):
        return fast.sagemaker.describe_endpoint(EndpointName=endpoint)["ProductionVariants"][0]["CurrentInstanceCount"]

    def copies():
        described = fast.sagemaker.describe_inference_component(InferenceComponentName="copied")
        return described["InferenceComponentStatus"] == "InService" and described["RuntimeConfig"]["CurrentCopyCount"]

    eventually(lambda: copies() == 1)
    copy_metric = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    track(scaling, "inference-component/copied", "inference-component:DesiredCopyCount", copy_metric)

    component = {"InferenceComponentName": "copied"}
    # A little goes on all the time, also while instances and copies leave.
    with calling(fast, 1, "tracked"), calling(fast, 1, "hosting", **component):
        assert (instances("tracked"), copies(), instances("hosting")) == (1, 1, 1)
        with calling(fast, 9, "tracked"), calling(fast, 9, "hosting", **component):
            eventually(lambda: (instances("tracked"), copies(), instances("hosting")) == (3, 3, 3), within=60)
        eventually(lambda: (instances("tracked"), copies(), instances("hosting")) == (1, 1, 1), within=90)
    for resource in ("endpoint/tracked/variant/AllTraffic", "inference-component/copied"):
        activities = scaling.describe_scaling_activities(ServiceNamespace="sagemaker", ResourceId=resource)
        told = [one["Description"].rstrip(".").split()[-1] for one in activities["ScalingActivities"]]
        assert told[-1] == "3" and told[0] == "1", f"the newest first: {told}"
        assert all("two-each" in one["Cause"] for one in activities["ScalingActivities"])
