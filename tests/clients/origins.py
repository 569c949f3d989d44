"""Origins of several makes that note what they are asked: each its method, target and the hash of its body."""

import asyncio
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import uvicorn

METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")


def noted(case, method, target, body):
    return case, (method, target, hashlib.sha256(body).hexdigest())


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


class PythonOrigin:
    """Python's own server."""

    def __init__(self):
        self.server = Server(("127.0.0.1", 0), self.handler())
        self.server.noted = self.noted = []
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def handler():
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                self.server.noted.append(noted(self.headers.get("x-case"), self.command, self.path, body))
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "2")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        for method in METHODS:
            setattr(Handler, f"do_{method}", Handler.answer)
        return Handler

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Nginx:
    """nginx, which reads and frames everything anew for what stands behind it and takes the notes."""

    def __init__(self, program, folder: pathlib.Path):
        self.behind = PythonOrigin()
        self.noted = self.behind.noted
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        temporary = "".join(f"{kind}_temp_path {folder};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration = folder / "nginx.conf"
        configuration.write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
            f"http {{ access_log off; {temporary}\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {self.behind.url}; }} }} }}\n"
        )
        command = [program, "-p", str(folder), "-c", str(configuration), "-e", str(folder / "error.log")]
        # To nginx itself, the variable that tests find it by names sockets that it is handed.
        environment = {name: value for name, value in os.environ.items() if name != "NGINX"}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        wait_until_open(port)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.behind.stop()


class Node:
    """Node's own server."""

    def __init__(self, program):
        script = pathlib.Path(__file__).parent / "node/origin.cjs"
        self.process = subprocess.Popen([program, str(script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self.noted = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            case, method, target, hash = json.loads(line)
            self.noted.append((case, (method, target, hash)))

    def stop(self):
        self.process.kill()
        self.process.wait()


class Uvicorn:
    """What vLLM and SGLang serve with."""

    def __init__(self):
        self.noted = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(self.application, interface="asgi3", log_level="error", lifespan="off"))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([listener])), daemon=True)
        self.thread.start()

    async def application(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
        case = dict(scope["headers"]).get(b"x-case", b"").decode() or None
        query = scope["query_string"].decode()
        target = scope["raw_path"].decode() + (f"?{query}" if query else "")
        self.noted.append(noted(case, scope["method"], target, body))
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else b"{}"})

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def wait_until_open(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens at {port}"
            time.sleep(0.02)
