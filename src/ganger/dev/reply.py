"""The played model's answers in neutral form; each protocol writes them in its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ganger.dev.conversation import ModelAsk, ModelCall

_PIECE = 9


class Stop(StrEnum):
    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer. `input` is everything sent, cached or not; `output` includes the thinking."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking: int = 0


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One answer: thinking, text, calls, and why it ends."""

    id: str
    text: str = ""
    think: str = ""
    calls: tuple[ModelCall, ...] = ()
    stop: Stop = Stop.END
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class ModelFault:
    """An error answer. `kind` is auth, forbidden, billing, credit, rate, quota, overloaded, server or request; or the
    fault of a conversation: context (too long), pairing (a call without its result), signature (of a thought)."""

    kind: str
    status: int
    message: str = ""
    retry_after: float | None = None
    reset_at: float | None = None
    now: float = 0.0

    def wait(self) -> int | None:
        """Whole seconds until a new request makes sense."""
        if self.retry_after is not None:
            return math.ceil(self.retry_after)
        return None if self.reset_at is None else max(0, math.ceil(self.reset_at - self.now))


@dataclass(frozen=True, slots=True)
class ModelRefusal:
    """An error answer as it is sent."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, object]


class Speech(Protocol):
    """One wire protocol."""

    name: str

    def owns(self, path: str) -> bool: ...
    def read(self, path: str, body: Mapping[str, object]) -> ModelAsk: ...
    def whole(self, ask: ModelAsk, reply: ModelReply) -> Mapping[str, object]: ...
    def stream(self, ask: ModelAsk, reply: ModelReply) -> Iterator[bytes]: ...
    def count(self, tokens: int) -> Mapping[str, object]: ...
    def refusal(self, fault: ModelFault) -> ModelRefusal: ...
    def broken(self, fault: ModelFault) -> bytes: ...


def pieces(text: str, size: int = _PIECE) -> Iterator[str]:
    """Splits a text into small deltas, which exposes a client that searches for a word in a single delta."""
    return (text[at : at + size] for at in range(0, len(text), size))
