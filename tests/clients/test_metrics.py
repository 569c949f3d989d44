"""promtool, Prometheus' own judge of metrics."""

import subprocess

import httpx2


def test_promtool_finds_nothing_to_say(router, needs):
    promtool = needs("promtool")
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]
    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
    httpx2.post(router.url + "/v1/chat/completions", json=body).raise_for_status()
    metrics = httpx2.get(router.admin + "/metrics").raise_for_status()
    assert metrics.headers["content-type"].startswith(("text/plain", "application/openmetrics-text"))
    check = subprocess.run([promtool, "check", "metrics"], input=metrics.text, capture_output=True, text=True)
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
