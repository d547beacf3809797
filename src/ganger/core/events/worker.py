"""What workers report over the worker protocol, how their health is judged, and what is sent to them, as events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent, P, R, RunEvent, TaskEvent
from ganger.core.events.wording import clock, tier_words
from ganger.core.model.workers import Checkpoint, TierMark
from ganger.core.vocabulary import WorkerVerdict


@dataclass(frozen=True, slots=True)
class WorkerBeat(AttemptEvent):
    """A worker is alive and reports its progress. Without a `report` id, only some heartbeats are recorded."""

    task: str
    attempt: int
    report: str = ""
    step: str = ""
    percent: float | None = None
    note: str = ""
    tiers: tuple[TierMark, ...] = ()
    context_pct: float | None = None

    def sentence(self) -> str:
        # Only recorded as a line of its own if the worker sent a report id.
        if not self.report:
            return ""
        percent = [] if self.percent is None else [f"{self.percent:g} %"]
        parts = [self.step or "at work", *percent, *(tier_words(mark) for mark in self.tiers), self.note]
        return f"{self.task}: {', '.join(filter(None, parts))}"


@dataclass(frozen=True, slots=True)
class WorkerMilestone(AttemptEvent):
    shown: ClassVar = True

    task: str
    attempt: int
    report: str
    name: str
    note: str = ""

    def sentence(self) -> str:
        return f"{self.task}: milestone {self.name}{f': {self.note}' if self.note else ''}"


@dataclass(frozen=True, slots=True)
class CheckpointTaken(AttemptEvent):
    """The state of the work: reported by the worker, or observed from outside every few minutes."""

    shown: ClassVar = True

    task: str
    attempt: int
    report: str
    checkpoint: Checkpoint

    def sentence(self) -> str:
        then = f"; next: {self.checkpoint.next_action}" if self.checkpoint.next_action else ""
        stand = f"{len(self.checkpoint.done)} done, {len(self.checkpoint.remaining)} remaining"
        return f"{self.task}: checkpoint: {stand}{then}" if self.checkpoint.by == "worker" else ""


@dataclass(frozen=True, slots=True)
class WorkerReported(AttemptEvent):
    """A worker gave its answer over the protocol; `file` holds it, and was on disk before this was recorded."""

    shown: ClassVar = True

    task: str
    attempt: int
    report: str
    status: str
    summary: str
    file: str
    digest: str

    def sentence(self) -> str:
        return f"{self.task}: worker reports {self.status}: {self.summary}"


@dataclass(frozen=True, slots=True)
class WorkerDone(AttemptEvent):
    """A worker set its done mark: it has finished reporting."""

    task: str
    attempt: int
    report: str = ""


@dataclass(frozen=True, slots=True)
class WorkerSuspected(AttemptEvent):
    """A worker was inactive for half of its limit, or there is another sign that it makes no progress.

    `probe` says how it was probed; empty: it was not.
    """

    shown: ClassVar = True

    task: str
    attempt: int
    why: str
    probe: str = ""

    def sentence(self) -> str:
        return f"{self.task}: suspicious: {self.why}{f'; {self.probe}' if self.probe else ''}"


@dataclass(frozen=True, slots=True)
class WorkerCleared(AttemptEvent):
    """A false alarm: this activity was seen since."""

    shown: ClassVar = True

    task: str
    attempt: int
    why: str

    def sentence(self) -> str:
        return f"{self.task}: no longer suspicious: {self.why}"


@dataclass(frozen=True, slots=True)
class LimitWarned(AttemptEvent):
    """Half of a limit is used up, or there is a sign of a deadlock."""

    shown: ClassVar = True

    task: str
    attempt: int
    limit: str
    text: str

    def sentence(self) -> str:
        return f"{self.task}: warning: {self.text}"


@dataclass(frozen=True, slots=True)
class LimitExtended(AttemptEvent):
    """It has used up its time at this milestone and is active: it may continue until then (Unix time)."""

    shown: ClassVar = True

    task: str
    attempt: int
    limit: str
    until: float
    why: str

    def sentence(self) -> str:
        return f"{self.task}: time limit extended to {clock(self.until)}: {self.why}"


@dataclass(frozen=True, slots=True)
class WorkerEnding(AttemptEvent):
    """The intent: this worker is about to be stopped, and this is what its end will mean."""

    shown: ClassVar = True

    task: str
    attempt: int
    verdict: WorkerVerdict
    why: str

    def sentence(self) -> str:
        return f"{self.task}: worker stopped ({self.verdict}): {self.why}"


@dataclass(frozen=True, slots=True)
class AttemptCheckpointed(AttemptEvent):
    """The worker has finished and its task has not: a new worker continues from the checkpoint. No counter pays."""

    fits: ClassVar = {R: P}
    shown: ClassVar = True

    task: str
    attempt: int
    why: str

    def sentence(self) -> str:
        return f"{self.task}: a new worker continues: {self.why}"


@dataclass(frozen=True, slots=True)
class MessageLeft(TaskEvent):
    """Something for the worker of this attempt, which takes it when it asks. An answer also reaches later attempts."""

    task: str
    attempt: int
    kind: str
    text: str
    about: str = ""

    def sentence(self) -> str:
        return f"{self.task}: {self.kind} for its worker: {self.text}"


@dataclass(frozen=True, slots=True)
class QuestionRaised(RunEvent):
    """A question has had no answer for long: it is shown and notified again."""

    shown: ClassVar = True

    question: str
    times: int

    def sentence(self) -> str:
        return f"question {self.question} is still open (reminder {self.times})"
