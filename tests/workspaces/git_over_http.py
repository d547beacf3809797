"""A git server on loopback: git's own http-backend behind a password, with trouble on demand."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "t0ken-of-nobody-1q2w3e4r5t"


@dataclass
class GitServer:
    """`trouble` is a status every request gets, `post_trouble` every one that brings something; `hang`: none gets an
    answer; `cut`: what is brought is taken and nobody is told. `seen` are the headers that came."""

    root: Path
    trouble: int = 0
    location: str = ""
    post_trouble: int = 0
    hang: bool = False
    cut: bool = False
    port: int = 0
    seen: list[dict[str, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def url(self, name: str, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.port}/{name}"

    def allows(self, given: str) -> bool:
        said = base64.b64decode(given.removeprefix("Basic ") or b"").decode(errors="replace")
        return said.endswith(f":{TOKEN}")


@contextmanager
def serving(root: Path) -> Iterator[GitServer]:
    state = GitServer(root)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(state: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            state.seen.append(dict(self.headers.items()))
            if state.hang:
                state.over.wait()
                return
            if state.post_trouble and self.command == "POST":
                self._body()
                self._say(state.post_trouble, {})
            elif state.trouble:
                self._say(state.trouble, {"Location": state.location} if state.location else {})
            elif not state.allows(self.headers.get("Authorization", "")):
                self._say(401, {"WWW-Authenticate": 'Basic realm="git"'})
            else:
                self._backend()

        def do_POST(self) -> None:
            self.do_GET()

        def _say(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            return b"".join(pieces)

        def _backend(self) -> None:
            path, _, query = self.path.partition("?")
            body = self._body()
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(state.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_NOSYSTEM": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "REMOTE_USER": "somebody",
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            said = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
            ).stdout
            if state.cut and self.command == "POST":
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            head, _, content = said.partition(b"\r\n\r\n")
            pairs = [line.partition(": ") for line in head.decode().split("\r\n")]
            headers = {name: value for name, _, value in pairs if value}
            status = int(headers.pop("Status", "200").split()[0])
            self._say(status, headers)
            self.wfile.write(content)

    return Handler
