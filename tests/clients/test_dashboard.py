"""The dashboard's files and what it asks for, as a browser gets them; and the same in a terminal."""

import json
import os
import pathlib
import re
import subprocess
import time

import httpx2

from conftest import BINARY


def test_the_page_comes_whole_and_lets_nothing_else_run(router):
    page = httpx2.get(router.admin + "/").raise_for_status()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    for name in re.findall(r'(?:src|href)="(\w+\.\w+)"', page.text) + ["draw.js", "words.js", "sentences.js"]:
        assert httpx2.get(f"{router.admin}/{name}").raise_for_status().text


def test_no_other_site_reaches_it_through_a_name_of_its_own(router):
    assert httpx2.get(router.admin + "/", headers={"host": "evil.example"}).status_code == 421


def test_the_overview_is_for_those_who_hold_the_token(router):
    assert httpx2.get(router.admin + "/api/overview").status_code == 401
    headers = {"authorization": f"Bearer {token_file(router).read_text().strip()}"}
    overview = httpx2.get(router.admin + "/api/overview?points=0", headers=headers).raise_for_status().json()
    assert [len(variant["instances"]) for variant in overview["variants"]] == [3]
    assert httpx2.get(router.admin + "/api/overview?point=0", headers=headers).status_code == 400


def test_the_terminal_shows_the_same_fleet(router):
    command = [BINARY, "top", "--once", "--admin", router.admin, "--token-file", str(token_file(router))]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=20, env={"PATH": os.environ["PATH"]})
    assert shown.returncode == 0, shown.stderr
    assert "3 of 3 instances up" in shown.stdout and "PREFIX_AWARE" in shown.stdout


def test_every_view_names_a_hot_prefix_alike(router, tmp_path):
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]
    for number in range(60):
        messages = [{"role": "system", "content": "Warm is the way. " * 400}, {"role": "user", "content": f"Question {number}?"}]
        answer = httpx2.post(router.url + "/v1/chat/completions", json={"model": model, "messages": messages, "max_tokens": 2})
    key = answer.raise_for_status().headers["x-isotherm-key"]
    headers = {"authorization": f"Bearer {token_file(router).read_text().strip()}"}
    deadline = time.monotonic() + 10
    while not (hot := httpx2.get(router.admin + "/api/overview?points=0", headers=headers).json()["hot_prefixes"]) or hot[0]["key"] != key:
        assert time.monotonic() < deadline, (key, hot)
        time.sleep(0.2)
    flags = ["--admin", router.admin, "--token-file", str(token_file(router))]
    shown = subprocess.run([BINARY, "top", "--once", *flags], capture_output=True, text=True, timeout=20, env={"PATH": os.environ["PATH"]})
    assert key[:16] in shown.stdout
    report = tmp_path / "report.json"
    command = [BINARY, "analyze", "--router", router.admin, "--token-file", str(token_file(router)), "--json", str(report)]
    analysed = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]})
    assert analysed.returncode == 0 and f"Hot prefix {key[:8]}" in analysed.stdout, analysed.stdout + analysed.stderr
    assert json.loads(report.read_text())["findings"]["hot_prefixes"][0]["hash"] == key[:16]


def token_file(router):
    return pathlib.Path(re.search(r"token in (\S+)\)", "".join(router.lines))[1])
