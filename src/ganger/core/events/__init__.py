"""Everything that can happen to a run: each event's fields, its sentence, the statuses it fits; its form in the store.

An event records a decision or a result. It never holds a secret, a file's content or an agent's raw output.
"""

from __future__ import annotations

import json
import re
import typing
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar

from ganger.core.events.agents import AgentHeard as AgentHeard, CostSettled as CostSettled
from ganger.core.events.changes import (
    ChangeTaken as ChangeTaken,
    EditsSeen as EditsSeen,
    ExpectedMissing as ExpectedMissing,
    FixedRestored as FixedRestored,
    GatesChecked as GatesChecked,
    GatesRestored as GatesRestored,
    HeadIntended as HeadIntended,
    HeadKept as HeadKept,
    Landed as Landed,
    Merged as Merged,
    MergeQueued as MergeQueued,
    RefsMoved as RefsMoved,
    UnclaimedEdits as UnclaimedEdits,
    VerifyRecovered as VerifyRecovered,
    WorkSaved as WorkSaved,
    WorkspaceReady as WorkspaceReady,
)
from ganger.core.events.delivery import (
    ChainCleared as ChainCleared,
    ChainHalted as ChainHalted,
    ChainPaused as ChainPaused,
    CiJudged as CiJudged,
    CiSeen as CiSeen,
    CiWaived as CiWaived,
    CulpritFound as CulpritFound,
    HalfJudged as HalfJudged,
    HeadMoved as HeadMoved,
    MilestoneReached as MilestoneReached,
    MirrorProved as MirrorProved,
    Pushed as Pushed,
    PushIntended as PushIntended,
    PushRefused as PushRefused,
    RebaseIntended as RebaseIntended,
    Remarked as Remarked,
    RepoUnlocked as RepoUnlocked,
    RequestChanged as RequestChanged,
    RequestIntended as RequestIntended,
    RequestOpened as RequestOpened,
    Retriggered as Retriggered,
    RetriggerIntended as RetriggerIntended,
    ReviewAsked as ReviewAsked,
    Reviewed as Reviewed,
    TargetJudged as TargetJudged,
)
from ganger.core.events.event import (
    EVENT_TYPES as EVENT_TYPES,
    TYPE_NAMES as TYPE_NAMES,
    AttemptEvent as AttemptEvent,
    B,
    D,
    E,
    Event as Event,
    F,
    P,
    R,
    RunEvent as RunEvent,
    TaskEvent as TaskEvent,
)
from ganger.core.events.healing import (
    HealAbandoned as HealAbandoned,
    HealFinished as HealFinished,
    HealRefused as HealRefused,
    HealStarted as HealStarted,
    PatchApplied as PatchApplied,
    PatchRefused as PatchRefused,
    PatchUndone as PatchUndone,
)
from ganger.core.events.hosts import (
    HostAwaited as HostAwaited,
    HostAway as HostAway,
    HostBack as HostBack,
    HostTried as HostTried,
)
from ganger.core.events.people import (
    AccountLimited as AccountLimited,
    AccountPaused as AccountPaused,
    AccountShut as AccountShut,
    AccountTried as AccountTried,
    AccountWorks as AccountWorks,
    CommandTaken as CommandTaken,
    DrainRequested as DrainRequested,
    QuestionAnswered as QuestionAnswered,
    QuestionAsked as QuestionAsked,
    RunPaused as RunPaused,
    RunResumed as RunResumed,
    SettingsChanged as SettingsChanged,
    StopRequested as StopRequested,
)
from ganger.core.events.removals import (
    CommitsRemoved as CommitsRemoved,
    PushLost as PushLost,
    RemovalDecided as RemovalDecided,
    SetBackIntended as SetBackIntended,
)
from ganger.core.events.requests import (
    LandedUnjudged as LandedUnjudged,
    MergeIntended as MergeIntended,
    RequestMerge as RequestMerge,
    TrackingMoved as TrackingMoved,
    UpdateConflicted as UpdateConflicted,
    UpdateIntended as UpdateIntended,
)
from ganger.core.events.reverts import (
    RevertChosen as RevertChosen,
    Reverted as Reverted,
    RevertFailed as RevertFailed,
)
from ganger.core.events.wording import listed
from ganger.core.events.worker import (
    AttemptCheckpointed as AttemptCheckpointed,
    CheckpointTaken as CheckpointTaken,
    LimitExtended as LimitExtended,
    LimitWarned as LimitWarned,
    MessageLeft as MessageLeft,
    QuestionRaised as QuestionRaised,
    WorkerBeat as WorkerBeat,
    WorkerCleared as WorkerCleared,
    WorkerDone as WorkerDone,
    WorkerEnding as WorkerEnding,
    WorkerMilestone as WorkerMilestone,
    WorkerReported as WorkerReported,
    WorkerSuspected as WorkerSuspected,
)
from ganger.core.model.records import Policy, TaskSpec, VerifyStep
from ganger.core.model.run_settings import RunSettings
from ganger.core.plain_values import builder
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus


@dataclass(frozen=True, slots=True)
class RunStarted(RunEvent):
    run_id: str
    manifest_digest: str
    policy: Policy
    tasks: tuple[TaskSpec, ...]
    version: str = ""
    contents: tuple[str, ...] = ()

    def sentence(self) -> str:
        return f"run {self.run_id} started with {len(self.tasks)} tasks"


@dataclass(frozen=True, slots=True)
class LeadStarted(RunSettings, RunEvent):
    """A process took the lead: the first time, and each time the run is continued."""

    pid: int
    fence: int = 0
    boot_id: str = ""

    def sentence(self) -> str:
        return f"process {self.pid} leads the run"


@dataclass(frozen=True, slots=True)
class Reconciled(RunEvent):
    """A person applied a changed manifest: what the run consists of from here on."""

    shown: ClassVar = True

    manifest_digest: str
    tasks: tuple[TaskSpec, ...]
    contents: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def sentence(self) -> str:
        return f"manifest applied: {len(self.added)} added, {len(self.removed)} removed, {len(self.changed)} start over"


@dataclass(frozen=True, slots=True)
class ContentsSeen(RunEvent):
    """Prompts of tasks that were never attempted have changed since; nothing depends on the old text."""

    contents: dict[str, str]


@dataclass(frozen=True, slots=True)
class WindowOpened(RunEvent):
    """`retry_of` is the window whose failures were healed; heal rounds are counted together with it."""

    shown: ClassVar = True

    index: int
    size: int
    tasks: tuple[str, ...]
    retry_of: int = 0

    def sentence(self) -> str:
        return f"window {self.index} opened: {listed(self.tasks)}"


@dataclass(frozen=True, slots=True)
class WindowClosed(RunEvent):
    index: int
    done: int
    failed: int
    blocked: int
    failure_rate: float
    next_size: int

    def sentence(self) -> str:
        ends = f"{self.done} done, {self.failed} failed, {self.blocked} blocked"
        return f"window {self.index} closed: {ends}; next size {self.next_size}"


@dataclass(frozen=True, slots=True)
class AttemptStarted(TaskEvent):
    """The claim: recorded before anything is launched. `token` fences every later report. `session` is the
    agent session that continues, only with an agent of the same name and `kind` within the same `walls`. `worker` is
    the name of a session that requested the task, with the request `claim`. `delivers`: a delivery continues without a
    worker."""

    fits: ClassVar = {P: R}
    shown: ClassVar = True

    task: str
    attempt: int
    token: str
    agent: str
    why: str
    log: str
    account: str = ""
    reserved_usd: float = 0.0
    reserved_tokens: int = 0
    session: str = ""
    kind: str = ""
    walls: str = ""
    worker: str = ""
    claim: str = ""
    worker_session: str = ""
    delivers: bool = False

    def sentence(self) -> str:
        if self.delivers:
            return f"{self.task}: attempt {self.attempt}: delivery continues without a worker"
        who = f"requested by {self.worker}" if self.worker else self.agent
        return f"{self.task}: attempt {self.attempt} started ({who}{', continues its session' if self.session else ''})"


@dataclass(frozen=True, slots=True)
class AttemptLaunched(AttemptEvent):
    task: str
    attempt: int
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class AttemptExited(AttemptEvent):
    task: str
    attempt: int
    exit_code: int | None
    signal: int | None
    timed_out: bool
    duration_sec: float
    error: str = ""
    over_output: bool = False
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ResultAccepted(AttemptEvent):
    task: str
    attempt: int
    status: str
    summary: str
    repaired: bool = False
    writes: int = 0

    def sentence(self) -> str:
        return f"{self.task}: the agent reports {self.status}" + (f" with {self.writes} writes" if self.writes else "")


@dataclass(frozen=True, slots=True)
class ResultRefused(AttemptEvent):
    shown: ClassVar = True

    task: str
    attempt: int
    code: str
    message: str

    def sentence(self) -> str:
        return f"{self.task}: answer refused ({self.code})"


@dataclass(frozen=True, slots=True)
class WritesIntended(AttemptEvent):
    """Recorded after the backup is whole and before the first file changes."""

    task: str
    attempt: int
    backup: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WritesApplied(AttemptEvent):
    task: str
    attempt: int

    def sentence(self) -> str:
        return f"{self.task}: changes written"


@dataclass(frozen=True, slots=True)
class WritesRolledBack(AttemptEvent):
    shown: ClassVar = True

    task: str
    attempt: int
    why: str
    log: str

    def sentence(self) -> str:
        saved = re.split("; some(?:one|body) else had changed ", self.why, maxsplit=1)[1:]
        return f"{self.task}: changes rolled back" + (f"; someone else had changed {saved[0]}" if saved else "")


@dataclass(frozen=True, slots=True)
class VerifyStarted(AttemptEvent):
    task: str
    attempt: int
    log: str


@dataclass(frozen=True, slots=True)
class VerifyFinished(AttemptEvent):
    shown: ClassVar = True

    task: str
    attempt: int
    passed: bool
    log: str
    duration_sec: float
    steps: tuple[VerifyStep, ...]
    tree: str = ""
    evidence: str = ""
    cached: bool = False
    proof: str = ""

    def sentence(self) -> str:
        return f"{self.task}: verification {'passed' if self.passed else 'failed'}"


@dataclass(frozen=True, slots=True)
class AttemptFailed(AttemptEvent):
    """Why an attempt did not count, and which counter pays for it; `reminder` goes into the next prompt.

    `remade`: the session continues in a new folder, with what was saved of its change."""

    shown: ClassVar = True

    task: str
    attempt: int
    failure_class: str
    signature: str
    detail: str
    counter: str
    reminder: str = ""
    files: tuple[str, ...] = ()
    resume: str = ""
    remade: bool = False

    def sentence(self) -> str:
        return f"{self.task}: {self.failure_class}: {self.detail}"


@dataclass(frozen=True, slots=True)
class AttemptInterrupted(AttemptEvent):
    """The attempt ended because Ganger or its keeper did; no counter pays.

    `harvest`: its agent had ended, so the next attempt reads that answer instead of asking again. `resume`: the
    agent's session, which the next attempt continues in the same workspace. `afresh`: why the session could not
    continue, in its program's words.
    """

    fits: ClassVar = {R: P}
    shown: ClassVar = True

    task: str
    attempt: int
    why: str
    harvest: bool = False
    lost: bool = False
    not_before: float = 0.0
    resume: str = ""
    afresh: str = ""

    def sentence(self) -> str:
        return f"{self.task}: interrupted: {self.why}"


@dataclass(frozen=True, slots=True)
class TaskSettled(TaskEvent):
    fits: ClassVar = {R: None, P: None, F: None, B: None, E: None}
    shown: ClassVar = True

    task: str
    status: TaskStatus
    detail: str
    block_reason: BlockReason | None = None
    final: bool = True
    not_before: float = 0.0

    def sentence(self) -> str:
        reason = f" ({self.block_reason.value})" if self.block_reason else ""
        return f"{self.task}: {self.status.value}{reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class TaskRequeued(TaskEvent):
    """Back to PENDING. `granted` are worker attempts added to what the task may use; `not_before` is a Unix time."""

    fits: ClassVar = {R: P, F: P, B: P, E: P, D: P}
    shown: ClassVar = True

    task: str
    why: str
    granted: int = 0
    not_before: float = 0.0
    hint: str = ""
    by_person: bool = False

    def sentence(self) -> str:
        return f"{self.task}: queued again: {self.why}"


@dataclass(frozen=True, slots=True)
class TaskHeld(TaskEvent):
    """A failed task of a cluster that runs again only after its canary has passed."""

    fits: ClassVar = {F: F}
    shown: ClassVar = True

    task: str
    canary: str

    def sentence(self) -> str:
        return f"{self.task}: held until {self.canary} has passed"


@dataclass(frozen=True, slots=True)
class RunFinished(RunEvent):
    """This lead has finished. `run_status` stays RUNNING when only a limit or a signal ended it."""

    run_status: RunStatus
    abort_reason: str | None
    counts: dict[str, int]
    why: str = ""

    def sentence(self) -> str:
        return f"run {self.run_status.value}: {self.why}"


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the run. `at` is ISO 8601 in UTC."""

    seq: int
    at: str
    event: Event


def type_name(event: Event) -> str:
    return TYPE_NAMES[type(event)]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Without what the class says of all its events."""
    return tuple(each.name for each in fields(kind))


def _fields(value: Any) -> dict[str, object]:
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_fields)


def encode(event: Event) -> str:
    return _ENCODER.encode(_fields(event))


def decode(name: str, text: str) -> Event:
    """The event a row holds; fields a newer version added are ignored, missing ones take their default."""
    kind: Any = EVENT_TYPES[name]
    return typing.cast(Event, builder(kind)(json.loads(text)))


def fields_of(event: Event) -> dict[str, object]:
    """An event's fields as plain JSON values."""
    data = json.loads(encode(event))
    assert isinstance(data, dict)
    return data
