"""Requests and answers of the loopback forge, what goes wrong with them on purpose, and the log of them."""

from __future__ import annotations

import hashlib
import json
import math
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .script import Fault


@dataclass(frozen=True)
class Ask:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any = None

    @property
    def page(self) -> tuple[int, int]:
        """Which one, and how many a page has."""
        most = self.query.get("limit") or self.query.get("per_page") or "30"
        return max(1, int(self.query.get("page") or 1)), max(1, min(100, int(most)))


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    data: bytes | None = None
    # What was asked is done, and the answer does not arrive.
    lost: bool = False

    def raw(self) -> bytes:
        if self.data is not None:
            return self.data
        if self.text is not None:
            return self.text.encode()
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Line:
    """One request. Headers are not kept, so no token is."""

    at: float
    kind: str
    method: str
    path: str
    status: int

    def __str__(self) -> str:
        return f"{self.kind:10} {self.method:6} {self.path} → {self.status or 'no answer'}"


class Log:
    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.faults: list[str] = []
        self._lock = threading.Lock()
        self._begun: Counter[str] = Counter()

    def number(self, kind: str) -> tuple[int, int]:
        """How many of its kind, and of all, there have been with this one."""
        with self._lock:
            self._begun[kind] += 1
            self._begun[""] += 1
            return self._begun[kind], self._begun[""]

    def add(self, line: Line) -> None:
        with self._lock:
            self.lines.append(line)

    def count(self, *kinds: str, status: int | None = None) -> int:
        return sum(line.kind in kinds and status in (None, line.status) for line in self.lines)

    def per_minute(self) -> float:
        """Requests in a minute, over the time in which there were any; a second at least."""
        if not self.lines:
            return 0.0
        spent = max(1.0, self.lines[-1].at - self.lines[0].at)
        return len(self.lines) * 60 / spent


Answering = Callable[[Ask], tuple[str, Answer]]


class Wire(ThreadingHTTPServer):
    """The socket. `answering` names the kind of a request and answers it; `kind_of` only names it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        answering: Callable[[Ask], Answer],
        kind_of: Callable[[Ask], str],
        *,
        faults: tuple[Fault, ...] = (),
        skew: float = 0.0,
        tags: bool = False,
        limited_sec: float = 1.0,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answering, self.kind_of = answering, kind_of
        self.planned, self.skew, self.tags, self.limited_sec = faults, skew, tags, limited_sec
        self.log = Log()
        self.over = threading.Event()
        self.revoked = threading.Event()
        # An outage: until when it answers 502, and whether nobody is let in.
        self.storm_until = 0.0
        self.refusing = threading.Event()
        self.back: threading.Timer | None = None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who hangs up in the middle is no fault here."""

    def fault_for(self, kind: str, numbers: tuple[int, int]) -> str:
        found = [fault.kind for fault in self.planned if fault.hits(kind, *numbers)]
        if time.time() < self.storm_until:
            found.insert(0, "502")
        if "revoked" in found:
            self.revoked.set()
        return found[0] if found else ""

    def refuse(self, sec: float) -> None:
        """Nobody listens at the address for so long."""
        self.refusing.set()
        self.shutdown()
        self.socket.close()
        self.back = threading.Timer(sec, self._listen_again)
        self.back.daemon = True
        self.back.start()

    def come_back(self) -> None:
        if self.back is not None and self.refusing.is_set():
            self.back.cancel()
            threading.Thread(target=self._listen_again, daemon=True).start()

    def _listen_again(self) -> None:
        if self.over.is_set() or not self.refusing.is_set():
            return
        self.socket = socket.socket(self.address_family, self.socket_type)
        self.server_bind()
        self.server_activate()
        self.refusing.clear()
        self.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        self.over.set()
        if self.back is not None:
            self.back.cancel()
        if not self.refusing.is_set():
            self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Wire

    def log_message(self, *_: object) -> None:
        """Nothing goes to the terminal."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate((timestamp or time.time()) + self.server.skew, usegmt=True)

    def _ask(self) -> Ask:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        given = self._chunks() if "chunked" in (self.headers.get("Transfer-Encoding") or "") else b""
        given = given or (self.rfile.read(length) if length else b"")
        plain = "json" in (self.headers.get("Content-Type") or "json")
        body = json.loads(given) if given and plain else given or None
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return Ask(self.command, parts.path, query, {k.lower(): v for k, v in self.headers.items()}, body)

    def _chunks(self) -> bytes:
        given = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            given += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(given)

    def _serve(self) -> None:
        if self.server.refusing.is_set():
            self._hang_up()
            return
        ask = self._ask()
        kind = self.server.kind_of(ask)
        fault = self.server.fault_for(kind, self.server.log.number(kind))
        status = 0
        try:
            answer = self._answer(ask, fault)
            if answer is not None and answer.lost:
                self._hang_up()
            elif answer is not None:
                status = answer.status
                self.server.log.add(Line(time.time(), kind, ask.method, _shown(self.path), status))
                self._send(ask, answer, cut=fault == "cut")
        except (AssertionError, LookupError, TypeError, ValueError) as problem:
            if repr(problem) not in self.server.log.faults:
                self.server.log.faults.append(repr(problem))
            self._send(ask, Answer(500, text=f"the loopback forge is wrong: {problem}"))
        finally:
            if status == 0:
                self.server.log.add(Line(time.time(), kind, ask.method, _shown(self.path), 0))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _answer(self, ask: Ask, fault: str) -> Answer | None:
        later = str(int(time.time() + self.server.skew + self.server.limited_sec))
        match fault:
            case "" | "cut":
                return self.server.answering(ask)
            case "reset":
                self._hang_up()
                return None
            case "silence":
                self.server.over.wait(20)
                self.close_connection = True
                return None
            case "garbage":
                return Answer(200, text="<html>we are doing maintenance</html>", headers={"Content-Type": "text/html"})
            case "limited":
                headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": later, "X-RateLimit-Limit": "5000"}
                return Answer(
                    429,
                    {"message": "API rate limit exceeded"},
                    {"Retry-After": _seconds(self.server.limited_sec), **headers},
                )
            case "secondary":
                text = {"message": "You have exceeded a secondary rate limit"}
                return Answer(403, text, {"Retry-After": _seconds(self.server.limited_sec)})
            case "revoked":
                return Answer(401, {"message": "invalid token"})
        return Answer(int(fault), {"message": "trouble of our own"})

    def _hang_up(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _send(self, ask: Ask, answer: Answer, *, cut: bool = False) -> None:
        body = answer.raw()
        headers = {"Content-Type": "application/json", **answer.headers}
        if answer.text is not None:
            headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        status = answer.status
        if self.server.tags and status == 200 and ask.method == "GET":
            headers["ETag"] = f'W/"{hashlib.sha256(body).hexdigest()}"'
            if ask.headers.get("if-none-match") == headers["ETag"]:
                status, body = 304, b""
                self.server.log.lines[-1] = Line(time.time(), self.server.kind_of(ask), "GET", _shown(self.path), 304)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True


def _seconds(sec: float) -> str:
    return str(max(1, math.ceil(sec)))


def _shown(path: str) -> str:
    """Without the values of what looks like a secret in the address."""
    parts = urlsplit(path)
    kept = [word if "token" not in word.lower() else word.partition("=")[0] + "=***" for word in parts.query.split("&")]
    return unquote(parts.path) + (f"?{'&'.join(kept)}" if parts.query else "")
