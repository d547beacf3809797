"""How workers reach the lead of a run: their requests, the replies, the address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WorkerCall:
    """A worker's request: a verb of the worker protocol, and the token that identifies the worker. `carrier` is how it
    arrived, `body` is JSON that is not checked yet."""

    verb: str
    token: str
    body: object
    carrier: str = "http"


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` is HTTP's: 200 accepted, 400 malformed, 401 unknown token, 403 not allowed with this token, 404 not
    found, 409 its attempt is over or an earlier request says otherwise, 413 too large, 429 too often, 503 cannot be
    accepted now: send it again later."""

    status: int
    body: Mapping[str, object]


Handler = Callable[[WorkerCall], Awaitable[Reply]]


class Endpoint(Protocol):
    """Where workers reach the lead of the run. The addresses stay the same from lead to lead."""

    @property
    def socket(self) -> Path:
        """The Unix socket; a sandboxed worker needs its folder."""

    @property
    def url(self) -> str:
        """Its address on loopback; empty when it has none."""

    async def open(self, handle: Handler) -> None:
        """Raises GangerError where it cannot listen."""

    async def close(self) -> None: ...
