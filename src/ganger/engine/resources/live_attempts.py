"""What is known of running attempts at this moment and dies with the lead: who is heard, since when, who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ganger.core.events.worker import WorkerBeat
from ganger.core.scheduling.health import HealthWatch
from ganger.core.signs import Heard
from ganger.ports import Exit, Facts, Running

# Of the time between two beats that was asked for: sooner is no second beat, later breaks the habit.
_TOO_SOON, _TOO_LATE = 0.3, 2.5


class LogActivity(Protocol):
    """Who listens to an agent's output."""

    @property
    def heard(self) -> Heard: ...

    @property
    def grew_at(self) -> float: ...

    @property
    def event_at(self) -> float: ...

    def asks(self) -> str: ...

    def look(self) -> bool:
        """Takes in what is new."""


class FolderActivity(Protocol):
    """Who looks at a folder, now and then."""

    def look(self, now: float) -> float:
        """The moment of the last look that found a change; 0 when there was none."""


@dataclass(slots=True)
class LiveAttempt:
    """One attempt whose worker is at work. Times are the clock's that never goes back."""

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
        """Beats in time make a habit; one that comes late breaks it, and a flurry is one beat."""
        since, self.beat_at = now - self.counted_at, now
        if self.beats and since < _TOO_SOON * every_sec:
            return
        self.beats = self.beats + 1 if self.beats and since <= _TOO_LATE * every_sec else 1
        self.counted_at = now

    def spoke(self, now: float) -> None:
        """Any other word is a sign, but no beat."""
        self.beat_at = max(self.beat_at, now)

    def finish(self, ended: Exit) -> None:
        """For a worker that is nobody's child: there is nothing more to wait for."""
        if self.over is not None and not self.over.done():
            self.over.set_result(ended)


async def _nothing_left(_post: LiveAttempt, _ended: Exit) -> None:
    """Where nobody can reach the lead, nobody leaves anything."""


class LiveAttempts:
    """All of them, by task. `take_rest` takes in what a worker that has ended said last."""

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
