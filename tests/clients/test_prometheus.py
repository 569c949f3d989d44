"""A real Prometheus that scrapes the router: rules and Grafana's panels find what they ask for."""

import json
import pathlib
import re
import socket
import subprocess
import time

import httpx2
import pytest

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
RULES = PACKAGING / "prometheus/isotherm.rules.yaml"
WITHIN = 40


def test_rules_are_well_formed_and_fire_when_they_should(needs):
    promtool = needs("promtool")
    for command in (["check", "rules", RULES], ["test", "rules", RULES.with_name("isotherm.rules.test.yaml")]):
        ran = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_expression_finds_data(prometheus):
    expressions = [(panel["title"], target["expr"]) for panel in dashboard()["panels"] for target in panel["targets"]]
    rules = prometheus.get("/api/v1/rules")["groups"]
    recorded = [(rule["name"], rule["query"]) for group in rules for rule in group["rules"] if rule["type"] == "recording"]
    assert len(expressions) > 20 and len(recorded) > 5
    missing = dict(expressions + recorded)
    deadline = time.monotonic() + WITHIN
    while missing and time.monotonic() < deadline:
        time.sleep(1)
        missing = {name: query for name, query in missing.items() if not prometheus.finds(query)}
    assert not missing
    # More than one expression can stand in a panel: each is asked once more by itself.
    assert [(name, query) for name, query in expressions if not prometheus.finds(query)] == []


def test_what_is_told_by_instance_names_the_engines(prometheus):
    """A server that scrapes calls the router `instance`: no expression may take that for an engine."""
    of = lambda query: {sample["metric"].get("instance_id") for sample in prometheus.get("/api/v1/query", query=query)["result"]}
    deadline = time.monotonic() + WITHIN
    while of("isotherm:instance_prompt_tokens:share_rate5m") != {"AllTraffic-0", "AllTraffic-1"}:
        assert time.monotonic() < deadline, of("isotherm_instance_up")
        time.sleep(1)
    assert of("sum by (instance_id) (isotherm_instance_up)") == {"AllTraffic-0", "AllTraffic-1"}
    assert not prometheus.get("/api/v1/query", query='{exported_instance!=""}')["result"]
    texts = [target["expr"] + target.get("legendFormat", "") for panel in dashboard()["panels"] for target in panel["targets"]]
    of_engines = [text for text in texts + [RULES.read_text()] if "on (instance, job)" not in text]
    assert not [text for text in of_engines if re.search(r"\binstance\b(?! )[,)}]", text)]


def test_the_dashboard_can_be_imported():
    shown = dashboard()
    assert [given["name"] for given in shown["__inputs"]] == ["DS_PROMETHEUS"]
    assert {variable["name"] for variable in shown["templating"]["list"]} == {"endpoint", "variant"}
    assert len({panel["id"] for panel in shown["panels"]}) == len(shown["panels"])


def dashboard():
    return json.loads((PACKAGING / "grafana/isotherm.json").read_text())


class Prometheus:
    def __init__(self, url):
        self.url = url

    def get(self, path, **query):
        answer = httpx2.get(self.url + path, params=query).raise_for_status().json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def finds(self, expression):
        """Whether the expression has a number, with Grafana's variables as they are at first."""
        for name, value in {"$__rate_interval": "10s", "$endpoint": ".+", "$variant": ".+"}.items():
            expression = expression.replace(name, value)
        # Rules look back five minutes, which a test has not lived.
        found = self.get("/api/v1/query", query=expression.replace("[5m]", "[10s]"))["result"]
        return any(sample["value"][1] != "NaN" for sample in found)


@pytest.fixture
def prometheus(start, needs, tmp_path):
    """Scrapes a router under ADAPTIVE, which has every figure, each second while requests come."""
    binary = needs("prometheus")
    router = start("up", "--engines", "2", "--speed", "50", "--strategy", "adaptive")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{RULES}']\n"
        f"scrape_configs: [{{job_name: isotherm, static_configs: [{{targets: ['{router.admin.split('//')[1]}']}}]}}]\n"
    )
    command = [binary, f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address={address}"]
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    client = subprocess.Popen(["sh", "-c", requests(router)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"http://{address}/-/ready", tmp_path / "log")
        yield Prometheus(f"http://{address}")
    finally:
        for child in (client, process):
            child.kill()
            child.wait()


def requests(router):
    """A shell line that asks the same question again and again, for no longer than the test may take."""
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]
    content = "What is an isotherm? " * 200
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 4, "stream": True,
                       "stream_options": {"include_usage": True}})
    ask = f"curl -s {router.url}/v1/chat/completions -H 'content-type: application/json' -d '{body}'"
    return f"for i in $(seq 300); do {ask}; sleep 0.2; done"


def wait_for(url, log):
    deadline = time.monotonic() + WITHIN
    while True:
        try:
            if httpx2.get(url).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
