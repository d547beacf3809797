"""One connection: requests are read one after another, each within its time limit, and answered in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ganger.endpoint.admission import Admission, Rule, Ticket, admit
from ganger.endpoint.capacity import SCRATCH, Hall
from ganger.endpoint.http1 import (
    CONTINUE,
    END,
    HEAD_LIMIT,
    HttpAnswer,
    RequestHead,
    check_first_line,
    parse_head,
    render,
)
from ganger.endpoint.refusals import RequestRefused, lead_busy, too_many

READ_WITHIN_SEC = 10.0
_IDLE_SEC = 120.0
_LINGER_SEC = 2.0
_LINGER_BYTES = 16 << 20

Gone = asyncio.Future[None]
Serve = Callable[[RequestHead, Ticket, bytes, str, Gone], Awaitable[HttpAnswer]]


class _Over(Exception):
    """The connection is closed; no answer is possible."""


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self, hall: Hall, door: Admission, serve: Serve, rules: tuple[Rule, ...], read_within_sec: float
    ) -> None:
        self._hall, self._door, self._serve, self._rules = hall, door, serve, rules
        self._read_within_sec = read_within_sec
        self._loop = asyncio.get_running_loop()
        self._inbox = bytearray()
        self._wanted = HEAD_LIMIT
        self._charged = self._in_work = 0
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._discarding = self._reading_paused = self.is_last = False
        self._discarded = 0
        self._transport: asyncio.Transport | None = None
        self._talk: asyncio.Task[None] | None = None
        self.gone: Gone = self._loop.create_future()
        self.idle_since: float | None = self._loop.time()

    # --- events of the loop ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._door.lets_in(transport.get_extra_info("socket")):
            transport.abort()
            return
        if not self._hall.enter(self):
            self._write(_refusal(lead_busy("there are too many connections")), close=True)
            transport.close()
            return
        self._talk = self._loop.create_task(self._answer_all())

    def get_buffer(self, sizehint: int) -> Any:
        return self._hall.scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._discarding:
            self._discarded += nbytes
        else:
            self._inbox += self._hall.scratch[:nbytes]
            self._recount()
            if len(self._inbox) > self._wanted + SCRATCH:
                self._read(on=False)
        self._news.set()

    def eof_received(self) -> bool:
        """The client may still read its answer; a request that only waits is given up."""
        self._leave_alone()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave_alone()
        self._writable.set()
        self._inbox.clear()
        self._recount()
        self._hall.leave(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def drop(self) -> None:
        """Closes it at once; only for an idle one."""
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> asyncio.Task[None] | None:
        """Ends the connection after the current answer; returns the task to wait for."""
        self.is_last = True
        if self.idle_since is not None:
            self.drop()
        return self._talk

    # --- reading and answering ---------------------------------------------------------------------------------------

    async def _answer_all(self) -> None:
        assert self._transport is not None
        try:
            while await self._answer_one():
                pass
        except _Over:
            pass
        except RequestRefused as refused:
            self._write(_refusal(refused), close=True)
            await self._linger()
        finally:
            self._hall.leave(self)
            self._transport.close()

    async def _answer_one(self) -> bool:
        """Answers one request; whether another may follow."""
        self.idle_since = self._loop.time()
        if not await self._has(1, _IDLE_SEC):
            return False
        head = await self._head(self._loop.time() + self._read_within_sec)
        ticket = admit(head, self._door, self._rules)
        if "expect" in head.headers and not self._inbox:
            self._send(CONTINUE)
        body = await self._body(ticket.length)
        self.idle_since = None
        with self._hall.serve(self.gone, ticket.token) as may:
            answer = _refusal(too_many("are being answered"))
            if may:
                answer = await self._serve(head, ticket, body, self._door.carrier, self.gone)
            self._in_work = 0
            self._recount()
            # A client that does not read its answer is treated as idle.
            self.idle_since = self._loop.time()
            close = self.is_last or "close" in head.words("connection")
            self._write(answer, close=close)
            await self._written()
        return not close

    async def _head(self, give_up_at: float) -> RequestHead:
        looked, begun = 0, False
        while True:
            end = self._inbox.find(END, max(0, looked - len(END)))
            if 0 <= end <= HEAD_LIMIT:
                return parse_head(self._take(end + len(END))[: -len(END)])
            if not begun and self._inbox.find(b"\n", looked) >= 0:
                begun = True
                check_first_line(bytes(self._inbox[:HEAD_LIMIT]))
            looked = len(self._inbox)
            if end >= 0 or looked > HEAD_LIMIT:
                raise RequestRefused(
                    431, "REQUEST_TOO_LARGE", f"the head is larger than {HEAD_LIMIT} bytes", "send fewer headers"
                )
            if not await self._has(looked + 1, give_up_at - self._loop.time()):
                raise _too_slow()

    async def _body(self, length: int) -> bytes:
        self._wanted = length
        if not await self._has(length, self._read_within_sec):
            raise _too_slow()
        body = self._take(length)
        self._wanted = HEAD_LIMIT
        self._in_work = length
        self._recount()
        return body

    async def _has(self, count: int, within_sec: float) -> bool:
        """Whether that many bytes came in time; raises _Over if no more can come."""
        try:
            async with asyncio.timeout(within_sec):
                while len(self._inbox) < count:
                    if self.gone.done():
                        raise _Over
                    # Small requests continue while a few large ones fill the shared memory.
                    if self._hall.is_overfull and len(self._inbox) > SCRATCH:
                        raise lead_busy("too much data is being sent at once")
                    self._read(on=True)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def _written(self) -> None:
        try:
            async with asyncio.timeout(self._read_within_sec):
                await self._writable.wait()
        except TimeoutError:
            self.drop()
            raise _Over from None

    async def _linger(self) -> None:
        """Lets the client read the answer although it still sends: closing at once would discard the answer."""
        assert self._transport is not None
        self._discarding = True
        self._inbox.clear()
        self._recount()
        try:
            if self._transport.can_write_eof() and not self._transport.is_closing():
                self._transport.write_eof()
            async with asyncio.timeout(_LINGER_SEC):
                while not self.gone.done() and self._discarded < _LINGER_BYTES:
                    self._read(on=True)
                    self._news.clear()
                    await self._news.wait()
        except (TimeoutError, OSError):
            pass

    # --- its parts --------------------------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        taken = bytes(self._inbox[:count])
        del self._inbox[:count]
        self._recount()
        return taken

    def _recount(self) -> None:
        now = len(self._inbox) + self._in_work
        self._hall.held += now - self._charged
        self._charged = now

    def _read(self, *, on: bool) -> None:
        if self._transport is None or self._transport.is_closing() or self._reading_paused is not on:
            return
        self._reading_paused = not on
        if on:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _leave_alone(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)
        self._news.set()

    def _write(self, answer: HttpAnswer, *, close: bool) -> None:
        self._send(render(answer, close=close))

    def _send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def _refusal(refused: RequestRefused) -> HttpAnswer:
    return HttpAnswer.of(refused.reply.status, refused.reply.body, refused.headers)


def _too_slow() -> RequestRefused:
    return RequestRefused(408, "TOO_SLOW", "the request did not arrive in time", "send it without pauses")
