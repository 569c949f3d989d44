"""The shell script that sends three questions with one policy text to `/invocations`."""

import json
import pathlib
import re
import subprocess

SCRIPT = pathlib.Path(__file__).with_name("three-questions.sh")


def test_three_questions_are_answered_by_one_instance(router, needs):
    needs("curl")
    output = subprocess.run(["sh", str(SCRIPT), router.url], check=True, capture_output=True, text=True).stdout
    instances = re.findall(r"^x-isotherm-instance: (\S+)", output, re.MULTILINE)
    assert len(instances) == 3 and len(set(instances)) == 1, output
    bodies = [json.loads(line) for line in output.splitlines() if line.startswith(("{", "["))]
    assert len(bodies) == 3 and all("generated_text" in json.dumps(body) for body in bodies)
