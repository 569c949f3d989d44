"""curl, as people type it."""

import json
import subprocess

import httpx2
import pytest


@pytest.fixture(scope="module")
def curl(needs):
    program = needs("curl")

    def curl(*arguments, stdin=None):
        command = [program, "--silent", "--show-error", "--max-time", "30", *arguments]
        return subprocess.run(command, input=stdin, check=True, capture_output=True, text=True).stdout

    return curl


def request(router, **fields):
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]
    return {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, **fields}


def json_post(router, body, *options):
    return [*options, router.url + "/v1/chat/completions", "--header", "content-type: application/json", "--data-binary", body]


def test_a_plain_request(router, curl):
    answer = json.loads(curl(*json_post(router, json.dumps(request(router)))))
    assert answer["choices"][0]["message"]["content"]


def test_a_stream_ends_with_done(router, curl):
    lines = curl(*json_post(router, json.dumps(request(router, stream=True)), "--no-buffer")).splitlines()
    events = [line for line in lines if line]
    assert len(events) > 2 and all(line.startswith("data: ") for line in events)
    assert events[-1] == "data: [DONE]"


def test_http_2_without_an_upgrade(router, curl):
    answer = curl(*json_post(router, json.dumps(request(router)), "--http2-prior-knowledge", "--write-out", "\n%{http_version}"))
    body, version = answer.rsplit("\n", 1)
    assert version == "2" and json.loads(body)["choices"]
    streamed = curl(*json_post(router, json.dumps(request(router, stream=True)), "--http2-prior-knowledge"))
    assert streamed.rstrip().endswith("data: [DONE]")


def test_a_large_body_announced_with_expect(router, curl):
    picture = "data:image/png;base64," + "A" * 4_000_000
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": picture}}]
    body = json.dumps(request(router, messages=[{"role": "user", "content": content}]))
    arguments = json_post(router, "@-", "--header", "Expect: 100-continue", "--write-out", "\n%{http_code}")
    answer, status = curl(*arguments, stdin=body).rsplit("\n", 1)
    assert status == "200" and json.loads(answer)["choices"]


@pytest.mark.parametrize("path", ["/v1/chat/completion", "/metrics", "/reset_prefix_cache", "/"])
def test_other_paths_are_404_in_json(router, curl, path):
    body, status, kind = curl(router.url + path, "--write-out", "\n%{http_code}\n%{content_type}").rsplit("\n", 2)
    assert status == "404" and kind.startswith("application/json")
    assert json.loads(body)["error"]["message"]


def test_a_wrong_method_is_405(router, curl):
    body, status = curl(router.url + "/v1/chat/completions", "--write-out", "\n%{http_code}").rsplit("\n", 1)
    assert status == "405" and json.loads(body)["error"]["message"]


def test_health_and_ping(router, curl):
    for path in ("/health", "/ping"):
        assert curl(router.url + path, "--output", "/dev/null", "--write-out", "%{http_code}") == "200"
