"""README's way from SageMaker to one's own machines, run as it is written there."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

from conftest import BINARY, ROOT

TITLE = "From SageMaker to your own machines in five commands"
# An emulated engine, where README starts `vllm serve MODEL --port PORT`.
VLLM = f'#!/bin/sh\nexec "{BINARY}" engine --model "$2" --port "$4" --speed 20\n'


def test_five_commands_lead_from_sagemaker_to_ones_own_machines(tmp_path):
    for port in (8080, 8081):
        if in_use(port):
            (pytest.fail if os.environ.get("CI") in ("true", "1") else pytest.skip)(f"port {port} is in use")
    blocks = blocks_of(TITLE)
    (tmp_path / "machines.yaml").write_text(blocks["yaml"][0])
    commands, calls, models = blocks["sh"]
    assert len(commands.splitlines()) == 5
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {
        "vllm": VLLM,
        "isotherm": f'#!/bin/sh\nexec "{BINARY}" "$@"\n',
        "aws": f'#!/bin/sh\nexec "{sys.executable}" "{pathlib.Path(sys.executable).with_name("aws")}" "$@"\n',
        "python3": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
    }.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    script = "set -e\ntrap 'kill $!; wait $!' EXIT\n" + models + commands + calls
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ISOTHERM_"))}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    ended = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    answer = tmp_path / "answer.json"
    assert answer.is_file(), ended.stdout + ended.stderr
    assert json.loads(answer.read_text())["choices"][0]["message"]["content"]
    assert json.loads(answer.read_text())["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert '"InvokedProductionVariant": "AllTraffic"' in ended.stdout


def in_use(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def blocks_of(title):
    """The chapter's blocks of code, by language, in their order."""
    chapter = (ROOT / "README.md").read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    blocks = {}
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL):
        blocks.setdefault(language, []).append(text)
    return blocks
