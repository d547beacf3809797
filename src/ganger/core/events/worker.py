"""What workers say over the worker protocol, what is thought of their health, and what they are told, as events."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.workers import Checkpoint, TierMark


@dataclass(frozen=True, slots=True)
class WorkerBeat:
    """A worker is alive and says how far it is. Without a `report` id it is one of many and recorded now and then."""

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
    """Where the work stands: said by the worker, or seen from outside every few minutes."""

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
    """A worker set its done mark: it has nothing more to say."""

    task: str
    attempt: int
    report: str = ""


@dataclass(frozen=True, slots=True)
class WorkerSuspected:
    """Nothing was seen of a worker for half of what is allowed, or there is another sign that it gets nowhere.

    `probe` says how it was asked whether it lives; empty: it was not.
    """

    task: str
    attempt: int
    why: str
    probe: str = ""


@dataclass(frozen=True, slots=True)
class WorkerCleared:
    """A false alarm: this was seen of it since."""

    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class LimitWarned:
    """Half of a limit is gone, or a sign of a deadlock is there."""

    task: str
    attempt: int
    limit: str
    text: str


@dataclass(frozen=True, slots=True)
class LimitExtended:
    """It has used up its time at this milestone and is at work: it may go on until then (Unix time)."""

    task: str
    attempt: int
    limit: str
    until: float
    why: str


@dataclass(frozen=True, slots=True)
class WorkerEnding:
    """The intent: this worker is about to be ended, and this is what its end will mean."""

    task: str
    attempt: int
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class AttemptCheckpointed:
    """The worker's part is over and its task is not: a fresh worker goes on from the checkpoint. No counter pays."""

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
    """Nobody has answered for long: shown and told once more."""

    question: str
    times: int
