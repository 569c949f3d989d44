"""Whatever the router accepts, every make of origin behind it reads as the same requests."""

import asyncio
import json
from collections import Counter, defaultdict

import pytest

import origins
from conftest import ROOT

PATHS = ["/foo/bar", "/test.html", "/endpoint_a", "/v1/audio/speech"]
# How long a connection may be silent before what it has to say counts as said.
SILENCE = 1.0


def of_the_corpus():
    """The desync corpus, each request with another one behind it that nobody may take for a part of the first."""
    corpus = json.loads((ROOT / "crates/proxy/tests/corpora/desync.json").read_text())
    for number, case in enumerate(corpus):
        headers = [tuple(pair) for pair in case["headers"]]
        names = [name.lower() for name, _ in headers]
        host = "" if "host" in names else "host: router\r\n"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        line = f"{case['method']} {case['uri']} {case['version']}".rstrip()
        framing = [pair for pair in headers if "length" in pair[0].lower() or "transfer" in pair[0].lower()]
        payload = "0\r\n\r\n"
        if not framing:
            payload = ""
        elif len(framing) == 1 and framing[0][0].lower() == "content-length" and framing[0][1].strip(" \t").isdigit():
            payload = "x" * min(int(framing[0][1]), 100_000)
        behind = f"GET /foo/bar?behind HTTP/1.1\r\nhost: router\r\nx-case: {number}\r\n\r\n"
        yield str(number), as_bytes(f"{line}\r\nx-case: {number}\r\n{host}{lines}\r\n") + payload.encode() + behind.encode()


def of_the_standard():
    """What RFC 9112 allows and hardly anybody sends."""
    post = "POST /foo/bar HTTP/1.1\r\nhost: r\r\nx-case: {}\r\n"
    chunked = post + "transfer-encoding: chunked\r\n\r\n"
    requests = {
        "empty-lines-before": "\r\n\r\nGET /foo/bar HTTP/1.1\r\nhost: r\r\nx-case: {}\r\n\r\n",
        "bare-lf": "GET /foo/bar HTTP/1.1\nhost: r\nx-case: {}\n\n",
        "absolute-target": "GET http://elsewhere/foo/bar?a=b HTTP/1.1\r\nhost: r\r\nx-case: {}\r\n\r\n",
        "odd-query": "GET /foo/bar?a=%2f..%2F&b='()*~:@!$,;=?/ HTTP/1.1\r\nhost: r\r\nx-case: {}\r\n\r\n",
        "http-1.0": "GET /foo/bar HTTP/1.0\r\nx-case: {}\r\n\r\n",
        "spaces-around-values": "GET /foo/bar HTTP/1.1\r\nhost:  \t r \r\nx-case:\t{}  \r\nempty:\r\n\r\n",
        "body-with-get": "GET /foo/bar HTTP/1.1\r\nhost: r\r\nx-case: {}\r\ncontent-length: 5\r\n\r\nhello",
        "no-body": post + "content-length: 0\r\n\r\n",
        "a-request-as-body": post + "content-length: 43\r\n\r\nGET /foo/bar?inner HTTP/1.1\r\nhost: inner\r\n\r\n",
        "chunk-extensions": chunked + "5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n",
        "trailers": chunked + "5\r\nhello\r\n0\r\nx-trailer: 1\r\ncontent-length: 7\r\n\r\n",
        "zeros-before-sizes": chunked + "0005\r\nhello\r\n00A\r\n0123456789\r\n000\r\n\r\n",
        "coding-in-capitals": post + "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "one-byte-chunks": chunked + "".join(f"1\r\n{letter}\r\n" for letter in "hello") + "0\r\n\r\n",
        "connection-options": post + "connection: keep-alive, content-length\r\ncontent-length: 5\r\n\r\nhello",
        "upgrade": "GET /foo/bar HTTP/1.1\r\nhost: r\r\nx-case: {}\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n",
        "length-and-chunks": post + "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    }
    for name, request in requests.items():
        yield name, request.format(name).encode()


def as_bytes(text):
    return text.encode("latin-1") if all(ord(letter) < 256 for letter in text) else text.encode()


@pytest.fixture(scope="module")
def makes(needs, start, tmp_path_factory):
    """Each make of origin, and a router in front of it."""
    running = {
        "python": origins.PythonOrigin(),
        "nginx": origins.Nginx(needs("nginx"), tmp_path_factory.mktemp("nginx")),
        "node": origins.Node(needs("node")),
        "uvicorn": origins.Uvicorn(),
    }
    folder = tmp_path_factory.mktemp("routers")
    routers = {}
    for name, origin in running.items():
        file = folder / f"{name}.yaml"
        instances = f"[{{ name: AllTraffic, instances: [{{ url: '{origin.url}' }}] }}]"
        file.write_text(
            f"auth: none\nallow_paths: {json.dumps(PATHS)}\nendpoints:\n  - name: chat\n    variants: {instances}\n"
        )
        routers[name] = start("serve", "--config", str(file))
    yield running, routers
    for origin in running.values():
        origin.stop()


async def exchange(router, sent, turns):
    """How many answers of 200 come back."""
    async with turns:
        host, port = router.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        read = b""
        try:
            while piece := await asyncio.wait_for(reader.read(65_536), SILENCE):
                read += piece
        except (TimeoutError, asyncio.TimeoutError, ConnectionError):
            pass
        writer.close()
        return read.count(b"HTTP/1.1 200 ") + read.count(b"HTTP/1.0 200 ")


def test_every_make_of_origin_sees_the_same_requests(makes):
    running, routers = makes
    cases = [*of_the_corpus(), *of_the_standard()]

    async def ask_all():
        turns = asyncio.Semaphore(200)
        asking = [(make, case, exchange(routers[make], sent, turns)) for make in routers for case, sent in cases]
        answers = await asyncio.gather(*(one for _, _, one in asking))
        return {(make, case): count for (make, case, _), count in zip(asking, answers)}

    answered = asyncio.run(ask_all())
    seen = {make: defaultdict(Counter) for make in running}
    for make, origin in running.items():
        for case, request in list(origin.noted):
            # What the router asks by itself has no case.
            if case is not None:
                seen[make][case][request] += 1
    different = [
        (case, {make: dict(seen[make][case]) for make in running})
        for case, _ in cases
        if any(seen[make][case] != seen["python"][case] for make in running)
    ]
    assert not different, "\n".join(map(str, different))
    behind_backs = [
        (make, case, count, dict(seen[make][case]))
        for (make, case), count in answered.items()
        if seen[make][case].total() != count
    ]
    assert not behind_backs, "other requests than were answered: " + "\n".join(map(str, behind_backs))
    assert sum(bool(seen["python"][case]) for case, _ in cases) >= 50, "what is accepted at all"
