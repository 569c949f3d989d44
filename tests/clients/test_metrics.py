"""What a scrape finds: complete from the first moment on, as documented; and promtool, Prometheus' own judge of metrics."""

import pathlib
import re
import subprocess
import time

import httpx2


PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/observability.md"

# What only traffic can name or tell, only ADAPTIVE expects, and only some engines have.
COMES_LATER = {
    "isotherm_model_requests_total", "isotherm_expected_cached_tokens_total", "isotherm_index_bytes",
    "isotherm_instance_request_share", "isotherm_hot_prefix_share", "isotherm_engine_gpu_memory_bytes",
}


def test_every_documented_metric_is_there_before_the_first_request_and_no_other(start):
    router = start("up", "--engines", "2", "--speed", "50")
    documented = set(re.findall(r"^\| `((?:isotherm|process)_[a-z_]+)` \|", PAGE.read_text(), re.M))
    assert len(documented) > 55
    # Engines are read, and shadow strategies begin, within seconds of the start.
    for _ in range(100):
        text = httpx2.get(router.admin + "/metrics").raise_for_status().text
        shown = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
        if documented - shown <= COMES_LATER:
            break
        time.sleep(0.1)
    assert documented - shown <= COMES_LATER and shown <= documented, (documented - shown, shown - documented)
    counters = re.findall(r"^(isotherm_\w+_total)\{.*\} (\S+)$", text, re.M)
    unequal = {name for name, value in counters if float(value) != 0 and "engine" not in name}
    assert unequal == set(), "nothing was asked yet"


def test_promtool_finds_nothing_to_say(router, needs):
    promtool = needs("promtool")
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
    httpx2.post(router.url + "/v1/chat/completions", json=body).raise_for_status()
    metrics = httpx2.get(router.admin + "/metrics").raise_for_status()
    assert metrics.headers["content-type"].startswith(("text/plain", "application/openmetrics-text"))
    check = subprocess.run([promtool, "check", "metrics"], input=metrics.text, capture_output=True, text=True)
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
