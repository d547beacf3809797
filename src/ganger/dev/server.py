"""The model server: reads a request in any of four protocols, plays the scenario, records the answer."""

from __future__ import annotations

import gzip
import json
import select
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from ganger.dev.anthropic import Anthropic
from ganger.dev.chat import Chat
from ganger.dev.conversation import ModelAsk, mapping
from ganger.dev.gemini import Gemini
from ganger.dev.journal import RequestLog, Seen, TokenCount
from ganger.dev.play import Played, Player, tokens
from ganger.dev.reply import Speech
from ganger.dev.responses import Responses
from ganger.dev.scenario import Scenarios, ScenarioStep, scenarios

SPEECHES: tuple[Speech, ...] = (Anthropic(), Responses(), Chat(), Gemini())
_MODELS = ("scripted",)
_TICK_S = 0.05
_POLL_S = 0.01
_LONG_S = 600.0
_GARBAGE = b"<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>\n"


class ModelServer:
    """Serves from its own thread while used as a context manager."""

    def __init__(
        self, scenario: object = None, host: str = "127.0.0.1", port: int = 0, journal: Path | None = None
    ) -> None:
        known = scenario if isinstance(scenario, Scenarios) else scenarios(scenario)
        self.player = Player(known)
        self.journal = RequestLog(journal)
        self.stopped = threading.Event()
        self._http = _Http((host, port), _Handler)
        self._http.model = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(_POLL_S,), daemon=True)

    @property
    def url(self) -> str:
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def requests(self) -> tuple[Seen, ...]:
        return self.journal.seen()

    def tokens(self, scenario: str | None = None, *, beside: bool = True) -> TokenCount:
        """The counted usage, in all or for one scenario; `beside` includes titles and the like."""
        return self.journal.tokens(scenario, beside=beside)

    def wait_for(self, wanted: Callable[[tuple[Seen, ...]], bool], timeout: float = 30.0) -> bool:
        return self.journal.wait_for(wanted, timeout)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def serve(self) -> None:
        """Serves in this thread until interrupted."""
        try:
            self._http.serve_forever()
        finally:
            self.stopped.set()
            self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    model: ModelServer

    def server_bind(self) -> None:
        """Binds without the library's lookup of the host's name, which would use the network."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnect early."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Logs nothing: the journal has every request."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/models"):
            self._send(200, _models(self.path))
        else:
            self._send(404 if path.strip("/") else 200, {"error": {"message": f"nothing is at {path}", "code": 404}})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = _json(self._body())
        speech = next((one for one in SPEECHES if one.owns(path)), None)
        if speech is None or body is None:
            status = 404 if speech is None else 400
            self._send(status, {"error": {"message": f"{path} is not spoken here, or its body is not JSON"}})
            return
        ask = speech.read(path, body)
        if ask.counting:
            self._send(200, speech.count(tokens(ask)))
            return
        played = self.server.model.player.play(ask)
        here = self._idle(played.step.number("delay") or 0)
        # Recorded before it is sent, so that a client with the answer also finds the entry.
        self._note(path, ask, played, *_outcome(speech, ask, played) if here else (0, False))
        if here:
            self._answer(speech, replace(ask, model=played.scenario.model or ask.model), played)

    def _answer(self, speech: Speech, ask: ModelAsk, played: Played) -> None:
        if _breaks(ask, played):
            self._break(speech, ask, played)
        elif played.fault is not None:
            refusal = speech.refusal(played.fault)
            self._send(refusal.status, refusal.body, refusal.headers)
        elif played.step.kind == "garbage":
            self._start(200, "text/html", {"content-length": str(len(_GARBAGE))})
            self.wfile.write(_GARBAGE)
        elif ask.streamed:
            self._start(200, "text/event-stream", {"transfer-encoding": "chunked", "cache-control": "no-cache"})
            self._chunks([*speech.stream(ask, played.reply), b""])
        else:
            self._send(200, speech.whole(ask, played.reply))

    def _break(self, speech: Speech, ask: ModelAsk, played: Played) -> None:
        """Sends half an answer or none, then an error, silence or nothing."""
        self.close_connection = True
        if _in_stream(ask, played.step):
            events = list(speech.stream(ask, played.reply))
            self._start(200, "text/event-stream", {"transfer-encoding": "chunked"})
            self._chunks(events[: max(1, len(events) // 2)])
        if played.fault is not None:
            self._chunks([speech.broken(played.fault), b""])
        if played.step.kind == "hang":
            seconds = played.step.value
            self._idle(float(seconds) if isinstance(seconds, int | float) else _LONG_S)

    def _idle(self, seconds: float) -> bool:
        """Waits until the time is over, the client disconnects or the server ends; returns whether the client is
        connected."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.server.model.stopped.wait(min(_TICK_S, seconds)):
                return False
            ready, _, _ = select.select([self.connection], [], [], 0)
            if ready and not self.connection.recv(1, socket.MSG_PEEK):
                return False
        return True

    def _chunks(self, parts: Iterable[bytes]) -> None:
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()

    def _send(self, status: int, body: Mapping[str, object], headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self._start(status, "application/json", {**(headers or {}), "content-length": str(len(data))})
        self.wfile.write(data)

    def _start(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            data = b"".join(iter(self._chunk, b""))
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        coding = self.headers.get("content-encoding", "").lower()
        if coding == "gzip":
            return gzip.decompress(data)
        return zlib.decompress(data) if coding == "deflate" else data

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _note(self, path: str, ask: ModelAsk, played: Played, status: int, whole: bool) -> None:
        usage = played.reply.usage
        self.server.model.journal.add(
            Seen(
                protocol=ask.protocol,
                path=path,
                model=ask.model,
                conversation=ask.turns,
                input_tokens=usage.input if whole else 0,
                output_tokens=usage.output if whole else 0,
                step=played.number,
                scenario=played.scenario.name,
                at=time.time(),
                answered=played.step.kind,
                status=status,
            )
        )


def _in_stream(ask: ModelAsk, step: ScenarioStep) -> bool:
    return ask.streamed and "stream" in (step.options.get("where"), step.value)


def _breaks(ask: ModelAsk, played: Played) -> bool:
    return played.step.kind in ("hang", "drop") or (played.fault is not None and _in_stream(ask, played.step))


def _outcome(speech: Speech, ask: ModelAsk, played: Played) -> tuple[int, bool]:
    """The status the client receives (0: none), and whether it gets a complete answer."""
    if _breaks(ask, played):
        return (200 if _in_stream(ask, played.step) else 0), False
    if played.fault is not None:
        return speech.refusal(played.fault).status, False
    return 200, played.step.kind != "garbage"


def _json(data: bytes) -> Mapping[str, object] | None:
    try:
        return mapping(json.loads(data))
    except ValueError:
        return None


def _models(path: str) -> Mapping[str, object]:
    if "/v1beta/" in path:
        return {"models": [{"name": f"models/{name}", "inputTokenLimit": 1_000_000} for name in _MODELS]}
    listed = [{"id": name, "object": "model", "type": "model", "display_name": name} for name in _MODELS]
    return {"object": "list", "data": listed, "has_more": False, "models": []}
