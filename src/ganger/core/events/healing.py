"""What healing does, as events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import RunEvent
from ganger.core.events.wording import listed


@dataclass(frozen=True, slots=True)
class HealStarted(RunEvent):
    """The intent: recorded before the healer is launched. `failed` are the tasks it may heal."""

    shown: ClassVar = True

    round: int
    window: int
    tasks: tuple[str, ...]
    failed: tuple[str, ...]
    agent: str
    log: str
    token: str
    lineage: int = 0
    isolate: bool = False
    account: str = ""
    reserved_usd: float = 0.0
    reserved_tokens: int = 0

    def sentence(self) -> str:
        return f"heal round {self.round} started ({self.agent}) for {listed(self.failed)}"


@dataclass(frozen=True, slots=True)
class HealRefused(RunEvent):
    """The healer's answer could not be read; it is requested again with a reminder."""

    shown: ClassVar = True

    round: int
    code: str
    message: str

    def sentence(self) -> str:
        return f"heal round {self.round}: answer requested again ({self.code}: {self.message})"


@dataclass(frozen=True, slots=True)
class PatchApplied(RunEvent):
    """One change to prompts, context, hints or runtime settings. `tasks` are those it touches, `file` has its text."""

    shown: ClassVar = True

    patch: str
    round: int
    target: str
    operation: str
    tasks: tuple[str, ...]
    path: str = ""
    task_id: str = ""
    file: str = ""
    timeout_sec: float | None = None
    concurrency: int | None = None
    current_batch_size: int | None = None
    in_place: bool = False

    def sentence(self) -> str:
        place = self.path or self.task_id
        return f"heal round {self.round}: {self.patch} changes {self.target}{f' {place}' if place else ''}"


@dataclass(frozen=True, slots=True)
class PatchRefused(RunEvent):
    shown: ClassVar = True

    round: int
    place: int
    target: str
    why: str

    def sentence(self) -> str:
        return f"heal round {self.round}: patch of {self.target} refused: {self.why}"


@dataclass(frozen=True, slots=True)
class PatchUndone(RunEvent):
    shown: ClassVar = True

    patch: str
    why: str

    def sentence(self) -> str:
        return f"{self.patch} undone"


@dataclass(frozen=True, slots=True)
class HealFinished(RunEvent):
    """The outcome of a round; recorded together with its patches and everything that follows from them.

    `next_size` is the window size from here on if the healer requested a smaller one; 0: unchanged."""

    shown: ClassVar = True

    round: int
    decision: str
    failure_class: str
    root_cause: str
    exit_code: int | None = None
    duration_sec: float = 0.0
    scope: str = ""
    learned_rule: str = ""
    problem: str = ""
    retry: tuple[str, ...] = ()
    next_size: int = 0

    def sentence(self) -> str:
        return f"heal round {self.round}: {self.decision}: {self.problem or self.root_cause}"


@dataclass(frozen=True, slots=True)
class HealAbandoned(RunEvent):
    """Healing stopped helping: the run ends, and this is why."""

    shown: ClassVar = True

    reason: str

    def sentence(self) -> str:
        return self.reason
