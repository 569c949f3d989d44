"""CloudWatch and Application Auto Scaling, by boto3."""

import datetime
import json

import pytest

from aws_clients import Aws, eventually, question, variant
from containers import Container

DIMENSIONS = [{"Name": "EndpointName", "Value": "measured"}, {"Name": "VariantName", "Value": "AllTraffic"}]
RESOURCE = "endpoint/scaled/variant/AllTraffic"
TARGET = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": RESOURCE,
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


@pytest.fixture(scope="module")
def cloudwatch(aws):
    return aws.client("cloudwatch")


@pytest.fixture(scope="module", autouse=True)
def scaling(aws):
    """What takes its time, begun for all tests at once."""
    aws.deploy("measured")
    for number in range(6):
        aws.invoke("measured", question(number))
    aws.deploy("scaled", variant("scaled", InitialInstanceCount=1))
    scaling = aws.client("application-autoscaling")
    scaling.register_scalable_target(**TARGET, MinCapacity=2, MaxCapacity=4)
    return scaling


def span():
    now = datetime.datetime.now(datetime.timezone.utc)
    return dict(StartTime=now - datetime.timedelta(minutes=5), EndTime=now + datetime.timedelta(minutes=1))


def test_what_endpoints_do_becomes_metrics(cloudwatch):
    def sum_of(namespace, name, statistic="Sum"):
        answer = cloudwatch.get_metric_statistics(
            Namespace=namespace, MetricName=name, Dimensions=DIMENSIONS, Period=60, Statistics=[statistic], **span()
        )
        return sum(point[statistic] for point in answer["Datapoints"])

    eventually(lambda: sum_of("AWS/SageMaker", "Invocations") == 6)
    assert sum_of("AWS/SageMaker", "Invocation4XXErrors") == 0
    assert sum_of("AWS/SageMaker", "ModelLatency", "Maximum") > 0
    names = {
        metric["MetricName"]
        for page in cloudwatch.get_paginator("list_metrics").paginate(Dimensions=DIMENSIONS)
        for metric in page["Metrics"]
    }
    assert {"Invocations", "InvocationsPerInstance", "OverheadLatency", "Spills"} <= names


TRITON = """
nv_trt_llm_request_metrics{{model="tensorrt_llm",request_type="active",version="1"}} 1
nv_gpu_utilization{{gpu_uuid="GPU-a"}} {gpu}
nv_gpu_utilization{{gpu_uuid="GPU-b"}} 0.5
nv_gpu_memory_total_bytes{{gpu_uuid="GPU-a"}} 80e9
nv_gpu_memory_used_bytes{{gpu_uuid="GPU-a"}} 60e9
nv_cpu_utilization 0.25
nv_cpu_memory_total_bytes 100e9
nv_cpu_memory_used_bytes 10e9
"""


def test_how_busy_machines_are_becomes_metrics_where_engines_tell(start, tmp_path):
    containers = [Container() for _ in range(3)]
    for container, gpu in zip(containers, (0.5, 1.0, 0.5), strict=True):
        container.server.metrics = TRITON.format(gpu=gpu)
    urls = ", ".join(container.url for container in containers)
    configuration = tmp_path / "isotherm.yaml"
    configuration.write_text(f"aws: {{ data_dir: state, providers: [{{ static: {{ urls: [{urls}] }} }}] }}\n")
    own = Aws(start("serve", "--config", str(configuration)).url)
    own.deploy("watched")
    own.place(own.host("watched-hosts"), "watched-copy")
    cloudwatch = own.client("cloudwatch")

    def values(namespace, statistic, name, **dimensions):
        dimensions = [{"Name": key, "Value": value} for key, value in dimensions.items()]
        answer = cloudwatch.get_metric_statistics(
            Namespace=namespace, MetricName=name, Dimensions=dimensions, Period=60, Statistics=[statistic], **span()
        )
        return {point[statistic] for point in answer["Datapoints"]}

    endpoints, components = "/aws/sagemaker/Endpoints", "/aws/sagemaker/InferenceComponents"
    of_variant = dict(EndpointName="watched", VariantName="AllTraffic")
    wait = dict(within=60)
    eventually(lambda: values(endpoints, "Maximum", "GPUUtilization", **of_variant) == {150.0}, **wait)
    eventually(lambda: values(endpoints, "Minimum", "GPUUtilization", **of_variant) == {100.0}, **wait)
    for name, value in (
        ("CPUUtilizationNormalized", 25.0),
        ("MemoryUtilization", 10.0),
        ("GPUMemoryUtilization", 75.0),
    ):
        assert values(endpoints, "Average", name, **of_variant) == {value}, name
    of_instance = of_variant | {"InstanceId": "AllTraffic-0"}
    assert values(endpoints, "Average", "GPUUtilizationNormalized", **of_instance) <= {50.0, 75.0}
    copy = {"InferenceComponentName": "watched-copy"}
    eventually(lambda: values(components, "Average", "GPUUtilization", **copy) == {100.0}, **wait)
    copy |= {"InstanceId": "AllTraffic-0", "ContainerId": "watched-copy-0"}
    assert values(components, "Average", "GPUUtilization", **copy) == {100.0}
    for container in containers:
        container.stop()


def test_every_metric_of_sagemaker_has_its_dimensions(aws, cloudwatch):
    """What docs/sagemaker.md lists is there once requests came, with the dimensions that it says."""
    both = ["Invocations", "Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors", "ModelLatency"]
    both += ["OverheadLatency", "MidStreamErrors"]
    streamed = ["FirstChunkLatency", "FirstChunkModelLatency", "FirstChunkOverheadLatency"]
    aws.place(aws.host("counted-hosts"), "counted")
    aws.place("counted-hosts", "counted-none", copies=0)
    with pytest.raises(aws.runtime.exceptions.ValidationError, match="no capacity"):
        aws.invoke("counted-hosts", question(1), InferenceComponentName="counted-none")
    member = {"InferenceComponentName": "counted"}
    body = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 4, "stream": True}
    for endpoint, members in (("measured", {}), ("counted-hosts", member)):
        aws.invoke(endpoint, question(1), **members)
        stream = aws.runtime.invoke_endpoint_with_response_stream
        list(stream(EndpointName=endpoint, Body=json.dumps(body), **members)["Body"])
    variant_only = ["InvocationsPerInstance", "ConcurrentRequestsPerModel"]
    component_only = ["InvocationsPerCopy", "ConcurrentRequestsPerCopy"]
    variant_of = lambda endpoint: {"EndpointName": endpoint, "VariantName": "AllTraffic"}  # noqa: E731
    instance = dict(InstanceId="AllTraffic-0")
    copy = variant_of("counted-hosts") | member | instance | {"ContainerId": "counted-0"}
    sets = [
        (variant_of("measured"), both + streamed + variant_only),
        (variant_of("counted-hosts"), both + streamed + ["InvocationsPerInstance"]),
        (member, both + streamed + component_only),
        (copy, both + streamed),
        ({"InferenceComponentName": "counted-none"}, ["NoCapacityInvocationFailures"]),
    ]

    def missing():
        pages = cloudwatch.get_paginator("list_metrics").paginate(Namespace="AWS/SageMaker")
        there = {
            (metric["MetricName"], tuple(sorted((one["Name"], one["Value"]) for one in metric["Dimensions"])))
            for page in pages
            for metric in page["Metrics"]
        }
        wanted = {(name, tuple(sorted(dimensions.items()))) for dimensions, names in sets for name in names}
        return wanted - there

    def all_are_there():
        assert not missing()
        return True

    eventually(all_are_there, within=20)
    by_instance = cloudwatch.list_metrics(Namespace="AWS/SageMaker", MetricName="Invocations", Dimensions=DIMENSIONS)
    assert any(len(metric["Dimensions"]) == 3 for metric in by_instance["Metrics"])


def test_values_of_ones_own_are_kept_and_searched(cloudwatch):
    data = [
        {"MetricName": "Latency", "Dimensions": [{"Name": "Host", "Value": host}], "Value": value, "Unit": "Seconds"}
        for host, value in (("a", 1), ("a", 3), ("b", 5))
    ]
    cloudwatch.put_metric_data(Namespace="Ours", MetricData=data)
    metric = {"Namespace": "Ours", "MetricName": "Latency", "Dimensions": [{"Name": "Host", "Value": "a"}]}
    search = "SEARCH('{Ours,Host} MetricName=\"Latency\"', 'Maximum', 60)"
    queries = [
        {"Id": "one", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Average"}},
        {"Id": "all", "Expression": search},
    ]
    answer = cloudwatch.get_metric_data(MetricDataQueries=queries, **span())["MetricDataResults"]
    values = {result["Label"] if result["Id"] == "all" else "one": result["Values"] for result in answer}
    assert values.pop("one") == [2.0] and sorted(values.values()) == [[3.0], [5.0]]


def test_many_values_come_compressed(cloudwatch):
    data = [{"MetricName": "Many", "Dimensions": [{"Name": "Number", "Value": str(n)}], "Value": n} for n in range(400)]
    cloudwatch.put_metric_data(Namespace="Compressed", MetricData=data)
    pages = cloudwatch.get_paginator("list_metrics").paginate(Namespace="Compressed")
    assert sum(len(page["Metrics"]) for page in pages) == 400


def test_an_endpoint_is_scaled_between_its_bounds_and_by_an_alarm(aws, cloudwatch, scaling):
    def instances():
        return aws.sagemaker.describe_endpoint(EndpointName="scaled")["ProductionVariants"][0]["CurrentInstanceCount"]

    eventually(lambda: instances() == 2)

    tracking = {
        "TargetValue": 5.0,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
        },
    }
    put = scaling.put_scaling_policy
    put(
        **TARGET,
        PolicyName="busy",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration=tracking,
    )
    one_more = {"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}
    step = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [one_more], "Cooldown": 0}
    arn = put(**TARGET, PolicyName="more", PolicyType="StepScaling", StepScalingPolicyConfiguration=step)["PolicyARN"]
    policies = scaling.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=RESOURCE)["ScalingPolicies"]
    assert {policy["PolicyName"] for policy in policies} == {"busy", "more"}

    cloudwatch.put_metric_alarm(
        AlarmName="queue",
        Namespace="Ours",
        MetricName="Queue",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
        AlarmActions=[arn],
    )
    cloudwatch.set_alarm_state(AlarmName="queue", StateValue="ALARM", StateReason="many wait")
    eventually(lambda: instances() == 3)
    activities = scaling.describe_scaling_activities(ServiceNamespace="sagemaker", ResourceId=RESOURCE)
    causes = [activity["Cause"] for activity in activities["ScalingActivities"]]
    assert len(causes) == 2 and "queue" in causes[0] and "minimum capacity" in causes[1]
    cloudwatch.delete_alarms(AlarmNames=["queue"])
    scaling.deregister_scalable_target(**TARGET)
    assert (
        scaling.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[RESOURCE])["ScalableTargets"] == []
    )
