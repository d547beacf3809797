"""A lead that only notes what workers say, on a real socket; and workers as the processes they are."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.patience import stretched, until as until

ROOM = Path(__file__).resolve().parents[2] / "src" / "ganger" / "worker"
TOKEN = "w1.7." + "a" * 40
KEY = "5a" * 32
Body = dict[str, Any]
# A verb and its body in, status and reply out; None hangs up without an answer.
Answers = Callable[[str, Body], "tuple[int, Body] | None"]


def taken(_verb: str, _body: Body) -> tuple[int, Body]:
    return 200, {"ok": True, "messages": 0, "latest": 0}


def refused(code: str = "ATTEMPT_OVER", status: int = 409) -> Answers:
    return lambda verb, body: (status, {"ok": False, "code": code, "message": "no", "hint": "end"})


@dataclass
class Lead:
    """`said` is all that arrived, in order; `recorded` what it acknowledged, each name once."""

    socket: str
    answers: Answers = taken
    said: list[tuple[str, str, Body]] = field(default_factory=list)
    recorded: dict[str, tuple[str, Body]] = field(default_factory=dict)
    retry_after: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.said]

    def take(self, verb: str, token: str, body: Body) -> tuple[int, Body] | None:
        with self.lock:
            self.said.append((verb, token, body))
            answer = self.answers(verb, body)
            if answer is not None and answer[0] == 200 and body.get("id"):
                self.recorded.setdefault(body["id"], (verb, body))
        return answer


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = True
    request_queue_size = 64


def _handler(lead: Lead) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            token = str(self.headers["Authorization"]).removeprefix("Bearer ")
            answer = lead.take(self.path.removeprefix("/v1/"), token, body)
            self.close_connection = True
            if answer is None:
                return
            data = json.dumps(answer[1]).encode() if answer[1] or answer[0] == 200 else b""
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(data)))
            if lead.retry_after:
                self.send_header("Retry-After", lead.retry_after)
            self.end_headers()
            self.wfile.write(data)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True

        def finish(self) -> None:
            try:
                super().finish()
            except OSError:
                self.close_connection = True

        def log_message(self, *_words: object) -> None:
            """A test says what it wants to see."""

        def address_string(self) -> str:
            return "worker"

    return Handler


@contextmanager
def leading(socket: str, answers: Answers = taken) -> Iterator[Lead]:
    lead = Lead(socket, answers)
    with _Server(socket, _handler(lead)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield lead
        finally:
            server.shutdown()
            thread.join()
            os.unlink(socket)


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    def json(self) -> Body:
        found: Body = json.loads(self.out)
        return found


@dataclass(frozen=True)
class Worker:
    """A worker that Ganger started: its place is in its environment."""

    socket: str
    desk: Path
    room: Path = ROOM

    @property
    def environ(self) -> dict[str, str]:
        mine = {"GANGER_REPORT": self.socket, "GANGER_TOKEN": TOKEN, "GANGER_TASK_ID": "one"}
        if self.desk.is_dir():
            mine["GANGER_DESK"] = str(self.desk)
        return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **mine}

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(self.room / "__main__.py"), *words]

    def say(self, *words: str, stdin: str = "", environ: Mapping[str, str] | None = None) -> Said:
        return run(self.argv(*words), self.environ if environ is None else environ, stdin=stdin)

    def spooled(self) -> list[tuple[str, Body]]:
        files = sorted((self.desk / "spool").glob("*.json"))
        return [(entry["verb"], entry["body"]) for entry in (json.loads(file.read_bytes()) for file in files)]

    def refused(self) -> list[str]:
        return [json.loads(file.read_bytes())["verb"] for file in sorted((self.desk / "refused").glob("*.json"))]


def run(argv: list[str], environ: Mapping[str, str], *, cwd: Path | None = None, stdin: str = "") -> Said:
    done = subprocess.run(
        argv, env=dict(environ), cwd=cwd, input=stdin, capture_output=True, text=True, timeout=stretched(60)
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)
