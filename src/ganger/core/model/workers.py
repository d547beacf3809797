"""A worker as the run knows it: its name, start and task, and what it left for the next one. Values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.vocabulary import WorkerState, WorkerVerdict

PULL = "pull"


@dataclass(frozen=True, slots=True)
class TierMark:
    """What a worker claims about one tier of its own checks; shown, never believed."""

    tier: int
    name: str = ""
    success: bool = True
    retry: int = 0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a worker got. `by` is `worker`, or `ganger` for what was observed from outside."""

    attempt: int
    at: str
    by: str = "worker"
    summary: str = ""
    done: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    last_action: str = ""
    next_action: str = ""
    files: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    percent: float | None = None
    context_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a worker: `probe`, `answer`, `checkpoint`, `shutdown`, `note`; `about` names the question."""

    number: int
    kind: str
    text: str
    at: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class WorkerNow:
    """The worker of a task's current or last attempt.

    `pulled`: a session that someone else opened and that asked for the task under `claim`. `report` is the file with
    its answer. `verdict` is why Ganger ended it: `stalled`, `lingering`, `context`, `ended`, `reassigned`,
    `lost_message`, `untold`.
    """

    name: str
    state: WorkerState = WorkerState.SPAWNED
    since: str = ""
    pulled: bool = False
    claim: str = ""
    session: str = ""
    step: str = ""
    percent: float | None = None
    note: str = ""
    tiers: tuple[TierMark, ...] = ()
    milestone: str = ""
    beat_at: str = ""
    context_pct: float | None = None
    suspicious: str = ""
    probes: int = 0
    warned: str = ""
    extended: int = 0
    report: str = ""
    done: bool = False
    escalated: str = ""
    verdict: WorkerVerdict = WorkerVerdict.NONE
    why: str = ""
    messages: tuple[Message, ...] = ()
    seen: tuple[str, ...] = ()
