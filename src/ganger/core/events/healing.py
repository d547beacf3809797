"""What healing does, as events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealStarted:
    """The intent: recorded before the healer is launched. `failed` are the tasks it may heal."""

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


@dataclass(frozen=True, slots=True)
class HealRefused:
    """The healer's answer could not be read; it is requested again with a reminder."""

    round: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PatchApplied:
    """One change to prompts, context, hints or runtime settings. `tasks` are those it touches, `file` has its text."""

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


@dataclass(frozen=True, slots=True)
class PatchRefused:
    round: int
    place: int
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class PatchUndone:
    patch: str
    why: str


@dataclass(frozen=True, slots=True)
class HealFinished:
    """The outcome of a round; recorded together with its patches and everything that follows from them.

    `next_size` is the window size from here on if the healer requested a smaller one; 0: unchanged."""

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


@dataclass(frozen=True, slots=True)
class HealAbandoned:
    """Healing stopped helping: the run ends, and this is why."""

    reason: str
