"""The state of one task, as a few small records. Values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.counters import Counters
from ganger.core.model.ledger import Delivery
from ganger.core.model.records import ChangeRecord, Ended, HistoryItem, Spending, Totals, VerifyStep
from ganger.core.model.workers import Checkpoint, WorkerNow
from ganger.core.vocabulary import AttemptStep, BlockReason, TaskStatus

_NO_COUNTERS = Counters()
_NOTHING_SPENT = Spending()


@dataclass(frozen=True, slots=True)
class CurrentAttempt:
    """The attempt that is under way, or the last one. `free`: no counter was charged for it, because a delivery
    continued. `open_line`: its line of the history, held back until its end is known."""

    token: str = ""
    step: AttemptStep = AttemptStep.NONE
    started_at: str = ""
    account: str = ""
    log: str = ""
    launched: tuple[int, int] | None = None
    ended: Ended | None = None
    summary: str = ""
    backup: str = ""
    usd: float = 0.0
    free: bool = False
    open_line: HistoryItem | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """What the checks said last. `passed_attempt` is the attempt that passed them."""

    passed_attempt: int | None = None
    steps: tuple[VerifyStep, ...] = ()
    proof: str = ""


@dataclass(frozen=True, slots=True)
class AgentUse:
    """The agent of the last attempt. `used` is its name and kind, `continued` the session that it continued,
    `activity` what it does now, in its own words."""

    used: str = ""
    sandbox: str = ""
    session: str = ""
    continued: str = ""
    model: str = ""
    totals: Totals | None = None
    activity: str = ""


@dataclass(frozen=True, slots=True)
class NextStart:
    """What the next attempt begins with. `answer_log`: the log of a kept answer, so that no agent has to be started.
    `lost_session`: why an earlier session could not be continued."""

    answer_log: str = ""
    resume_session: str = ""
    lost_session: str = ""
    reminder: str = ""
    hints: tuple[str, ...] = ()
    timeout_sec: float | None = None


@dataclass(frozen=True, slots=True)
class TaskHealing:
    """`pending`: healed since its last attempt, which had failed with `signature`."""

    pending: bool = False
    signature: str = ""
    patches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LastFailure:
    failure_class: str | None = None
    signature: str | None = None
    missing_files: tuple[str, ...] = ()
    conflicted_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """What the attempts have changed. `workspace_of` is the attempt whose folder it is in, `remade` whether that folder
    had to be made again. `merged` is the commit that it was merged as. `saved` is where the work of a failed attempt
    is kept."""

    workspace_of: int = 0
    remade: bool = False
    change: ChangeRecord | None = None
    in_merge_queue: bool = False
    merged: str = ""
    saved: str = ""
    saved_files: tuple[str, ...] = ()
    saved_refused: bool = False


@dataclass(frozen=True, slots=True)
class TaskState:
    """`attempts` counts all, whichever counter they were charged to. `final`: nothing more happens by itself.
    `waits_for_canary`: the task that shows first whether healing helped. `locked`: it holds its repository."""

    status: TaskStatus = TaskStatus.PENDING
    block_reason: BlockReason | None = None
    detail: str = ""
    final: bool = False
    attempts: int = 0
    not_before: float = 0.0
    waits_for_canary: str = ""
    locked: bool = False
    counters: Counters = _NO_COUNTERS
    attempt: CurrentAttempt = CurrentAttempt()
    verification: Verification = Verification()
    agent: AgentUse = AgentUse()
    next_start: NextStart = NextStart()
    healing: TaskHealing = TaskHealing()
    failure: LastFailure = LastFailure()
    work: Work = Work()
    worker: WorkerNow | None = None
    checkpoint: Checkpoint | None = None
    delivery: Delivery | None = None
    spent: Spending = _NOTHING_SPENT
    history: tuple[HistoryItem, ...] = ()
