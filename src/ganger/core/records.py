"""What a run consists of: policy, task specifications, their state, windows. Values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field

from ganger.core.vocabulary import BlockReason, HealSchedule, Phase, RunStatus, TaskStatus


@dataclass(frozen=True, slots=True)
class Policy:
    """How a run behaves; the eight fields of state 2.0 and Ganger's own counters."""

    heal_schedule: HealSchedule = HealSchedule.AUTO
    batch_size: int = 5
    failure_threshold: float = 0.2
    max_worker_attempts_per_task: int = 2
    max_heal_rounds_per_window: int = 2
    max_total_heal_rounds: int = 8
    signature_repeat_limit: int = 2
    concurrency: int = 1
    format_retries: int = 1
    respawns: int = 1

    @property
    def batch_strategy(self) -> str:
        return "fibonacci" if self.heal_schedule is HealSchedule.AUTO else "fixed"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What the manifest says of one task, as far as scheduling and retrying need it."""

    id: str
    depends_on: tuple[str, ...] = ()
    priority: float | None = None
    timeout_sec: float = 3600
    verify_profile: str = ""
    prompt_ref: str = ""
    context_refs: tuple[str, ...] = ()
    role: str = "worker"
    max_attempts: int | None = None
    widened_attempts: int | None = None
    retry_on: tuple[str, ...] | None = None
    writes: tuple[str, ...] = ()
    allow_shrinkage: bool = False


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One line of a task's history in state 2.0."""

    phase: Phase
    attempt: int
    log_path: str
    at: str
    verify_log_path: str | None = None
    exit_code: int | None = None
    failure_class: str | None = None
    failure_signature: str | None = None
    duration_sec: float | None = None


@dataclass(frozen=True, slots=True)
class VerifyStep:
    """How one verification command ended."""

    name: str
    tier: str
    outcome: str
    exit_code: int | None = None
    duration_sec: float = 0.0
    first_error: str = ""


@dataclass(frozen=True, slots=True)
class TaskState:
    """Where one task stands. Each counter is its own field; none borrows from another."""

    status: TaskStatus = TaskStatus.PENDING
    block_reason: BlockReason | None = None
    detail: str = ""
    attempts: int = 0
    worker_attempts: int = 0
    format_retries: int = 0
    respawns: int = 0
    token: str = ""
    started_at: str = ""
    step: str = ""
    summary: str = ""
    last_failure_class: str | None = None
    last_failure_signature: str | None = None
    reminder: str = ""
    verified_attempt: int | None = None
    verify_steps: tuple[VerifyStep, ...] = ()
    backup: str = ""
    launched: tuple[int, int] | None = None
    final: bool = False
    pending_history: HistoryItem | None = None
    history: tuple[HistoryItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The tasks being attempted before the next checkpoint."""

    index: int
    size: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What this lead may touch: a person's `--only` and `--max-tasks`."""

    only: frozenset[str] | None = None
    max_tasks: int | None = None

    @property
    def limited(self) -> bool:
        return self.only is not None or self.max_tasks is not None


@dataclass(slots=True)
class RunState:
    """The whole run in memory, changed only by `transitions.apply`."""

    run_id: str = ""
    manifest_digest: str = ""
    status: RunStatus = RunStatus.RUNNING
    abort_reason: str | None = None
    policy: Policy = field(default_factory=Policy)
    specs: dict[str, TaskSpec] = field(default_factory=dict)
    tasks: dict[str, TaskState] = field(default_factory=dict)
    rank: dict[str, int] = field(default_factory=dict)
    by_rank: list[str] = field(default_factory=list)
    dependents: dict[str, list[str]] = field(default_factory=dict)
    unmet: dict[str, int] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)
    counts: dict[TaskStatus, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    busy_files: dict[str, str] = field(default_factory=dict)
    window: Window | None = None
    window_open: set[str] = field(default_factory=set)
    window_ready: list[int] = field(default_factory=list)
    windows_opened: int = 0
    current_batch_size: int = 1
    scope: Scope = field(default_factory=Scope)
    touched: set[str] = field(default_factory=set)
    stopping: bool = False
    finished: bool = False
    started_at: str = ""
    finished_at: str = ""
    last_seq: int = 0
    refused: list[str] = field(default_factory=list)
