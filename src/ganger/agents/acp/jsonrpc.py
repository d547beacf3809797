"""JSON-RPC with a program over its stdin and stdout, and the end of that program and of all it started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ganger.agents.child_processes import started, tree_of
from ganger.agents.streams import Lines, part, text

_GRACE_SEC = 2.0
_LOOK_SEC = 0.05


async def end_tree(process: Process, ask: Callable[[], None]) -> None:
    """Descendants are looked up before anything ends: afterwards their parents are unknown."""
    tree = tree_of(process.pid)
    ask()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            await exited(process, _GRACE_SEC)
        tree |= tree_of(process.pid)
        for pid, start in tree.items():
            # By then the pid may belong to another process.
            if started(pid) == start:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
    await exited(process)


async def exited(process: Process, within_sec: float | None = None) -> int:
    """The exit code, even while a child it left behind holds its output open; raises TimeoutError."""
    async with asyncio.timeout(within_sec):
        while process.returncode is None:
            await asyncio.sleep(_LOOK_SEC)
    return process.returncode


_CHUNK = 256 * 1024
_NO_SUCH_METHOD = -32601


@dataclass(frozen=True, slots=True)
class RpcRefusal(Exception):
    """The other side's answer is an error."""

    code: int
    message: str
    data: object = None


class Gone(Exception):
    """The other side has closed its output."""


class Wire:
    """`answer` gets its requests (None: unknown method), `notice` its notifications, `noise` all other lines.

    `heard_at`: the time of its last output, by the loop's clock.
    """

    def __init__(
        self,
        process: Process,
        *,
        answer: Callable[[str, dict[str, Any]], dict[str, Any] | None],
        notice: Callable[[str, dict[str, Any]], None],
        noise: Callable[[bytes], None],
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._out, self._in = process.stdin, process.stdout
        self._answer, self._notice, self._noise = answer, notice, noise
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last = 0
        self._gone = False
        self.heard_at = asyncio.get_running_loop().time()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises Refusal or Gone."""
        if self._gone:
            raise Gone
        self._last += 1
        number = self._last
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            self._send({"id": number, "method": method, "params": params})
            return await answer
        finally:
            del self._asked[number]

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    async def listen(self) -> None:
        """Reads until the other side closes its end."""
        lines = Lines()
        try:
            while data := await self._in.read(_CHUNK):
                self.heard_at = asyncio.get_running_loop().time()
                for line in lines.feed(data):
                    self._hear(line)
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Fails all open requests: no further answers are expected."""
        self._gone = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(Gone())

    def hang_up(self) -> None:
        self._out.close()

    def _send(self, message: dict[str, Any]) -> None:
        # Not waiting here loses nothing: the end of its output shows that a dead program did not read the message.
        if not self._out.is_closing():
            self._out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _hear(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            self._noise(line)
            return
        for message in data if isinstance(data, list) else [data]:
            if isinstance(message, dict):
                self._take(message)
            else:
                self._noise(line)

    def _take(self, message: dict[str, Any]) -> None:
        method, params = text(message, "method"), dict(part(message, "params"))
        if not method:
            self._resolve(message)
        elif "id" not in message:
            self._notice(method, params)
        else:
            result = self._answer(method, params)
            refused = {"code": _NO_SUCH_METHOD, "message": f"there is no {method} here"}
            self._send({"id": message["id"], **({"error": refused} if result is None else {"result": result})})

    def _resolve(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        answer = self._asked.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return
        if "error" in message:
            error = part(message, "error")
            code = error.get("code")
            told = text(error, "message") or json.dumps(message["error"])
            answer.set_exception(RpcRefusal(code if isinstance(code, int) else 0, told, error.get("data")))
        else:
            answer.set_result(dict(part(message, "result")))
