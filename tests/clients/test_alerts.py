"""Alarms of the router itself, as Alertmanager's receivers get them: each fires on its cause, and is over when that is."""

import concurrent.futures
import http.server
import json
import os
import subprocess
import threading
import time

import httpx2
import pytest

from conftest import BINARY

WITHIN = 60


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps every message."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ReceiverHandler)
        self.messages = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def last(self, alert):
        """What was said last of an alert, or nothing."""
        told = [one["status"] for message in list(self.messages) for one in message["alerts"] if one["labels"]["alertname"] == alert]
        return told[-1] if told else None

    def ever(self):
        return {one["labels"]["alertname"] for message in list(self.messages) for one in message["alerts"]}


class ReceiverHandler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.messages.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Engine:
    """One emulated engine in a process of its own, that can be killed and started again on its port."""

    def __init__(self, *flags):
        self.flags, self.port = flags, 0
        self.start()

    def start(self):
        command = [BINARY, "engine", "--port", str(self.port), "--speed", "100", *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={"PATH": os.environ["PATH"]})
        line = next(line for line in self.process.stdout if "http://" in line)
        self.url = "http://" + line.split("http://")[1].split()[0].rstrip(",.;)")
        self.port = int(self.url.rsplit(":", 1)[1])
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def faults(self, faults):
        httpx2.post(self.url + "/emulator/faults", json=faults).raise_for_status()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.shutdown()


@pytest.fixture
def engines():
    engines = [Engine(), Engine()]
    yield engines
    [engine.kill() for engine in engines]


@pytest.fixture
def router(start, engines, receiver, tmp_path):
    """Looks at the last ten seconds, and tells at once."""
    file = tmp_path / "isotherm.yaml"
    listed = ", ".join(f"{{ id: e{number}, url: '{engine.url}' }}" for number, engine in enumerate(engines))
    file.write_text(f"""
alerts:
  webhooks: ["http://127.0.0.1:{receiver.server_port}/"]
  window: 10s
  least_requests: 20
  hit_rate: {{ below: 0.3, for: 0s }}
  hot_prefix: {{ above: 0.4, skew: 1.05, for: 0s }}
  spills: {{ above: 0.1, for: 0s }}
  instance_ill: {{ for: 0s }}
  first_token: {{ p95: 300ms, for: 0s }}
  prefix_caching_off: {{ for: 0s }}
  replicas_disagree: {{ for: 0s }}
  cache_pressure: {{ enabled: false }}
  engine_restarted: {{ enabled: false }}
endpoints:
  - name: chat
    variants:
      - name: main
        engine_metrics: {{ interval: 1s }}
        routing: {{ strategy: PREFIX_AWARE, concurrency_threshold: 1 }}
        instances: [{listed}]
""")
    router = start("serve", "--config", str(file))
    yield router
    router.stop()


def ask(router, document, number):
    text = f"Document {document}. " + "All that is warm flows to what is cold. " * 150
    messages = [{"role": "system", "content": text}, {"role": "user", "content": f"Question {number}?"}]
    body = {"model": "llama-3.1-70b-instruct", "messages": messages, "max_tokens": 4, "stream": True,
            "stream_options": {"include_usage": True}}
    httpx2.post(router.url + "/v1/chat/completions", json=body, timeout=60)


class Traffic:
    """Clients that go on asking about some documents, so many at once, until they are stopped."""

    def __init__(self, router, documents, at_once, pause=0.02):
        self.going, self.number = True, 0
        self.pool = concurrent.futures.ThreadPoolExecutor(at_once)

        def client(number):
            while self.going:
                self.number += 1
                ask(router, (self.number * 7 + number) % documents, self.number)
                time.sleep(pause)

        self.clients = [self.pool.submit(client, number) for number in range(at_once)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.going = False
        self.pool.shutdown()


def until(condition, what):
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.1)


def test_one_prefix_in_a_crowd_is_hot_and_spills(router, receiver):
    rules = ("IsothermHotPrefix", "IsothermSpills")
    with Traffic(router, documents=1, at_once=6):
        until(lambda: all(receiver.last(rule) == "firing" for rule in rules), receiver.ever)
    until(lambda: all(receiver.last(rule) == "resolved" for rule in rules), receiver.ever)
    assert receiver.ever() <= {*rules, "IsothermSlowFirstToken"}
    assert router.metric("isotherm_alerts_firing") == 0


def test_an_instance_that_is_gone_is_ill_until_it_is_back(router, receiver, engines):
    engines[1].kill()
    until(lambda: receiver.last("IsothermInstanceIll") == "firing", receiver.ever)
    message = receiver.messages[-1]
    assert message["alerts"][0]["labels"]["instance"] == "e1" and message["status"] == "firing"
    engines[1].start()
    until(lambda: receiver.last("IsothermInstanceIll") == "resolved", receiver.ever)
    assert receiver.ever() == {"IsothermInstanceIll"}


def test_caches_that_are_off_lower_the_hit_rate(router, receiver, engines):
    [engine.faults({"no_prefix_caching": True}) for engine in engines]
    with Traffic(router, documents=4, at_once=1):
        until(lambda: receiver.last("IsothermLowHitRate") == "firing", receiver.ever)
        until(lambda: receiver.last("IsothermPrefixCachingOff") == "firing", receiver.ever)
        [engine.faults({}) for engine in engines]
        until(lambda: receiver.last("IsothermLowHitRate") == "resolved", receiver.ever)
        until(lambda: receiver.last("IsothermPrefixCachingOff") == "resolved", receiver.ever)
    assert receiver.ever() <= {"IsothermLowHitRate", "IsothermPrefixCachingOff"}


def test_first_tokens_that_are_late_are_told(router, receiver, engines):
    [engine.faults({"slow_factor": 1500}) for engine in engines]
    with Traffic(router, documents=4, at_once=8):
        until(lambda: receiver.last("IsothermSlowFirstToken") == "firing", receiver.ever)
        [engine.faults({}) for engine in engines]
        until(lambda: receiver.last("IsothermSlowFirstToken") == "resolved", receiver.ever)


def test_replicas_of_different_models_disagree_until_one_is_drained(start, receiver, tmp_path):
    receiver.messages.clear()
    engines = [Engine(), Engine("--model", "another")]
    file = tmp_path / "isotherm.yaml"
    listed = ", ".join(f"{{ id: e{number}, url: '{engine.url}' }}" for number, engine in enumerate(engines))
    file.write_text(f"""
alerts: {{ webhooks: ["http://127.0.0.1:{receiver.server_port}/"], replicas_disagree: {{ for: 0s }} }}
endpoints: [{{ name: chat, variants: [{{ name: main, instances: [{listed}] }}] }}]
""")
    router = start("serve", "--config", str(file))
    until(lambda: receiver.last("IsothermReplicasDisagree") == "firing", receiver.ever)
    description = receiver.messages[-1]["alerts"][0]["annotations"]["description"]
    assert "another" in description and "e1" in description
    drain = [BINARY, "instances", "drain", "e1", "--admin", router.admin]
    subprocess.run(drain, check=True, capture_output=True, timeout=20)
    until(lambda: receiver.last("IsothermReplicasDisagree") == "resolved", receiver.ever)
    assert receiver.ever() == {"IsothermReplicasDisagree"}
    [engine.kill() for engine in engines]
