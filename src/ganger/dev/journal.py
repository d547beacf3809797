"""The server's requests and answers: one entry per request, in memory and as lines of a file; no headers, no keys."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ganger.dev.conversation import Turn


@dataclass(frozen=True, slots=True)
class Seen:
    """One request. Tokens are those reported to the client; a cut or refused answer counts none.

    `step` is the step's number from 0, -1 for a request beside the work; `answered` is the kind of the step.
    """

    protocol: str
    path: str
    model: str
    conversation: tuple[Turn, ...]
    input_tokens: int
    output_tokens: int
    step: int
    scenario: str
    at: float
    answered: str
    status: int


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Sums over requests."""

    input: int = 0
    output: int = 0
    requests: int = 0


class RequestLog:
    """Keeps every entry and wakes waiting threads."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._seen: list[Seen] = []
        self._news = threading.Condition()

    def add(self, seen: Seen) -> None:
        with self._news:
            self._seen.append(seen)
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(asdict(seen), ensure_ascii=False) + "\n")
            self._news.notify_all()

    def seen(self) -> tuple[Seen, ...]:
        with self._news:
            return tuple(self._seen)

    def tokens(self, scenario: str | None = None, *, beside: bool = True) -> TokenCount:
        """Sums, of one scenario if named; without `beside`, requests for titles and the like are left out."""
        rows = [seen for seen in self.seen() if scenario in (None, seen.scenario) and (beside or seen.step >= 0)]
        return TokenCount(sum(s.input_tokens for s in rows), sum(s.output_tokens for s in rows), len(rows))

    def wait_for(self, wanted: Callable[[tuple[Seen, ...]], bool], timeout_s: float) -> bool:
        """Whether the entries met the condition in time."""
        end = time.monotonic() + timeout_s
        with self._news:
            return self._news.wait_for(lambda: wanted(tuple(self._seen)), max(0.0, end - time.monotonic()))
