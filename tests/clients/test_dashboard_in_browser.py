"""The dashboard in a real browser: complete, for everyone (axe-core), at every width, in both languages, by keyboard.

ISOTHERM_PICTURES=FOLDER writes the pictures of docs/ there.
"""

import json
import os
import pathlib
import random
import re
import threading
import time
import urllib.parse

import httpx2
import pytest

from browser import Browser
from test_alerts import Engine

POLICY = "The traveller keeps every receipt. "
LOOKS = [
    {"width": 1400, "dark": False, "language": "en"},
    {"width": 1400, "dark": True, "language": "en"},
    {"width": 1400, "dark": True, "language": "zh"},
    {"width": 320, "dark": False, "language": "zh"},
    {"width": 320, "dark": True, "language": "en"},
]


@pytest.fixture(scope="module")
def browser(needs, tmp_path_factory):
    browser = Browser(needs("chromium"), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.stop()


@pytest.fixture(scope="module")
def axe():
    """The source of axe-core, from the packages for Node."""
    modules = os.environ.get("NODE_PATH")
    if not modules:
        message = "axe-core is not installed"
        pytest.fail(message) if os.environ.get("CI") in ("true", "1") else pytest.skip(message)
    return (pathlib.Path(modules) / "axe-core/axe.min.js").read_text()


@pytest.fixture(scope="module")
def watched(start):
    """A router that has served something, lost an instance, and spilled."""
    router = start("up", "--engines", "4", "--speed", "20")
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]

    def ask(policy, question, answer=16):
        messages = [{"role": "system", "content": f"Policy {policy}. " + POLICY * 150}, {"role": "user", "content": question}]
        usage = {"include_usage": True}
        body = {"model": model, "messages": messages, "max_tokens": answer, "stream": True, "stream_options": usage}
        httpx2.post(router.url + "/v1/chat/completions", json=body, timeout=30).raise_for_status()

    def some(first):
        for number in range(first, first + 36):
            ask(number * number % 9, f"Question {number}?")

    some(0)
    deadline = time.monotonic() + 60
    while router.metric("isotherm_spills_total") == 0:
        # On a busy machine, the first of a crowd may be answered before its last has come.
        assert time.monotonic() < deadline, "no crowd was large enough to spill"
        crowd = [threading.Thread(target=ask, args=(1, f"At once {number}?", 200)) for number in range(14)]
        [one.start() for one in crowd]
        [one.join() for one in crowd]
    wait_for_step(router)
    token = token_of(router)
    instance = overview(router, token)["hot_prefixes"][0]["holders"][0]["instance"]
    with admin(router, token) as client:
        client.post(f"/api/instances/{urllib.parse.quote(instance, safe='')}/drain").raise_for_status()
    wait_for_step(router)
    some(100)
    wait_for_step(router)
    router.token = token
    return router


def admin(router, token):
    return httpx2.Client(base_url=router.admin, headers={"authorization": f"Bearer {token}"})


def token_of(router):
    return pathlib.Path(re.search(r"token in (\S+)\)", "".join(router.lines))[1]).read_text().strip()


def overview(router, token):
    with admin(router, token) as client:
        return client.get("/api/overview").raise_for_status().json()


def wait_for_step(router):
    """Until the counters were read once more: every five seconds."""
    token = token_of(router)
    steps = lambda: (overview(router, token)["variants"][0]["series"]["time"] or [0])[-1]
    before, deadline = steps(), time.monotonic() + 12
    while steps() == before:
        assert time.monotonic() < deadline, "no step in 12 s"
        time.sleep(0.2)


def signed_in(browser, router, **look):
    page = browser.page(router.admin + "/", **look)
    page.wait_until("document.getElementById('sign-in') && !document.getElementById('sign-in').hidden")
    page.run(f"document.getElementById('token').value = {router.token!r}; document.querySelector('#sign-in button').click()")
    page.wait_until("!document.getElementById('board').hidden && document.querySelectorAll('figure svg').length >= 6")
    return page


def violations(page, axe):
    page.run(axe + "; 0")
    found = page.run("axe.run(document, { resultTypes: ['violations'] }).then(done => JSON.stringify(done.violations"
                     ".map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html)])))")
    return found


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: f"{look['width']}-{'dark' if look['dark'] else 'light'}-{look['language']}")
def test_nothing_keeps_anybody_out(browser, axe, watched, look):
    page = signed_in(browser, watched, **look)
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.wait_until("[...document.querySelectorAll('[data-chart] details')].every(one => one.querySelector('tbody'))")
    assert violations(page, axe) == "[]"
    assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert page.run("document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[look["language"]]


def test_the_sign_in_keeps_nobody_out(browser, axe, watched):
    page = browser.page(watched.admin + "/", width=320)
    page.wait_until("document.getElementById('sign-in') && !document.getElementById('sign-in').hidden")
    assert violations(page, axe) == "[]"
    page.run("document.getElementById('token').value = 'wrong'; document.querySelector('#sign-in button').click()")
    page.wait_until("document.getElementById('token-problem').textContent.length > 0")


def test_every_chart_shows_what_happened_and_has_its_table(browser, watched):
    page = signed_in(browser, watched)
    for chart in ("ttft", "hit", "shares", "flight", "reasons", "prefixes", "moves", "rivals"):
        assert page.run(f"document.querySelector('[data-chart={chart}] figure svg') !== null"), chart
        page.run(f"document.querySelector('[data-chart={chart}] details').open = true")
        page.wait_until(f"document.querySelectorAll('[data-chart={chart}] tbody tr').length > 0")
    text = page.run("document.body.innerText")
    for told in ("spill", "draining", "hot prefixes got another home", "AllTraffic"):
        assert told in text, told
    assert page.run("document.querySelectorAll('#requests tbody tr').length") > 10
    assert page.run("document.querySelectorAll('#verdicts tbody tr').length") > 10
    page.run("document.getElementById('verdict').value = 'miss'; document.getElementById('verdict').dispatchEvent(new Event('change'))")
    page.wait_until("[...document.querySelectorAll('#verdicts tbody .tag')].every(tag => tag.textContent === 'miss')")
    page.run("document.getElementById('analyse').click()")
    page.wait_until("document.getElementById('analysis').innerText.includes('requests:')")


def test_a_stranger_finds_what_matters(browser, watched):
    """Hit rate, gain over random, the hottest prefix, spill reasons, and why one given request missed, by their names."""
    page = signed_in(browser, watched)
    tile = lambda name: page.run(f"[...document.querySelectorAll('.tile')].find(one => one.firstChild.textContent === {name!r}).innerText")
    assert re.search(r"\n\d+\.\d %", tile("Hit rate")) and "expected" in tile("Hit rate")
    assert re.search(r"\n\+\d+\.\d\npoints; RANDOM would hit \d+\.\d %", tile("Gain over RANDOM")), tile("Gain over RANDOM")
    hottest = overview(watched, watched.token)["hot_prefixes"][0]["key"][:8]
    assert hottest in tile("Hottest prefix")
    reasons = page.run("document.querySelector('[data-chart=reasons] figure').textContent")
    assert "spill (home was full)" in reasons and "full by: concurrency threshold" in reasons
    model = httpx2.get(watched.url + "/v1/models").json()["data"][0]["id"]
    for policy in ("again and again", "never before"):
        messages = [{"role": "system", "content": policy * 300}, {"role": "user", "content": "Why?"}]
        body = {"model": model, "messages": messages, "max_tokens": 4}
        httpx2.post(watched.url + "/v1/chat/completions", json=body, headers={"x-request-id": policy.replace(" ", "-")}).raise_for_status()
    page.run("document.getElementById('request-id').value = 'never-before'; document.getElementById('ask-request').click()")
    page.wait_until("document.querySelector('#told dl')")
    told = page.run("document.getElementById('told').innerText")
    for words in ("miss", "messages[0] (system)", "Nearest earlier request", "Should be there", "0 of "):
        assert words in told, told
    page.run("document.querySelector('[data-request]').click()")
    page.wait_until("!document.getElementById('told').innerText.includes('never-before')")
    page.run("document.getElementById('request-id').value = 'nobody'; document.getElementById('ask-request').click()")
    page.wait_until("document.getElementById('told').innerText.includes('no request')")


def test_charts_are_drawn_for_the_room_there_is(browser, watched):
    page = signed_in(browser, watched, width=320)
    page.wait_until("document.querySelectorAll('figure svg').length >= 8")
    cut = "[...document.querySelectorAll('figure svg')].filter(svg => svg.getBoundingClientRect().width > svg.parentElement.clientWidth + 1)"
    assert page.run(f"{cut}.length") == 0
    beyond = """[...document.querySelectorAll('figure svg text')].filter(text => {
        const [own, whole] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
        return own.left < whole.left - 1 || own.right > whole.right + 1;
    }).map(text => text.textContent).join()"""
    assert page.run(beyond) == ""


def test_nothing_is_left_in_english(browser, watched):
    page = signed_in(browser, watched, language="zh")
    page.run("document.querySelectorAll('[data-chart] details').forEach(one => { one.open = true; })")
    page.wait_until("[...document.querySelectorAll('[data-chart] details')].every(one => one.querySelector('tbody'))")
    text = page.run("document.body.innerText")
    # Names and terms of the field stay: strategies, ids, settings, commands, roles of messages.
    for word in ("spill", "home", "started", "threshold", "undefined", "expected", "hit", "miss", "seconds"):
        assert not re.search(rf"(?<![\w`-]){word}\b", text), (word, re.findall(rf".*{word}.*", text)[:3])


@pytest.fixture(scope="module")
def warned(start, tmp_path_factory):
    """A router that warns: an instance is gone, another serves another model, one caches nothing, and all go to one home."""
    engines = [Engine(), Engine(), Engine("--model", "another"), Engine()]
    engines[0].faults({"no_prefix_caching": True})
    engines[3].kill()
    file = tmp_path_factory.mktemp("warned") / "isotherm.yaml"
    listed = ", ".join(f"{{ id: e{number}, url: '{engine.url}' }}" for number, engine in enumerate(engines))
    file.write_text(f"""
diagnostics: {{}}
alerts:
  least_requests: 10
  spills: {{ above: 0.01, for: 0s }}
  first_token: {{ p95: 1ms, for: 0s }}
  instance_ill: {{ for: 0s }}
  prefix_caching_off: {{ for: 0s }}
  replicas_disagree: {{ for: 0s }}
  hot_prefix: {{ enabled: false }}
endpoints:
  - name: chat
    variants:
      - name: main
        engine_metrics: {{ interval: 1s }}
        routing: {{ strategy: PREFIX_AWARE, concurrency_threshold: 1 }}
        instances: [{listed}]
""")
    router = start("serve", "--config", str(file))
    router.token, router.engines = token_of(router), engines
    model = httpx2.get(engines[0].url + "/v1/models").json()["data"][0]["id"]

    def ask(number):
        messages = [{"role": "system", "content": POLICY * 150}, {"role": "user", "content": f"Question {number}?"}]
        body = {"model": model, "messages": messages, "max_tokens": 40, "stream": True}
        httpx2.post(router.url + "/v1/chat/completions", json=body, timeout=60)

    clients = [threading.Thread(target=lambda first=first: [ask(first + number) for number in range(8)]) for first in range(0, 64, 8)]
    [one.start() for one in clients]
    [one.join() for one in clients]
    wanted = {"IsothermSpills", "IsothermSlowFirstToken", "IsothermInstanceIll", "IsothermPrefixCachingOff", "IsothermReplicasDisagree"}
    deadline = time.monotonic() + 30
    while (fired := {one["alert"] for one in overview(router, router.token)["alerts"]}) != wanted:
        assert time.monotonic() < deadline, fired
        time.sleep(0.2)
    yield router
    [engine.kill() for engine in engines]


def test_what_the_router_says_is_said_in_chinese(browser, warned):
    page = signed_in(browser, warned, language="zh")
    page.run("document.getElementById('analyse').click();"
             "document.getElementById('request-id').value = 'nobody'; document.getElementById('ask-request').click();"
             f"document.querySelector('#add [name=url]').value = {warned.engines[1].url!r}; document.querySelector('#add button').click()")
    for place in ("told", "done"):
        page.wait_until(f"document.getElementById('{place}').innerText !== ''")
    page.wait_until("document.querySelectorAll('#analysis .note').length > 1")
    assert page.run("document.querySelectorAll('#alerts-list li').length") == 5
    assert page.run("[...document.querySelectorAll('main [lang=en]')].filter(one => one.tagName !== 'OPTION').map(one => one.outerHTML).join()") == ""
    titles = "[...document.querySelectorAll('[title]')].map(one => one.title).join('\\n')"
    text = re.sub("`[^`]*`", "", page.run(f"document.body.innerText + '\\n' + {titles}"))
    assert "连接被拒绝" in text and "undefined" not in text and "null" not in text
    # Names and settings stay; two words of English in a row are a sentence.
    assert re.findall(r"(?<![\w/-])[a-z]{2,} [a-z]{2,}\b", text) == []
    page.run("document.getElementById('language').value = 'en'; document.getElementById('language').dispatchEvent(new Event('change'))")
    page.wait_until("document.getElementById('alerts').innerText.includes('e3 does not answer its probes. connection refused.')")


def test_every_alert_has_its_chinese(browser, watched):
    alerts = {
        "IsothermLowHitRate": {"hit_rate": 0.25, "repeats": 0.9, "goal": 0.3},
        "IsothermCachePressure": {"missing": 0.5, "kv_cache_usage": 0.75},
        "IsothermHotPrefix": {"share": 0.5, "prefix": "abab", "busiest": "i", "skew": 3.0, "spilled": 0.1},
        "IsothermSpills": {"share": 0.25},
        "IsothermInstanceIll": {"availability": "ejected", "problem": {"message": "m", "kind": "refused"}},
        "IsothermSlowFirstToken": {"p95_seconds": 6.5, "goal_seconds": 5.0},
        "IsothermPrefixCachingOff": {"requests": 40},
        "IsothermReplicasDisagree": {"differences": [{"aspect": "block size", "opinions": [
            {"says": "16", "instances": ["i", "j", "k"], "more": 2}, {"says": "32", "instances": ["l"], "more": 0}]}]},
        "IsothermEngineRestarted": None,
    }
    page = signed_in(browser, watched, language="zh")
    for name, values in alerts.items():
        alert = {"alert": name, "labels": {"endpoint": "chat", "variant": "main", "instance": "i"}, "values": values}
        said = page.run(f"import('/sentences.js').then(({{ alertSaid }}) => alertSaid('zh', {json.dumps(alert)}))")
        assert said.endswith("。") and not re.search(r"undefined|null|NaN|\[object", said), said
        assert page.run(f"import('/sentences.js').then(({{ alertSaid }}) => alertSaid('en', {json.dumps(alert)}))") is None


def test_the_keyboard_reaches_everything(browser, watched):
    page = signed_in(browser, watched)
    assert page.run("document.activeElement.id") == "main", "signing in takes the form with the focus away"
    page.send("Page.reload")
    page.wait_until("document.getElementById('board') && !document.getElementById('board').hidden")
    page.key("Tab")
    assert page.run("document.activeElement.className") == "skip"
    reached = []
    for _ in range(60):
        page.key("Tab")
        reached.append(page.run("document.activeElement.dataset.drain ? 'drain' : document.activeElement.id || document.activeElement.tagName"))
    for wanted in ("variant", "pause", "language", "FIGURE", "SUMMARY", "drain"):
        assert wanted in reached, (wanted, reached)


def test_a_strategy_is_switched_and_an_instance_added(browser, watched):
    page = signed_in(browser, watched)
    page.run("window.confirm = () => true")
    page.run("document.getElementById('route').closest('details').open = true")
    page.run("document.getElementById('route').elements.concurrency_threshold.value = 7;"
             "document.querySelector('#route button').click()")
    page.wait_until("document.getElementById('routing').textContent.includes('threshold 7')")
    page.run("document.querySelector('#add [name=url]').value = 'http://127.0.0.1:9'; document.querySelector('#add button').click()")
    page.wait_until("document.getElementById('instances').innerText.includes('127.0.0.1:9')")
    with admin(watched, watched.token) as client:
        client.delete("/api/instances/http%3A%2F%2F127.0.0.1%3A9").raise_for_status()


def test_it_says_so_when_the_router_is_gone(browser, start):
    router = start("up", "--engines", "1", "--speed", "20")
    router.token = token_of(router)
    page = browser.page(router.admin + "/")
    page.wait_until("document.getElementById('sign-in') && !document.getElementById('sign-in').hidden")
    page.run(f"document.getElementById('token').value = {router.token!r}; document.querySelector('#sign-in button').click()")
    page.wait_until("!document.getElementById('board').hidden")
    assert "Nothing yet" in page.run("document.body.innerText")
    router.stop()
    page.wait_until("!document.getElementById('trouble').hidden")
    assert page.run("document.getElementById('state').textContent") == "no answer"


@pytest.fixture(scope="module")
def busy(start):
    """A router with two minutes of a life: many questions about few policies, and an instance that is drained."""
    router = start("up", "--engines", "6", "--speed", "4")
    router.token = token_of(router)
    model = httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]
    ends = time.monotonic() + 120

    def client(seed):
        chance = random.Random(seed)
        while time.monotonic() < ends:
            policy = min(int(chance.expovariate(0.22)), 24)
            system = f"Policy {policy}. " + POLICY * (120 + 25 * policy)
            messages = [{"role": "system", "content": system}, {"role": "user", "content": f"Question {chance.random()}?"}]
            body = {"model": model, "messages": messages, "max_tokens": chance.randrange(40, 160), "stream": True,
                    "stream_options": {"include_usage": True}}
            httpx2.post(router.url + "/v1/chat/completions", json=body, timeout=60)
            time.sleep(chance.expovariate(4))

    clients = [threading.Thread(target=client, args=(seed,)) for seed in range(36)]
    [one.start() for one in clients]
    time.sleep(70)
    with admin(router, router.token) as caller:
        caller.post("/api/instances/AllTraffic-4/drain").raise_for_status()
    time.sleep(35)
    yield router
    [one.join() for one in clients]


@pytest.mark.skipif("ISOTHERM_PICTURES" not in os.environ, reason="pictures are made when they are asked for")
@pytest.mark.parametrize("name, look", [
    ("dashboard-light", {}), ("dashboard-dark", {"dark": True}),
    ("dashboard-chinese", {"language": "zh"}), ("dashboard-narrow", {"width": 360}),
])
def test_pictures_are_made(browser, busy, name, look):
    page = signed_in(browser, busy, **look)
    page.picture(pathlib.Path(os.environ["ISOTHERM_PICTURES"]) / f"{name}.webp")
