"""The endpoint of a run: listens, passes every accepted request to the lead, and sends the answer back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganger.contracts.parser import MOST_VALUES
from ganger.contracts.reading.strict_json import DocumentFault, check_count, loads
from ganger.endpoint import address as places
from ganger.endpoint.admission import MCP, RULES, Admission, Rule, Ticket, TokenRate, local_uids
from ganger.endpoint.capacity import Hall
from ganger.endpoint.connection import READ_WITHIN_SEC, Connection, Gone
from ganger.endpoint.http1 import HttpAnswer, RequestHead
from ganger.endpoint.mcp import Mcp
from ganger.endpoint.refusals import RequestRefused, bad_request, lead_busy, too_often
from ganger.errors import GangerError
from ganger.ports.endpoint import Handler, Reply, WorkerCall

# These requests only wait: nothing is lost if the client has gone.
_WAITING = frozenset({"next", "messages"})
# A larger body is parsed in a thread; for the rate limit, this many bytes count as one more request.
_SMALL = 64 * 1024
_COUNTS_AS_ONE = 32 * 1024
_OPEN_FILES = 4096
_UNKNOWN = 401
_ANSWERS_WITHIN_SEC = 1.0
_ENDS_WITHIN_SEC = 5.0
_HELLO = b"GET / HTTP/1.1\r\nHost: ganger\r\n\r\n"


class ReportServer:
    """`peers` are the users, besides this one and root, whose processes may use the socket."""

    def __init__(self, folder: Path, *, peers: frozenset[int] = frozenset(), http: bool = True, port: int = 0) -> None:
        self._folder, self._peers, self._http, self._port = folder, peers, http, port
        self._before = places.find(folder)
        self._address = replace(self._before, url="")
        self._hall, self._pace, self._mcp = Hall(), TokenRate(), Mcp(self._ask, self._slow_down)
        self._rules: tuple[Rule, ...] = RULES
        self._read_within_sec = READ_WITHIN_SEC
        self._handle: Handler | None = None
        self._servers: list[asyncio.Server] = []
        self._made: os.stat_result | None = None
        self._under_way: set[asyncio.Task[Reply]] = set()
        self._leaving: Gone | None = None
        self._parsing = asyncio.Lock()

    @property
    def socket(self) -> Path:
        return self._address.socket

    @property
    def url(self) -> str:
        return self._address.url

    async def open(self, handle: Handler) -> None:
        """Raises GangerError if it cannot listen."""
        self._handle = handle
        self._leaving = asyncio.get_running_loop().create_future()
        _make_room()
        places.make_folder(self.socket.parent)
        if await _answers(self.socket):
            raise places.taken(self.socket)
        try:
            await self._open_socket()
            if self._http:
                await self._open_loopback()
            places.publish(self._folder, self._address)
        except BaseException:
            await self.close()
            raise

    async def _open_socket(self) -> None:
        door = Admission("socket", uids=local_uids(self._peers))
        listening = places.listen_here(self.socket)
        self._made = self.socket.lstat()
        loop = asyncio.get_running_loop()
        made = await loop.create_unix_server(lambda: self._line(door), sock=listening, backlog=places.AT_ONCE)
        listening.listen(places.BACKLOG)
        self._servers.append(made)

    async def _open_loopback(self) -> None:
        listening = places.listen_on_loopback(self._port, self._before.port)
        port = listening.getsockname()[1]
        door = Admission("http", hosts=frozenset({f"{places.HOST}:{port}", f"localhost:{port}"}))
        loop = asyncio.get_running_loop()
        made = await loop.create_server(lambda: self._line(door), sock=listening, backlog=places.AT_ONCE)
        listening.listen(places.BACKLOG)
        self._servers.append(made)
        self._address = replace(self._address, url=f"http://{places.HOST}:{port}")

    def _line(self, door: Admission) -> Connection:
        return Connection(self._hall, door, self._serve, self._rules, self._read_within_sec)

    async def close(self) -> None:
        """Waiting requests are told to retry; requests being recorded are recorded and answered."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._made is not None and places.is_ours(self.socket, self._made):
            self.socket.unlink(missing_ok=True)
        self._made = None
        if self._leaving is not None and not self._leaving.done():
            self._leaving.set_result(None)
        talks = [line.finish() for line in list(self._hall.guests) if isinstance(line, Connection)]
        left = {task for task in (*talks, *self._under_way) if task is not None and not task.done()}
        if left:
            await asyncio.wait(left, timeout=_ENDS_WITHIN_SEC)

    # --- a request --------------------------------------------------------------------------------------------------

    async def _serve(self, head: RequestHead, ticket: Ticket, body: bytes, carrier: str, gone: Gone) -> HttpAnswer:
        """Answers a request; of an internal error the worker only learns that nothing was accepted."""
        try:
            return await self._answer(head, ticket, body, carrier, gone)
        except RequestRefused as refused:
            said = refused
        except Exception as problem:  # noqa: BLE001 - the connection goes on
            _tell(ticket.place, problem)
            said = lead_busy()
        return HttpAnswer.of(said.reply.status, said.reply.body, said.headers)

    async def _answer(self, head: RequestHead, ticket: Ticket, body: bytes, carrier: str, gone: Gone) -> HttpAnswer:
        self._slow_down(ticket.token, len(body))
        value = _parsed(body) if len(body) <= _SMALL else await self._parsed_aside(ticket, body, carrier, gone)
        if ticket.place == MCP:
            return await self._mcp.answer(head, ticket.token, value, gone)
        if not isinstance(value, dict):
            raise bad_request("the body is not a JSON object")
        reply = await self._ask(WorkerCall(ticket.place, ticket.token, value, carrier), gone)
        return HttpAnswer.of(reply.status, {"ok": reply.status < 400, **reply.body}, _later(reply))

    async def _parsed_aside(self, ticket: Ticket, body: bytes, carrier: str, gone: Gone) -> object:
        """Parses a large body in a thread: only from known tokens and one at a time, while others are answered."""
        known = await self._ask(WorkerCall("messages", ticket.token, {}, carrier), gone)
        if known.status == _UNKNOWN:
            raise RequestRefused(_UNKNOWN, str(known.body.get("code")), str(known.body.get("message")))
        async with self._parsing:
            return await asyncio.to_thread(_parsed, body)

    def _slow_down(self, token: str, size: int = 0) -> None:
        wait_sec = self._pace.wait_sec(token, asyncio.get_running_loop().time(), 1 + size / _COUNTS_AS_ONE)
        if wait_sec:
            raise too_often(wait_sec)

    async def _ask(self, request: WorkerCall, gone: Gone) -> Reply:
        """The lead's reply."""
        if not _only_waits(request):
            return await self._reply(request, gone)
        with self._hall.wait(gone, request.verb, request.token, alone=request.verb == "messages"):
            return await self._reply(request, gone)

    async def _reply(self, request: WorkerCall, gone: Gone) -> Reply:
        """The lead's reply; a request that only waits is given up when its client has gone."""
        assert self._handle is not None and self._leaving is not None
        task = asyncio.ensure_future(self._handle(request))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        if request.verb in _WAITING:
            ends: set[asyncio.Future[Any]] = {task, gone, self._leaving}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
        except GangerError:
            pass
        except Exception as problem:  # noqa: BLE001 - one request's trouble is nobody else's
            _tell(request.verb, problem)
        raise lead_busy()


def _only_waits(request: WorkerCall) -> bool:
    """Whether it may take long although it only waits."""
    body = request.body if isinstance(request.body, dict) else {}
    return request.verb in _WAITING and (request.verb == "next" or bool(body.get("wait_sec")))


def _make_room() -> None:
    """Raises the limit of open files: each connection is one, and the lead needs more of them."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if few != resource.RLIM_INFINITY and few < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _tell(verb: str, problem: Exception) -> None:
    told = {"message": f"the request {verb} of a worker failed", "exception": problem}
    asyncio.get_running_loop().call_exception_handler(told)


def _later(reply: Reply) -> dict[str, str]:
    return {"Retry-After": "1"} if reply.status in (429, 503) else {}


def _parsed(body: bytes) -> object:
    try:
        text = body.decode("utf-8")
        check_count(text, MOST_VALUES)
        return loads(text)
    except UnicodeDecodeError:
        raise bad_request("the body is not UTF-8") from None
    except DocumentFault as fault:
        raise RequestRefused(
            400, fault.code, f"the body is not acceptable JSON: {fault}", "fix it and send it again"
        ) from None


async def _answers(path: Path) -> bool:
    """Whether an endpoint answers at the path; one that has stopped, or whose process is gone, does not."""
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_SEC):
            reader, writer = await asyncio.open_unix_connection(str(path))
            try:
                writer.write(_HELLO)
                return bool(await reader.read(1))
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
