"""How workers reach whoever leads a run: what they say, what they are answered, where they say it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker says: a verb of the worker protocol, and the token that tells who it is. `carrier` is how it came,
    `body` JSON that nobody has checked yet."""

    verb: str
    token: str
    body: object
    carrier: str = "http"


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` is HTTP's: 200 taken, 400 it makes no sense, 401 nobody knows the token, 403 not this one's to say,
    404 there is no such thing, 409 its attempt is over or it said something else before, 413 too large, 429 too often,
    503 nobody can take it now: say it again later."""

    status: int
    body: Mapping[str, object]


Handler = Callable[[Request], Awaitable[Reply]]


class Endpoint(Protocol):
    """Where workers reach whoever leads the run. Its addresses stay the same from lead to lead."""

    @property
    def socket(self) -> Path:
        """The Unix socket; a confined worker needs its folder."""

    @property
    def url(self) -> str:
        """Where it answers on loopback; empty when it does not."""

    async def open(self, handle: Handler) -> None:
        """Raises GangerError where it cannot listen."""

    async def close(self) -> None: ...
