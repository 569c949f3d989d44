"""@aws-sdk/client-sagemaker-runtime on Node."""

import json
import os
import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).with_name("node") / "invoke.cjs"


def test_the_sdk_for_javascript_invokes_streams_and_reads_errors(aws, needs):
    node, endpoint = needs("node"), aws.deploy("node")
    environment = {**os.environ, **aws.environment, "AWS_REGION": "us-east-1"}
    ended = subprocess.run(
        [node, str(SCRIPT), endpoint], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    said = json.loads(ended.stdout)
    assert said["InvokedProductionVariant"] == "AllTraffic" and said["answer"][0]["generated_text"]
    assert len(said["parts"]) > 3 and "".join(said["parts"]).endswith("data: [DONE]\n\n")
    assert said["error"] == {
        "name": "ValidationError",
        "message": "Endpoint nothing of account 123456789012 not found.",
    }
