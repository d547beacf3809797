"""What a run consists of: policy, task specifications, their state, windows. Values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.counters import CounterLimits
from ganger.core.vocabulary import HealSchedule, Phase


@dataclass(frozen=True, slots=True)
class Policy(CounterLimits):
    """How a run behaves; the eight fields of state 2.0 and the limits of Ganger's own counters."""

    heal_schedule: HealSchedule = HealSchedule.AUTO
    batch_size: int = 5
    failure_threshold: float = 0.2
    max_worker_attempts_per_task: int = 2
    max_heal_rounds_per_window: int = 2
    max_total_heal_rounds: int = 8
    signature_repeat_limit: int = 2
    concurrency: int = 1
    quota_wait_sec: float = 300.0
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
