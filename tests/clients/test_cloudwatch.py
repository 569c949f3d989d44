"""CloudWatch and Application Auto Scaling, by boto3."""

import datetime

import pytest

from aws_clients import eventually, question, variant

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
