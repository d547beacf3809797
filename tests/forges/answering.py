"""A host on loopback that answers as a test says, and a clock that only moves when somebody sleeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from ganger.forges import ForgeSettings, Hosts, Patience, open_forge
from ganger.ports.forge import Forge

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "forge" / "fixtures" / "forgejo-16"
TOKEN = "tok-" + "a1b2c3d4" * 4


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    def json(self) -> object:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """`drop`: the connection ends without an answer. `hang`: nothing comes at all. `exact`: these bytes alone."""

    status: int = 200
    body: object = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    hang: bool = False
    exact: bytes = b""

    def raw(self) -> bytes:
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        head = {"content-length": str(len(content)), "content-type": "application/json", **self.headers}
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        return "\r\n".join(lines).encode() + content


Answers = Callable[[Asked], Reply]


class Host:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[Asked] = []
        self.url = ""
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def end(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                asked = await _read(reader)
                self.asked.append(asked)
                reply = self.answers(asked)
                if reply.hang:
                    await reader.read()
                if reply.drop or reply.hang:
                    break
                writer.write(reply.exact or reply.raw())
                await writer.drain()
                if reply.exact:
                    break


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines) if name}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    return Asked(method, parts.path if "%2F" in parts.path else unquote(parts.path), query, headers, body)


@asynccontextmanager
async def answering(answers: Answers) -> AsyncIterator[Host]:
    host = Host(answers)
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    host.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield host
    finally:
        server.close()
        await host.end()


class Time:
    """`slept` are the waits, in order."""

    def __init__(self) -> None:
        self.seconds = 1_000_000_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


def settings(url: str, time: Time | None = None, **more: object) -> ForgeSettings:
    time = time or Time()
    known: dict[str, object] = {
        "url": url,
        "project": "dev/app",
        "token": lambda: TOKEN,
        "call_sec": 10.0,
        "clock": time,
        "sleep": time.sleep,
        "patience": Patience(),
    }
    return ForgeSettings(**{**known, **more})  # type: ignore[arg-type]


@asynccontextmanager
async def opened(
    kind: str, answers: Answers, time: Time | None = None, **more: object
) -> AsyncIterator[tuple[Forge, Host]]:
    async with answering(answers) as host:
        forge = open_forge(kind, settings(host.url, time, **more), Hosts())
        try:
            yield forge, host
        finally:
            await forge.close()


Table = dict[str, Reply | Callable[[Asked], Reply]]
T = TypeVar("T")


def talk_to(
    kind: str, table: Table, speak: Callable[[Forge, Host], Awaitable[T]], time: Time | None = None, **more: object
) -> T:
    """One conversation with a forge that has these answers."""

    async def go() -> T:
        async with opened(kind, routes(table), time, **more) as (forge, host):
            return await speak(forge, host)

    return asyncio.run(go())


def routes(table: Table) -> Answers:
    """By `METHOD path`, the API's root and repository left out; what is not there is 404."""

    def answer(asked: Asked) -> Reply:
        path = asked.path
        for root in ("/api/v1", "/api/v3", "/api/v4"):
            path = path.removeprefix(root)
        for repo in ("/repos/dev/app", "/projects/dev%2Fapp"):
            path = "R" + path.removeprefix(repo) if path.startswith(repo) else path
        found = table.get(f"{asked.method} {path}", Reply(404, {"message": "The target couldn't be found."}))
        return found(asked) if callable(found) else found

    return answer
