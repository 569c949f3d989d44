"""Model containers that do what a test asks of them: sessions, errors, and answers that break off."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Container:
    """A container at a port of its own. What it does is said by the header of custom attributes."""

    def __init__(self):
        self.seen = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def _handler(container):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self._answer(200, b"")

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                container.seen.append((self.path, dict(self.headers.items()), body))
                wish = self.headers.get("x-amzn-sagemaker-custom-attributes", "")
                if wish.startswith("status="):
                    self._answer(int(wish.removeprefix("status=")), b"prompt is too long")
                elif wish == "break off":
                    self._break_off()
                elif self.headers.get("x-amzn-sagemaker-session-id") == "NEW_SESSION":
                    self._answer(200, b"", {"X-Amzn-SageMaker-New-Session-Id": "talk-1; Expires=2099-01-01T00:00:00Z"})
                elif wish == "close":
                    self._answer(200, b"", {"X-Amzn-SageMaker-Closed-Session-Id": "talk-1"})
                else:
                    attributes = {"X-Amzn-SageMaker-Custom-Attributes": wish} if wish else {}
                    self._answer(200, json.dumps({"by": container.url}).encode(), attributes)

            def _answer(self, status, body, headers=None):
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _break_off(self):
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"the beginning")
                self.wfile.flush()
                self.close_connection = True

            def log_message(self, *_):
                pass

        return Handler
