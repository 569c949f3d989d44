"""An engine that keeps its connection alive with comments through a long prefill, and dies in the middle: what SDKs see."""

import http.server
import json
import threading
import time

import anthropic
import openai
import pytest

COMMENTS = 4
PAUSE = 0.4


def chunk(text):
    return f"{len(text.encode()):x}\r\n{text}\r\n".encode()


class Engine(http.server.BaseHTTPRequestHandler):
    """Comments first, then one token, then the end, or none where the prompt says so."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(COMMENTS):
            self.wfile.write(chunk(": keep-alive\n\n"))
            time.sleep(PAUSE)
        events = self.anthropic() if self.path == "/v1/messages" else self.openai()
        if "dies" in body:
            events = events[:2]
        for event in events:
            self.wfile.write(chunk(event))
        if "dies" in body:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def openai():
        def event(delta, finish):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            return f"data: {json.dumps(made)}\n\n"

        return [event({"role": "assistant", "content": "Hel"}, None), ": still here\n\n", event({"content": "lo"}, "stop"),
                "data: [DONE]\n\n"]

    @staticmethod
    def anthropic():
        message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
                   "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}
        made = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ]
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in made]

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def slow(start):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield start("serve", "--instance", f"http://127.0.0.1:{server.server_port}")
    server.shutdown()


def ask(text):
    return {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 16}


def test_openai_reads_over_comments_however_long_the_prefill_takes(slow):
    client = openai.OpenAI(base_url=slow.url + "/v1", api_key="unused", max_retries=0)
    begun = time.monotonic()
    chunks = list(client.chat.completions.create(stream=True, **ask("Hello?")))
    assert time.monotonic() - begun >= COMMENTS * PAUSE
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == "Hello"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_anthropic_reads_over_comments_however_long_the_prefill_takes(slow):
    client = anthropic.Anthropic(base_url=slow.url, api_key="unused", max_retries=0)
    with client.messages.stream(**ask("Hello?")) as stream:
        assert stream.get_final_text() == "Hello"
        assert stream.get_final_message().stop_reason == "end_turn"


def test_openai_raises_when_a_stream_breaks_off(slow):
    client = openai.OpenAI(base_url=slow.url + "/v1", api_key="unused", max_retries=0)
    came = []
    with pytest.raises(openai.APIError):
        for chunk in client.chat.completions.create(stream=True, **ask("Who dies?")):
            came.append(chunk)
    assert came and came[-1].choices[0].finish_reason is None


def test_anthropic_raises_when_a_stream_breaks_off(slow):
    client = anthropic.Anthropic(base_url=slow.url, api_key="unused", max_retries=0)
    with pytest.raises(anthropic.APIError):
        with client.messages.stream(**ask("Who dies?")) as stream:
            stream.get_final_message()
