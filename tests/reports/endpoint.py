"""A server with a handler that only notes what it is asked, and clients that say exactly what a test wants."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ganger.endpoint.server import ReportServer
from ganger.ports.endpoint import Reply, WorkerCall
from tests.patience import until_soon

TOKEN = "w1.fence-1." + "a" * 40
OTHER = "w1.fence-2." + "b" * 40
JOIN = "j1." + "c" * 40
TASKS = {TOKEN: "one", OTHER: "two"}
T = TypeVar("T")


@dataclass
class Ear:
    """Knows three tokens; everything that passed them is noted. `gate` holds answers of `messages` and `next` back."""

    asked: list[WorkerCall] = field(default_factory=list)
    all_asked: list[WorkerCall] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    holds: frozenset[str] = frozenset()
    fails: Exception | None = None
    reply: Reply | None = None

    async def hear(self, request: WorkerCall) -> Reply:
        self.all_asked.append(request)
        if self.fails is not None:
            raise self.fails
        if request.token not in (*TASKS, JOIN):
            return Reply(401, {"ok": False, "code": "WORKER_UNKNOWN", "message": "nobody has this token", "hint": ""})
        if request.token == JOIN and request.verb != "next":
            return Reply(403, {"ok": False, "code": "NOT_ALLOWED", "message": "only asks for tasks", "hint": ""})
        self.asked.append(request)
        if request.verb in self.holds:
            await self._wait(request.verb)
        self.finished.append(request.verb)
        if self.reply is not None:
            return self.reply
        if request.verb == "next":
            return Reply(200, {"ok": True, "task": {"id": "one"}, "token": TOKEN})
        return Reply(200, {"ok": True, "messages": 0, "latest": 0, "task": TASKS[request.token]})

    async def _wait(self, verb: str) -> None:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(verb)
            raise


@dataclass(frozen=True)
class Said:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def answer(self, within_sec: float = 20.0) -> Said | None:
        """The next one; None: it was closed without."""
        async with asyncio.timeout(within_sec):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                body = await self.reader.readexactly(int(headers.get("content-length", 0)))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
        return Said(int(first.split(" ")[1]), headers, body)

    async def ended(self, within_sec: float = 20.0) -> bool:
        async with asyncio.timeout(within_sec):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True

    def close(self) -> None:
        self.writer.transport.abort()


class Endpoint:
    """A running server, its handler, and ways to it."""

    def __init__(self, server: ReportServer, ear: Ear) -> None:
        self.server, self.ear = server, ear
        self._wires: list[Wire] = []

    @property
    def host(self) -> str:
        return self.server.url.removeprefix("http://")

    @property
    def port(self) -> int:
        return int(self.host.partition(":")[2])

    async def wire(self, carrier: str = "socket") -> Wire:
        connection = socket.socket(socket.AF_UNIX if carrier == "socket" else socket.AF_INET)
        place = str(self.server.socket) if carrier == "socket" else ("127.0.0.1", self.port)
        # A connection that does not block is refused where one that does waits for its turn at the door.
        await asyncio.to_thread(connection.connect, place)
        opened = asyncio.open_unix_connection if carrier == "socket" else asyncio.open_connection
        made = Wire(*await opened(sock=connection))
        self._wires.append(made)
        return made

    async def post(self, verb: str, body: object, carrier: str = "socket", token: str = TOKEN) -> Said | None:
        wire = await self.wire(carrier)
        await wire.send(request(self.host if carrier == "http" else "ganger", f"/v1/{verb}", body, token=token))
        try:
            return await wire.answer()
        finally:
            wire.close()

    def hang_up(self) -> None:
        for wire in self._wires:
            wire.close()


def request(
    host: str,
    target: str = "/v1/heartbeat",
    body: object = None,
    *,
    method: str = "POST",
    token: str = TOKEN,
    drop: tuple[str, ...] = (),
    raw_body: bytes | None = None,
    more: Mapping[str, str] | None = None,
) -> bytes:
    """A good request, but for what is named: `more` headers (`content_type`), `drop` for those to leave out."""
    data = json.dumps({} if body is None else body).encode() if raw_body is None else raw_body
    headers = {
        "Host": host,
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(data)),
        **{name.replace("_", "-").title(): value for name, value in (more or {}).items()},
    }
    lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items() if n.lower() not in drop)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


Made = Callable[[Path], ReportServer]


@asynccontextmanager
async def open_endpoint(folder: Path, ear: Ear | None = None, made: Made | None = None) -> AsyncIterator[Endpoint]:
    server = (made or (lambda place: ReportServer(place, peers=frozenset())))(folder)
    heard = ear or Ear()
    await server.open(heard.hear)
    endpoint = Endpoint(server, heard)
    try:
        yield endpoint
    finally:
        endpoint.hang_up()
        await server.close()
        with suppress(OSError):
            server.socket.parent.rmdir()


def play(part: Callable[[Endpoint], Awaitable[T]], folder: Path, ear: Ear | None = None, made: Made | None = None) -> T:
    """Runs one scene against a fresh endpoint."""

    async def scene() -> T:
        async with open_endpoint(folder, ear, made) as endpoint:
            return await part(endpoint)

    return asyncio.run(scene())


async def until(true: Callable[[], bool], within_sec: float = 20.0) -> None:
    await until_soon(true, within_sec, pause_sec=0.005)
