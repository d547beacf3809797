"""The state of a whole run, as a few small records that only `core.state.apply` changes. No behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field

from ganger.core.model.ledger import RepoRules, RepoVerdict, TargetVerdict
from ganger.core.model.records import (
    Budget,
    HealRound,
    HostTrouble,
    Intent,
    Limits,
    PatchRecord,
    Policy,
    Question,
    Rebase,
    Removal,
    Scope,
    Spending,
    TaskSpec,
    Window,
)
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import MergeMode, Mode, RunStatus, TaskStatus


@dataclass(slots=True)
class ManifestState:
    """What the run was made from. `contents` are the digests of each task's prompt and context, `retired` the attempts
    of tasks that are no longer in the manifest."""

    digest: str = ""
    contents: dict[str, str] = field(default_factory=dict)
    retired: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Indexes:
    """Computed from the tasks and kept for speed. A task's rank is its place in the order; `ready` are ranks."""

    rank: dict[str, int] = field(default_factory=dict)
    by_rank: list[str] = field(default_factory=list)
    dependents: dict[str, list[str]] = field(default_factory=dict)
    unmet: dict[str, int] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)
    counts: dict[TaskStatus, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    pulled: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    held: dict[str, list[str]] = field(default_factory=dict)
    busy_files: dict[str, str] = field(default_factory=dict)
    in_merge_queue: set[str] = field(default_factory=set)
    delivering: set[str] = field(default_factory=set)
    locks: dict[str, set[str]] = field(default_factory=dict)
    level_of: dict[str, int] = field(default_factory=dict)
    level_open: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Windows:
    """The window that is open and what is left of it, and the size of the next one."""

    current: Window | None = None
    open: set[str] = field(default_factory=set)
    ready: list[int] = field(default_factory=list)
    opened: int = 0
    batch_size: int = 1
    retry_now: tuple[str, ...] = ()
    retry_of: int = 0


@dataclass(slots=True)
class Money:
    budget: Budget = field(default_factory=Budget)
    spent: Spending = field(default_factory=Spending)
    cost_of_class: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class HealingState:
    """`abandoned`: why no more rounds take place."""

    healer: str = ""
    limits: Limits = field(default_factory=Limits)
    rounds: list[HealRound] = field(default_factory=list)
    patches: dict[str, PatchRecord] = field(default_factory=dict)
    abandoned: str = ""


@dataclass(slots=True)
class Quota:
    """The account of each agent, and what is known about each account's limits."""

    accounts: dict[str, str] = field(default_factory=dict)
    paused: dict[str, float] = field(default_factory=dict)
    limited: dict[str, int] = field(default_factory=dict)
    rested: dict[str, float] = field(default_factory=dict)
    shut: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Inbox:
    """`asked` counts all questions ever asked."""

    questions: dict[str, Question] = field(default_factory=dict)
    asked: int = 0


@dataclass(slots=True)
class LeadState:
    """The process that leads: since when, what it may start, and what it was told. `touched` are the tasks that it
    started, `active_sec` how long the leads before it were at work."""

    count: int = 0
    since: str = ""
    active_sec: float = 0.0
    boot_id: str = ""
    rebooted: bool = False
    scope: Scope = field(default_factory=Scope)
    pull_roles: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    commands_taken: int = 0
    paused: bool = False
    draining: bool = False
    stopping: bool = False


@dataclass(slots=True)
class Files:
    """Files of the project that attempts wrote. `artifacts` were dropped because checks make them again."""

    written: set[str] = field(default_factory=set)
    artifacts: set[str] = field(default_factory=set)
    in_place_roles: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Branches:
    """The run's branch of each repository: where it is, and where it is about to move."""

    heads: dict[str, str] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    rebases: dict[str, Rebase] = field(default_factory=dict)
    removals: dict[str, Removal] = field(default_factory=dict)
    landed: dict[str, str] = field(default_factory=dict)
    merges: int = 0


@dataclass(slots=True)
class CheckRuns:
    """`evidence` holds the log of each verdict that may be used again."""

    evidence: dict[str, str] = field(default_factory=dict)
    on_merges: int = 0


@dataclass(slots=True)
class Pushes:
    """What was pushed to each repository and what its CI said. `tips` is the last push, `proved` the last commit with
    a green verdict; `blamed` names the task that made a tip red, `halves` the verdicts on parts of it."""

    tips: dict[str, str] = field(default_factory=dict)
    theirs: dict[str, str] = field(default_factory=dict)
    proved: dict[str, str] = field(default_factory=dict)
    verdicts: list[RepoVerdict] = field(default_factory=list)
    blamed: dict[str, str] = field(default_factory=dict)
    halves: dict[str, str] = field(default_factory=dict)
    bases: dict[str, TargetVerdict] = field(default_factory=dict)


@dataclass(slots=True)
class Chains:
    """The rules of each repository, and which ones are stopped: until a person decides (`halted`), or until the task
    whose CI is red is green (`broken`)."""

    rules: dict[str, RepoRules] = field(default_factory=dict)
    halted: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class EventLog:
    """How far the state has come, and the events that did not fit."""

    last_seq: int = 0
    last_at: str = ""
    refused: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RunState:
    """The whole run in memory."""

    run_id: str = ""
    status: RunStatus = RunStatus.RUNNING
    abort_reason: str | None = None
    started_at: str = ""
    finished: bool = False
    finished_at: str = ""
    mode: Mode = Mode.DIRECT
    merging: MergeMode = MergeMode.QUEUE
    policy: Policy = field(default_factory=Policy)
    specs: dict[str, TaskSpec] = field(default_factory=dict)
    tasks: dict[str, TaskState] = field(default_factory=dict)
    hosts: dict[str, HostTrouble] = field(default_factory=dict)
    manifest: ManifestState = field(default_factory=ManifestState)
    index: Indexes = field(default_factory=Indexes)
    windows: Windows = field(default_factory=Windows)
    money: Money = field(default_factory=Money)
    healing: HealingState = field(default_factory=HealingState)
    quota: Quota = field(default_factory=Quota)
    inbox: Inbox = field(default_factory=Inbox)
    lead: LeadState = field(default_factory=LeadState)
    files: Files = field(default_factory=Files)
    branches: Branches = field(default_factory=Branches)
    checks: CheckRuns = field(default_factory=CheckRuns)
    pushes: Pushes = field(default_factory=Pushes)
    chains: Chains = field(default_factory=Chains)
    log: EventLog = field(default_factory=EventLog)
