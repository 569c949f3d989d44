"""Starts the real binary for the real clients, and says by name what cannot be tried on this machine."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import httpx2
import pytest

from aws_clients import Aws

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ISOTHERM_BIN", str(ROOT / "target/debug/isotherm"))
READY_WITHIN = 30


class Router:
    """A running `isotherm up` or `isotherm serve`."""

    def __init__(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ISOTHERM_")}
        command = [BINARY, *arguments, "--port", "0", "--admin-port", "0"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines = []
        self.url = self.admin = None
        ready = threading.Event()
        threading.Thread(target=self._read, args=(ready,), daemon=True).start()
        if not ready.wait(READY_WITHIN) or self.url is None:
            self.stop()
            raise AssertionError(f"{command} is not ready:\n" + "".join(self.lines))

    def _read(self, ready):
        for line in self.process.stdout:
            self.lines.append(line)
            words = line.split()
            if words[:1] == ["admin"]:
                self.admin = words[1]
            if line.startswith("ready "):
                self.url = line.split()[1]
                ready.set()
        ready.set()

    def stop(self):
        self.process.kill()
        self.process.wait()

    def metric(self, name, **labels):
        """The sum over the series of this name that have these labels."""
        text = httpx2.get(self.admin + "/metrics").raise_for_status().text
        total = 0.0
        for line in text.splitlines():
            series = re.fullmatch(r"([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)(?: .*)?", line)
            if series and series[1] == name:
                own = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', series[2] or ""))
                if all(own.get(label) == value for label, value in labels.items()):
                    total += float(series[3])
        return total

    def instances(self, endpoint):
        """The addresses of an endpoint's instances, and since when each is there."""
        command = [BINARY, "instances", "list", "--json", "--admin", self.admin]
        listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["instances"]
        return {one["url"]: one["since"] for one in listed if one["endpoint"] == endpoint}

    def wait_until_idle(self, within):
        """Waits until nothing is in flight on any instance."""
        deadline = time.monotonic() + within
        while self.metric("isotherm_in_flight") > 0:
            assert time.monotonic() < deadline, f"requests are still in flight after {within} s"
            time.sleep(0.02)


@pytest.fixture(scope="session")
def router():
    """Three emulated engines, twenty times faster than real ones, behind the router."""
    router = Router("up", "--engines", "3", "--speed", "20")
    yield router
    router.stop()


@pytest.fixture(scope="session")
def aws(tmp_path_factory):
    """A router that everything of AWS's is pointed at, with emulated engines as instances."""
    kept = tmp_path_factory.mktemp("aws")
    router = Router("up", "--engines", "1", "--speed", "20", "--data-dir", str(kept))
    aws = Aws(router.url)
    aws.router, aws.s3 = router, kept / "s3"
    yield aws
    router.stop()


@pytest.fixture(scope="session")
def start():
    """Starts further routers, and stops them when the tests end."""
    routers = []

    def start(*arguments):
        routers.append(Router(*arguments))
        return routers[-1]

    yield start
    for router in routers:
        router.stop()


@pytest.fixture(scope="session")
def needs():
    """Finds a tool, or skips the test by the tool's name; in CI a skip is a failure."""

    def needs(tool):
        found = shutil.which(os.environ.get(tool.upper(), tool))
        if found is None:
            message = f"{tool} is not installed"
            if os.environ.get("CI") in ("true", "1"):
                pytest.fail(message)
            pytest.skip(message)
        return found

    return needs
