"""What is known only at this moment about running attempts, and ends with the lead: activity, times, waiters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ganger.core.events.worker import WorkerBeat
from ganger.core.scheduling.health import HealthWatch
from ganger.core.signs import Heard
from ganger.ports.processes import Exit, Facts, Running

# Shares of the requested time between two heartbeats: sooner is not a second one, later ends the regular rhythm.
_TOO_SOON, _TOO_LATE = 0.3, 2.5


class LogActivity(Protocol):
    """Reads an agent's output."""

    @property
    def heard(self) -> Heard: ...

    @property
    def grew_at(self) -> float: ...

    @property
    def event_at(self) -> float: ...

    def asks(self) -> str: ...

    def look(self) -> bool:
        """Reads what is new."""


class FolderActivity(Protocol):
    """Looks at a folder from time to time."""

    def look(self, now: float) -> float:
        """The time of the last look that found a change; 0 if there was none."""


@dataclass(slots=True)
class LiveAttempt:
    """One attempt whose worker is at work. Times are those of the monotonic clock."""

    task: str
    attempt: int
    fence: str
    key: str
    began_at: float
    folder: Path
    desk: Path
    pulled: bool = False
    time_limit_sec: float | None = None
    window_tokens: int = 0
    running: Running | None = None
    followed: bool = False
    ear: LogActivity | None = None
    eye: FolderActivity | None = None
    watch: HealthWatch = field(default_factory=HealthWatch)
    beat_at: float = 0.0
    beats: int = 0
    counted_at: float = 0.0
    unsaid: WorkerBeat | None = None
    limit_at: float | None = None
    cpu_at: float = 0.0
    facts: Facts | None = None
    facts_at: float = 0.0
    files_at: float = 0.0
    stopped: bool = False
    spared_until: float = 0.0
    ending: bool = False
    closed: bool = False
    said_all: bool = False
    judged_at: float = 0.0
    marked_since: float = 0.0
    checkpoint_at: float = 0.0
    stand_due: bool = False
    eye_at: float = 0.0
    told_at: float = 0.0
    ready: asyncio.Future[str] | None = None
    over: asyncio.Future[Exit] | None = None
    files_seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def beat(self, now: float, every_sec: float) -> None:
        """Heartbeats on time count as regular; a late one ends that, and several at once count as one."""
        since, self.beat_at = now - self.counted_at, now
        if self.beats and since < _TOO_SOON * every_sec:
            return
        self.beats = self.beats + 1 if self.beats and since <= _TOO_LATE * every_sec else 1
        self.counted_at = now

    def spoke(self, now: float) -> None:
        """Any other message is a sign of life, but not a heartbeat."""
        self.beat_at = max(self.beat_at, now)

    def finish(self, ended: Exit) -> None:
        """For a worker that is not Ganger's child process: there is nothing more to wait for."""
        if self.over is not None and not self.over.done():
            self.over.set_result(ended)


async def _nothing_left(_post: LiveAttempt, _ended: Exit) -> None:
    """If no worker can reach the lead, there is nothing to read."""


class LiveAttempts:
    """All of them, by task. `take_rest` reads the last messages of a worker that has ended."""

    def __init__(self) -> None:
        self._posts: dict[str, LiveAttempt] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.take_rest: Callable[[LiveAttempt, Exit], Awaitable[None]] = _nothing_left

    def __iter__(self) -> Iterator[LiveAttempt]:
        return iter(list(self._posts.values()))

    def __len__(self) -> int:
        return len(self._posts)

    def get(self, task: str) -> LiveAttempt | None:
        return self._posts.get(task)

    def enter(self, post: LiveAttempt) -> None:
        self._posts[post.task] = post
        self.on_change()

    def leave(self, post: LiveAttempt) -> None:
        if self._posts.get(post.task) is post:
            del self._posts[post.task]
            self.on_change()
