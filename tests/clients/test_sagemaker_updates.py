"""Updates of endpoints while streams run, by boto3: rolling with bake time, taken back by an alarm, scaled in; and what
descriptions say of a strategy that runs as another one."""

import json

from aws_clients import ROLE, Load, eventually, variant

ONE = {"Type": "INSTANCE_COUNT", "Value": 1}


def streams_of(aws, endpoint):
    """Twelve callers, each with one stream after the other; one that does not end with its `[DONE]` is a failure."""

    def ask(body):
        body = {"messages": [{"role": "user", "content": body["inputs"]}], "max_tokens": 60, "stream": True}
        answer = aws.runtime.invoke_endpoint_with_response_stream(
            EndpointName=endpoint, ContentType="application/json", Body=json.dumps(body)
        )
        events = b"".join(event["PayloadPart"]["Bytes"] for event in answer["Body"])
        assert events.endswith(b"data: [DONE]\n\n"), events[-200:]

    return Load(aws, endpoint, callers=12, ask=ask)


def rolling(wait, alarm):
    policy = {"MaximumBatchSize": ONE, "WaitIntervalInSeconds": wait, "MaximumExecutionTimeoutInSeconds": 600}
    return {"RollingUpdatePolicy": policy, "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": alarm}]}}


def test_a_rolling_update_bakes_each_batch_and_an_alarm_takes_it_back_and_no_stream_breaks(aws):
    name = aws.deploy("rolled", variant("rolled", InitialInstanceCount=4))
    aws.sagemaker.create_model(ModelName="rolled-2", PrimaryContainer={"Image": "vllm:2"}, ExecutionRoleArn=ROLE)
    new = [variant("rolled-2", InitialInstanceCount=4)]
    aws.sagemaker.create_endpoint_config(EndpointConfigName="rolled-2", ProductionVariants=new)
    cloudwatch = aws.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="rolled-slow",
        Namespace="Ours",
        MetricName="Slowness",
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
    )
    describe = lambda: aws.sagemaker.describe_endpoint(EndpointName=name)  # noqa: E731
    update = aws.sagemaker.update_endpoint

    def batches():
        """How many instances of the new configuration are there, and what happens to it."""
        pending = describe().get("PendingDeploymentSummary", {}).get("ProductionVariants", [{}])[0]
        stages = [status["Status"] for status in pending.get("VariantStatus", [])]
        return pending.get("CurrentInstanceCount", 0), stages

    before = set(aws.router.instances(name))
    with streams_of(aws, name) as streams:
        streams.wait_for(12, within=60)
        update(EndpointName=name, EndpointConfigName="rolled-2", DeploymentConfig=rolling(1, "rolled-slow"))
        seen = []

        def is_done():
            seen.append(batches())
            return describe()["EndpointStatus"] == "InService"

        eventually(is_done, within=60)
        described = describe()
        assert described["EndpointConfigName"] == "rolled-2" and "FailureReason" not in described
        assert described["LastDeploymentConfig"]["RollingUpdatePolicy"]["MaximumBatchSize"] == ONE
        baking = {count for count, stages in seen if stages == ["Baking"]}
        assert {1, 2, 3} <= baking, f"each batch is watched: {seen}"
        assert before.isdisjoint(aws.router.instances(name))

        update(EndpointName=name, EndpointConfigName="rolled", DeploymentConfig=rolling(30, "rolled-slow"))
        eventually(lambda: batches() == (1, ["Baking"]), within=30)
        serving = set(aws.router.instances(name))
        cloudwatch.set_alarm_state(AlarmName="rolled-slow", StateValue="ALARM", StateReason="it got slow")
        eventually(lambda: describe()["EndpointStatus"] == "RollingBack")
        described = aws.wait_in_service(name)
        assert "rolled-slow" in described["FailureReason"]
        assert described["EndpointConfigName"] == "rolled-2"
        assert described["ProductionVariants"][0]["CurrentInstanceCount"] == 4
        assert len(set(aws.router.instances(name)) & serving) >= 3, "what was there before serves on"
        streams.wait_for(24, within=60)
    assert streams.failures == [] and streams.done > 50
    cloudwatch.delete_alarms(AlarmNames=["rolled-slow"])


def test_scaling_in_under_streams_breaks_none(aws):
    name = aws.deploy("shrunk", variant("shrunk", InitialInstanceCount=4))
    with streams_of(aws, name) as streams:
        streams.wait_for(24, within=60)
        for count in (2, 4, 1):
            desired = [{"VariantName": "AllTraffic", "DesiredInstanceCount": count}]
            aws.sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=desired)
            described = aws.wait_in_service(name)["ProductionVariants"][0]
            assert described["CurrentInstanceCount"] == count == len(aws.router.instances(name))
            streams.wait_for(24, within=60)
    assert streams.failures == []


def test_kv_aware_says_what_it_runs_as_for_as_long_as_it_serves(aws, start, tmp_path):
    said = "KV_AWARE runs as ADAPTIVE: engines' cache events are not read yet"
    configuration = tmp_path / "isotherm.yaml"
    configuration.write_text("aws: { data_dir: state, providers: [{ emulated: { speed: 20 } }] }\n")
    served = start("serve", "--config", str(configuration))
    for router in (aws.router, served):
        there = type(aws)(router.url)
        name = there.deploy("exact", variant("exact", RoutingConfig={"RoutingStrategy": "KV_AWARE"}))
        eventually(lambda: any(said in line for line in router.lines))

        def status():
            described = there.sagemaker.describe_endpoint(EndpointName=name)
            assert described["EndpointStatus"] == "InService"
            return described["ProductionVariants"][0].get("VariantStatus")

        (told,) = eventually(status)
        assert (told["Status"], told["StatusMessage"]) == ("InService", said) and told["StartTime"]
        assert there.sagemaker.describe_endpoint_config(EndpointConfigName=name)["ProductionVariants"][0][
            "RoutingConfig"
        ] == {"RoutingStrategy": "KV_AWARE"}
    # Who starts it again is told again.
    served.stop()
    again = start("serve", "--config", str(configuration))
    eventually(lambda: any(said in line for line in again.lines))
    # What runs as it was asked to says nothing.
    name = aws.deploy("plain")
    described = aws.sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"][0]
    assert "VariantStatus" not in described
