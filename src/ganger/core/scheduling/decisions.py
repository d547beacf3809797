"""What the core can decide for a run, as values."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.healing.policy import HealVerdict
from ganger.core.vocabulary import RunStatus


@dataclass(frozen=True, slots=True)
class Start:
    task: str


@dataclass(frozen=True, slots=True)
class OpenWindow:
    size: int
    tasks: tuple[str, ...]
    retry_of: int = 0


@dataclass(frozen=True, slots=True)
class CloseWindow:
    done: int
    failed: int
    blocked: int
    failure_rate: float
    next_size: int
    verdict: HealVerdict


@dataclass(frozen=True, slots=True)
class Wake:
    """Time has passed: these tasks no longer wait for their account's quota."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this moment (Unix time), unless something happens."""

    until: float


@dataclass(frozen=True, slots=True)
class MergeLevel:
    """No more tasks of this level can run now: the verified ones are merged."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    run_status: RunStatus
    abort_reason: str | None
    why: str
    question: str = ""


Decision = Start | OpenWindow | CloseWindow | Wake | Wait | MergeLevel | Finish
