"""What a run consists of: policy, task specifications, their state, windows. Values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field

from ganger.core.model.ledger import Delivery, RepoRules, RepoVerdict, TargetVerdict
from ganger.core.model.workers import Checkpoint, WorkerNow
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
    transient_retries: int = 3
    quota_wait_sec: float = 300.0
    merge_retries: int = 2
    no_change_retries: int = 1
    rework_rounds: int = 2
    stall_restarts: int = 2
    checkpoints: int = 10
    quota_spread_sec: float = 0.0
    exhausted: str = "fail"

    @property
    def batch_strategy(self) -> str:
        return "fibonacci" if self.heal_schedule is HealSchedule.AUTO else "fixed"


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a healer's runtime patch may go: lowest and highest."""

    timeout_sec: tuple[float, ...] = (60, 7200)
    concurrency: tuple[float, ...] = (1, 8)
    current_batch_size: tuple[float, ...] = (1, 21)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run and each of its tasks may use; None is no limit. `attempt_*` is reserved before each launch."""

    usd: float | None = None
    tokens: int | None = None
    attempts: int | None = None
    wall_sec: float | None = None
    task_usd: float | None = None
    task_tokens: int | None = None
    task_wall_sec: float | None = None
    attempt_usd: float = 0.0
    attempt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Tokens and money; None if unknown. Tokens read from or written to a cache are part of the input."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = None

    @property
    def counts(self) -> tuple[int | None, int | None, int, int]:
        return self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class Spending:
    """What was used, and what is reserved for running attempts. `priced`: attempts whose cost is known.
    `unpriced`: those with known tokens and an unknown price."""

    usd: float = 0.0
    tokens: int = 0
    reserved_usd: float = 0.0
    reserved_tokens: int = 0
    wall_sec: float = 0.0
    attempts: int = 0
    priced: int = 0
    unpriced: int = 0
    counted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PatchRecord:
    """An applied patch, as later prompts and people see it."""

    id: str
    round: int
    target: str
    operation: str
    tasks: tuple[str, ...]
    path: str = ""
    task_id: str = ""
    file: str = ""
    timeout_sec: float | None = None
    concurrency: int | None = None
    current_batch_size: int | None = None
    before: tuple[int, int] = (0, 0)
    undone: bool = False


@dataclass(frozen=True, slots=True)
class HealRound:
    """One healing checkpoint. `decision` is empty while the healer works."""

    number: int
    window: int
    lineage: int
    tasks: tuple[str, ...]
    failed: tuple[str, ...]
    signatures: tuple[str, ...]
    log: str
    token: str
    at: str
    agent: str = ""
    tries: int = 0
    refusals: int = 0
    refusal: str = ""
    decision: str = ""
    failure_class: str = ""
    root_cause: str = ""
    learned_rule: str = ""
    problem: str = ""
    patches: tuple[str, ...] = ()
    isolate: bool = False
    reserved_usd: float = 0.0
    reserved_tokens: int = 0
    exit_code: int | None = None
    duration_sec: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A decision for a person; open until answered. `default` counts once `deadline` (Unix time) has passed.
    `by_worker`: asked by a worker, not by Ganger."""

    id: str
    task: str
    kind: str
    text: str
    at: str
    answer: str | None = None
    attempt: int = 0
    context: str = ""
    options: tuple[str, ...] = ()
    default: str = ""
    deadline: float = 0.0
    raised: int = 0
    raised_at: str = ""
    account: str = ""
    host: str = ""
    by_worker: bool = False


@dataclass(frozen=True, slots=True)
class HostTrouble:
    """A host that does not answer (`away`) or refuses the token (`denied`). `ways` are the ways that failed (`git`,
    `api`), `waiting` the tasks that can continue only when it is back. `patient_since`: a person is asked some time
    after that."""

    kind: str
    why: str
    since: str
    ways: tuple[str, ...]
    tries: int
    next_at: float
    patient_since: str
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What the manifest says about one task, as far as scheduling and retries need it."""

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
    creates: tuple[str, ...] | None = None
    modifies: tuple[str, ...] | None = None
    expected: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    may_change_gates: bool = False
    strong: tuple[str, ...] = ()
    repo: str = ""
    review: str = ""
    may_break: bool = False
    component: str = ""
    expects_ci: bool | None = None


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
    patches: tuple[str, ...] = ()


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
class Ended:
    """How an attempt's process ended, as far as its verdict needs it."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    over_output: bool = False
    error: str = ""
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """An attempt's change as a commit on its base."""

    base: str
    commit: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """The branch is about to move."""

    head: str
    tip: str
    tasks: tuple[str, ...]
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rebase:
    """The branch is about to move, or moved last, from `head` to `tip`, which does not build on it. `commits` are pairs
    of what each was and is. `sets_back`: to what the remote's branch is at; then `gone` are the commits it does not
    hold, and `left` the tasks that are left out."""

    head: str
    tip: str
    commits: tuple[tuple[str, str], ...]
    sets_back: bool = False
    gone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Removal:
    """Commits of `tasks` were taken out of the remote's branch, which was at `tip` then. `leaves_out`: a person has
    decided that they stay out, and the run's branch is to be set back."""

    tip: str
    tasks: tuple[str, ...]
    leaves_out: bool = False


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of one task. Each counter is its own field; no counter stands in for another."""

    status: TaskStatus = TaskStatus.PENDING
    block_reason: BlockReason | None = None
    detail: str = ""
    attempts: int = 0
    worker_attempts: int = 0
    format_retries: int = 0
    respawns: int = 0
    transient_retries: int = 0
    merge_retries: int = 0
    no_change_retries: int = 0
    denials: int = 0
    stalls: int = 0
    ci_fixes: int = 0
    reworks: int = 0
    checkpoints: int = 0
    granted: int = 0
    granted_by_person: int = 0
    repeats: int = 0
    healed: bool = False
    heal_signature: str = ""
    healer_attempts: int = 0
    patches: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    held_by: str = ""
    not_before: float = 0.0
    timeout_sec: float | None = None
    account: str = ""
    spent: Spending = Spending()
    token: str = ""
    started_at: str = ""
    step: str = ""
    summary: str = ""
    last_failure_class: str | None = None
    last_failure_signature: str | None = None
    reminder: str = ""
    verified_attempt: int | None = None
    verify_steps: tuple[VerifyStep, ...] = ()
    proof: str = ""
    backup: str = ""
    launched: tuple[int, int] | None = None
    ended: Ended | None = None
    log: str = ""
    harvest: str = ""
    session: str = ""
    totals: Totals | None = None
    model: str = ""
    resume: str = ""
    worked_by: str = ""
    walls: str = ""
    continued: str = ""
    afresh: str = ""
    doing: str = ""
    worker: WorkerNow | None = None
    checkpoint: Checkpoint | None = None
    workspace_of: int = 0
    change: ChangeRecord | None = None
    parked: bool = False
    merged: str = ""
    saved: str = ""
    saved_files: tuple[str, ...] = ()
    saved_refused: bool = False
    remade: bool = False
    missing: tuple[str, ...] = ()
    contended: tuple[str, ...] = ()
    delivery: Delivery | None = None
    locked: bool = False
    uncharged: bool = False
    losses: int = 0
    attempt_usd: float = 0.0
    final: bool = False
    pending_history: HistoryItem | None = None
    history: tuple[HistoryItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The tasks being attempted before the next checkpoint."""

    index: int
    size: int
    tasks: tuple[str, ...]
    retry_of: int = 0

    @property
    def lineage(self) -> int:
        """The window that this one started from: retries share its heal rounds."""
        return self.retry_of or self.index


@dataclass(frozen=True, slots=True)
class Scope:
    """What this lead may start: the operator's `--only` and `--max-tasks`."""

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
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    healer: str = ""
    spent: Spending = field(default_factory=Spending)
    cost_of_class: dict[str, float] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    heal_rounds: list[HealRound] = field(default_factory=list)
    heal_abandoned: str = ""
    retry_now: tuple[str, ...] = ()
    retry_of: int = 0
    held: dict[str, list[str]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    retired: dict[str, int] = field(default_factory=dict)
    accounts: dict[str, str] = field(default_factory=dict)
    active_sec: float = 0.0
    lead_since: str = ""
    last_at: str = ""
    patches: dict[str, PatchRecord] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    asked: int = 0
    accounts_paused: dict[str, float] = field(default_factory=dict)
    accounts_limited: dict[str, int] = field(default_factory=dict)
    accounts_rested: dict[str, float] = field(default_factory=dict)
    accounts_shut: dict[str, float] = field(default_factory=dict)
    hosts: dict[str, HostTrouble] = field(default_factory=dict)
    commands_taken: int = 0
    paused: bool = False
    draining: bool = False
    leads: int = 0
    scope: Scope = field(default_factory=Scope)
    touched: set[str] = field(default_factory=set)
    stopping: bool = False
    finished: bool = False
    started_at: str = ""
    finished_at: str = ""
    last_seq: int = 0
    refused: list[str] = field(default_factory=list)
    mode: str = "direct"
    merging: str = "queue"
    heads: dict[str, str] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    rebases: dict[str, Rebase] = field(default_factory=dict)
    removals: dict[str, Removal] = field(default_factory=dict)
    parked: set[str] = field(default_factory=set)
    level_of: dict[str, int] = field(default_factory=dict)
    level_open: dict[int, int] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    artifacts: set[str] = field(default_factory=set)
    in_place_roles: set[str] = field(default_factory=set)
    gate_runs: int = 0
    landed: dict[str, str] = field(default_factory=dict)
    boot_id: str = ""
    rebooted: bool = False
    pulled: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    pull_roles: set[str] = field(default_factory=set)
    repos: dict[str, RepoRules] = field(default_factory=dict)
    locks: dict[str, set[str]] = field(default_factory=dict)
    halted: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    delivering: set[str] = field(default_factory=set)
    verdicts: list[RepoVerdict] = field(default_factory=list)
    proved: dict[str, str] = field(default_factory=dict)
    tips: dict[str, str] = field(default_factory=dict)
    theirs: dict[str, str] = field(default_factory=dict)
    blamed: dict[str, str] = field(default_factory=dict)
    halves: dict[str, str] = field(default_factory=dict)
    bases: dict[str, TargetVerdict] = field(default_factory=dict)
    merge_count: int = 0
