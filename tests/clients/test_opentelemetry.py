"""Traces and metrics as an OpenTelemetry receiver takes them: decoded by OpenTelemetry's own protocol, field by field."""

import base64
import http.server
import json
import re
import threading
import time

import httpx2
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Receiver(http.server.ThreadingHTTPServer):
    """Takes OTLP over HTTP in its JSON form, and is strict: a field that the protocol does not know is an error."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans, self.metrics, self.problems, self.status = [], {}, [], 200
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, path, body):
        # OTLP's JSON has ids in hexadecimal where protobuf's has base64.
        ids = re.sub(rb'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"',
                     lambda found: b'"%s":"%s"' % (found[1], base64.b64encode(bytes.fromhex(found[2].decode()))), body)
        message = ExportTraceServiceRequest() if path == "/v1/traces" else ExportMetricsServiceRequest()
        json_format.Parse(ids, message)
        if path == "/v1/traces":
            self.spans += [span for of in message.resource_spans for scope in of.scope_spans for span in scope.spans]
        else:
            self.metrics = {one.name: one for of in message.resource_metrics for scope in of.scope_metrics for one in scope.metrics}

    def of_trace(self, trace):
        found = [span for span in self.spans if span.trace_id.hex() == trace]
        return sorted(found, key=lambda span: span.kind)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status = self.server.status
        if status == 200:
            try:
                assert self.headers["content-type"] == "application/json"
                self.server.take(self.path, body)
            except Exception as problem:
                self.server.problems.append(f"{self.path}: {problem}: {body[:500]}")
        self.send_response(status)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.shutdown()


class Engine(http.server.ThreadingHTTPServer):
    """An engine that keeps the traceparent of each request."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), EngineHandler)
        self.traceparents = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class EngineHandler(Handler):
    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.traceparents.append(self.headers["traceparent"])
        said = {"role": "assistant", "content": "Yes."}
        usage = {"prompt_tokens": 12, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
        if not asked.get("stream"):
            return self.answer({"id": "1", "object": "chat.completion", "usage": usage,
                                "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})
        chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": said, "finish_reason": "stop"}]}
        events = [chunk, {**chunk, "choices": [], "usage": usage}]
        self.send("text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")

    def answer(self, body):
        self.send("application/json", json.dumps(body))

    def send(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture(scope="module")
def traced(start, receiver, tmp_path_factory):
    engine = Engine()
    file = tmp_path_factory.mktemp("otlp") / "isotherm.yaml"
    file.write_text(f"""
otlp: {{ endpoint: "http://127.0.0.1:{receiver.server_port}", sample_ratio: 1, metrics_interval: 1s }}
endpoints:
  - name: chat
    variants:
      - name: AllTraffic
        instances: [{{ url: "http://127.0.0.1:{engine.server_port}" }}]
""")
    router = start("serve", "--config", str(file))
    router.engine = engine
    return router


def ask(router, stream=False, **headers):
    body = {"model": "m", "messages": [{"role": "user", "content": "Is it warm?"}], "stream": stream}
    httpx2.post(router.url + "/v1/chat/completions", json=body, headers=headers).raise_for_status()


def wait_until(condition, within=10):
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def attributes(span):
    kinds = {"string_value": str, "int_value": int, "double_value": float}
    return {one.key: kinds[one.value.WhichOneof("value")](getattr(one.value, one.value.WhichOneof("value"))) for one in span.attributes}


def test_a_trace_goes_on_through_the_router_to_the_engine(traced, receiver):
    ask(traced, traceparent=f"00-{TRACE}-{PARENT}-01")
    wait_until(lambda: len(receiver.of_trace(TRACE)) == 2)
    request, engine = receiver.of_trace(TRACE)
    assert request.parent_span_id.hex() == PARENT and engine.parent_span_id == request.span_id
    assert traced.engine.traceparents[-1] == f"00-{TRACE}-{engine.span_id.hex()}-01"
    assert request.start_time_unix_nano <= engine.start_time_unix_nano < engine.end_time_unix_nano
    assert engine.end_time_unix_nano <= request.end_time_unix_nano
    told = attributes(engine)
    assert (engine.name, told["gen_ai.operation.name"], told["gen_ai.request.model"]) == ("chat m", "chat", "m")
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.cache_read.input_tokens"]) == (12, 4)
    assert told["isotherm.strategy"] == "PREFIX_AWARE" and told["isotherm.reason"] == "single"
    assert attributes(request)["http.response.status_code"] == 200
    assert not receiver.problems


def test_a_trace_that_its_client_does_not_record_is_not_recorded_here(traced, receiver):
    unrecorded = "a" * 32
    ask(traced, traceparent=f"00-{unrecorded}-{PARENT}-00")
    ask(traced)
    own = traced.engine.traceparents[-1].split("-")[1]
    wait_until(lambda: receiver.of_trace(own))
    assert not receiver.of_trace(unrecorded)
    assert traced.engine.traceparents[-2].startswith(f"00-{unrecorded}-") and traced.engine.traceparents[-2].endswith("-00")


def test_metrics_come_as_a_scraper_gets_them(traced, receiver):
    ask(traced)
    count = lambda name: sum(point.as_double for point in receiver.metrics[name].sum.data_points)
    wait_until(lambda: "isotherm_requests_total" in receiver.metrics and count("isotherm_requests_total") == traced.metric("isotherm_requests_total"))
    duration = receiver.metrics["gen_ai.server.request.duration"]
    point = duration.histogram.data_points[0]
    assert duration.unit == "s" and len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert {"gen_ai.operation.name", "gen_ai.provider.name"} <= {one.key for one in point.attributes}
    assert not receiver.problems


def test_a_slow_first_token_leads_to_its_trace(traced, receiver):
    trace = "b" * 32
    ask(traced, stream=True, traceparent=f"00-{trace}-{PARENT}-01")
    openmetrics = {"accept": "application/openmetrics-text"}
    exemplars = lambda: [line for line in httpx2.get(traced.admin + "/metrics", headers=openmetrics).text.splitlines()
                         if f'trace_id="{trace}"' in line]
    wait_until(exemplars)
    exemplars = exemplars()
    assert len(exemplars) == 1 and exemplars[0].startswith("isotherm_time_to_first_token_by_cache_outcome_seconds_bucket{")
    assert "trace_id" not in httpx2.get(traced.admin + "/metrics").text


def test_a_receiver_that_is_away_holds_nothing_up(traced, receiver):
    receiver.status = 400
    before = traced.metric("isotherm_otlp_dropped_requests_total")
    ask(traced)
    wait_until(lambda: traced.metric("isotherm_otlp_dropped_requests_total") > before)
    receiver.status = 200
