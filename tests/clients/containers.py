"""Model containers that do what a test asks of them: sessions, errors, and answers that break off."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Container:
    """A container at a port of its own. What it does with a request, the request's custom attributes say."""

    def __init__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # What came: paths, headers, bodies.
        self.server.seen = self.seen = []
        # What its metrics page says.
        self.server.metrics = ""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, self.server.metrics.encode() if self.path == "/metrics" else b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        wish = self.headers.get("x-amzn-sagemaker-custom-attributes", "")
        if wish.startswith("status="):
            self.answer(int(wish.removeprefix("status=")), b"prompt is too long")
        elif wish.startswith("size="):
            self.answer(200, b"a" * int(wish.removeprefix("size=")))
        elif wish == "break off":
            self.begin()
        elif wish == "vanish":
            self.close_connection = True
        elif wish == "hang":
            self.connection.recv(1)
        elif wish == "stall":
            self.begin()
            self.connection.recv(1)
        elif self.headers.get("x-amzn-sagemaker-session-id") == "NEW_SESSION":
            self.answer(200, session=("New", "talk-1; Expires=2099-01-01T00:00:00Z"))
        elif wish == "close":
            self.answer(200, session=("Closed", "talk-1"))
        else:
            self.answer(200, json.dumps({"wish": wish}).encode(), attributes=wish)

    def answer(self, status, body=b"", session=None, attributes=None):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header(f"X-Amzn-SageMaker-{session[0]}-Session-Id", session[1])
        if attributes:
            self.send_header("X-Amzn-SageMaker-Custom-Attributes", attributes)
        self.end_headers()
        self.wfile.write(body)

    def begin(self):
        """The beginning of an answer, at whose end the connection ends."""
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"the beginning")
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_):
        pass
