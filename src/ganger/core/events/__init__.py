"""Everything that can happen to a run, as values; and their form in the store.

An event records a decision or a result. It never holds a secret, a file's content or an agent's raw output.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
class RunStarted:
    run_id: str
    manifest_digest: str
    policy: Policy
    tasks: tuple[TaskSpec, ...]
    version: str = ""
    contents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeadStarted(RunSettings):
    """A process took the lead: the first time, and each time the run is continued."""

    pid: int
    fence: int = 0
    boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A person applied a changed manifest: what the run consists of from here on."""

    manifest_digest: str
    tasks: tuple[TaskSpec, ...]
    contents: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContentsSeen:
    """Prompts of tasks that were never attempted have changed since; nothing depends on the old text."""

    contents: dict[str, str]


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """`retry_of` is the window whose failures were healed; heal rounds are counted together with it."""

    index: int
    size: int
    tasks: tuple[str, ...]
    retry_of: int = 0


@dataclass(frozen=True, slots=True)
class WindowClosed:
    index: int
    done: int
    failed: int
    blocked: int
    failure_rate: float
    next_size: int


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The claim: recorded before anything is launched. `token` fences every later report. `session` is the
    agent session that continues, only with an agent of the same name and `kind` within the same `walls`. `worker` is
    the name of a session that requested the task, with the request `claim`. `delivers`: a delivery continues without a
    worker."""

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


@dataclass(frozen=True, slots=True)
class AttemptLaunched:
    task: str
    attempt: int
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class AttemptExited:
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
class ResultAccepted:
    task: str
    attempt: int
    status: str
    summary: str
    repaired: bool = False
    writes: int = 0


@dataclass(frozen=True, slots=True)
class ResultRefused:
    task: str
    attempt: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class WritesIntended:
    """Recorded after the backup is whole and before the first file changes."""

    task: str
    attempt: int
    backup: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WritesApplied:
    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WritesRolledBack:
    task: str
    attempt: int
    why: str
    log: str


@dataclass(frozen=True, slots=True)
class VerifyStarted:
    task: str
    attempt: int
    log: str


@dataclass(frozen=True, slots=True)
class VerifyFinished:
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


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """Why an attempt did not count, and which counter pays for it; `reminder` goes into the next prompt.

    `remade`: the session continues in a new folder, with what was saved of its change."""

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


@dataclass(frozen=True, slots=True)
class AttemptInterrupted:
    """The attempt ended because Ganger or its keeper did; no counter pays.

    `harvest`: its agent had ended, so the next attempt reads that answer instead of asking again. `resume`: the
    agent's session, which the next attempt continues in the same workspace. `afresh`: why the session could not
    continue, in its program's words.
    """

    task: str
    attempt: int
    why: str
    harvest: bool = False
    lost: bool = False
    not_before: float = 0.0
    resume: str = ""
    afresh: str = ""


@dataclass(frozen=True, slots=True)
class TaskSettled:
    task: str
    status: TaskStatus
    detail: str
    block_reason: BlockReason | None = None
    final: bool = True
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskRequeued:
    """Back to PENDING. `granted` are worker attempts added to what the task may use; `not_before` is a Unix time."""

    task: str
    why: str
    granted: int = 0
    not_before: float = 0.0
    hint: str = ""
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class TaskHeld:
    """A failed task of a cluster that runs again only after its canary has passed."""

    task: str
    canary: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """This lead has finished. `run_status` stays RUNNING when only a limit or a signal ended it."""

    run_status: RunStatus
    abort_reason: str | None
    counts: dict[str, int]
    why: str = ""


Event = (
    RunStarted
    | LeadStarted
    | Reconciled
    | ContentsSeen
    | WindowOpened
    | WindowClosed
    | AttemptStarted
    | AttemptLaunched
    | AgentHeard
    | AttemptExited
    | CostSettled
    | ResultAccepted
    | ResultRefused
    | WritesIntended
    | WritesApplied
    | WritesRolledBack
    | VerifyStarted
    | VerifyFinished
    | VerifyRecovered
    | EditsSeen
    | UnclaimedEdits
    | FixedRestored
    | RefsMoved
    | GatesRestored
    | ExpectedMissing
    | WorkspaceReady
    | ChangeTaken
    | WorkSaved
    | MergeQueued
    | GatesChecked
    | HeadIntended
    | HeadKept
    | Merged
    | Landed
    | PushIntended
    | Pushed
    | PushRefused
    | PushLost
    | RebaseIntended
    | CommitsRemoved
    | RemovalDecided
    | SetBackIntended
    | HeadMoved
    | HalfJudged
    | CulpritFound
    | TargetJudged
    | CiSeen
    | CiJudged
    | CiWaived
    | MirrorProved
    | RetriggerIntended
    | Retriggered
    | RequestIntended
    | RequestOpened
    | RequestChanged
    | Remarked
    | RequestMerge
    | ReviewAsked
    | Reviewed
    | MilestoneReached
    | ChainHalted
    | ChainPaused
    | ChainCleared
    | RepoUnlocked
    | HostAway
    | HostAwaited
    | HostTried
    | HostBack
    | RevertChosen
    | RevertFailed
    | Reverted
    | WorkerBeat
    | WorkerMilestone
    | CheckpointTaken
    | WorkerReported
    | WorkerDone
    | WorkerSuspected
    | WorkerCleared
    | LimitWarned
    | LimitExtended
    | WorkerEnding
    | MessageLeft
    | AttemptFailed
    | AttemptInterrupted
    | AttemptCheckpointed
    | TaskSettled
    | TaskRequeued
    | TaskHeld
    | HealStarted
    | HealRefused
    | PatchApplied
    | PatchRefused
    | PatchUndone
    | HealFinished
    | HealAbandoned
    | QuestionAsked
    | QuestionAnswered
    | QuestionRaised
    | AccountPaused
    | AccountLimited
    | AccountShut
    | AccountTried
    | AccountWorks
    | CommandTaken
    | RunPaused
    | RunResumed
    | SettingsChanged
    | DrainRequested
    | StopRequested
    | RunFinished
)

AttemptEvent = (
    AttemptLaunched
    | AgentHeard
    | AttemptExited
    | ResultAccepted
    | ResultRefused
    | WritesIntended
    | WritesApplied
    | WritesRolledBack
    | VerifyStarted
    | VerifyFinished
    | VerifyRecovered
    | EditsSeen
    | GatesRestored
    | ExpectedMissing
    | WorkspaceReady
    | ChangeTaken
    | WorkSaved
    | MergeQueued
    | Merged
    | PushIntended
    | Pushed
    | PushRefused
    | PushLost
    | CiSeen
    | CiJudged
    | CiWaived
    | MirrorProved
    | RetriggerIntended
    | Retriggered
    | RequestIntended
    | RequestOpened
    | RequestChanged
    | Remarked
    | RequestMerge
    | ReviewAsked
    | MilestoneReached
    | RevertFailed
    | Reverted
    | WorkerBeat
    | WorkerMilestone
    | CheckpointTaken
    | WorkerReported
    | WorkerDone
    | WorkerSuspected
    | WorkerCleared
    | LimitWarned
    | LimitExtended
    | WorkerEnding
    | AttemptFailed
    | AttemptInterrupted
    | AttemptCheckpointed
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the run. `at` is ISO 8601 in UTC."""

    seq: int
    at: str
    event: Event


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


EVENT_TYPES: Mapping[str, type[Event]] = {_snake(cls.__name__): cls for cls in typing.get_args(Event)}
_TYPE_NAMES: Mapping[type[Event], str] = {cls: name for name, cls in EVENT_TYPES.items()}


def type_name(event: Event) -> str:
    return _TYPE_NAMES[type(event)]


def _fields(value: Any) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


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
