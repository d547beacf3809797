"""What workers report over the worker protocol, how their health is judged, and what is sent to them, as events."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.workers import Checkpoint, TierMark
from ganger.core.vocabulary import WorkerVerdict


@dataclass(frozen=True, slots=True)
class WorkerBeat:
    """A worker is alive and reports its progress. Without a `report` id, only some heartbeats are recorded."""

    task: str
    attempt: int
    report: str = ""
    step: str = ""
    percent: float | None = None
    note: str = ""
    tiers: tuple[TierMark, ...] = ()
    context_pct: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerMilestone:
    task: str
    attempt: int
    report: str
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointTaken:
    """The state of the work: reported by the worker, or observed from outside every few minutes."""

    task: str
    attempt: int
    report: str
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class WorkerReported:
    """A worker gave its answer over the protocol; `file` holds it, and was on disk before this was recorded."""

    task: str
    attempt: int
    report: str
    status: str
    summary: str
    file: str
    digest: str


@dataclass(frozen=True, slots=True)
class WorkerDone:
    """A worker set its done mark: it has finished reporting."""

    task: str
    attempt: int
    report: str = ""


@dataclass(frozen=True, slots=True)
class WorkerSuspected:
    """A worker was inactive for half of its limit, or there is another sign that it makes no progress.

    `probe` says how it was probed; empty: it was not.
    """

    task: str
    attempt: int
    why: str
    probe: str = ""


@dataclass(frozen=True, slots=True)
class WorkerCleared:
    """A false alarm: this activity was seen since."""

    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class LimitWarned:
    """Half of a limit is used up, or there is a sign of a deadlock."""

    task: str
    attempt: int
    limit: str
    text: str


@dataclass(frozen=True, slots=True)
class LimitExtended:
    """It has used up its time at this milestone and is active: it may continue until then (Unix time)."""

    task: str
    attempt: int
    limit: str
    until: float
    why: str


@dataclass(frozen=True, slots=True)
class WorkerEnding:
    """The intent: this worker is about to be stopped, and this is what its end will mean."""

    task: str
    attempt: int
    verdict: WorkerVerdict
    why: str


@dataclass(frozen=True, slots=True)
class AttemptCheckpointed:
    """The worker has finished and its task has not: a new worker continues from the checkpoint. No counter pays."""

    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class MessageLeft:
    """Something for the worker of this attempt, which takes it when it asks. An answer also reaches later attempts."""

    task: str
    attempt: int
    kind: str
    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class QuestionRaised:
    """A question has had no answer for long: it is shown and notified again."""

    question: str
    times: int
