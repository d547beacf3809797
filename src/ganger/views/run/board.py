"""A run in short: counts, a row per task, time to go."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import NEEDS_FIRST, TaskStatus
from ganger.views.run.costs import known_tokens, known_usd

GLYPHS = {
    TaskStatus.PENDING: "·",
    TaskStatus.RUNNING: "▶",
    TaskStatus.DONE: "✓",
    TaskStatus.BLOCKED: "■",
    TaskStatus.FAILED: "✗",
    TaskStatus.ESCALATED: "!",
}


@dataclass(frozen=True, slots=True)
class TaskRow:
    id: str
    status: TaskStatus
    block_reason: str | None
    attempts: int
    worker_attempts: int
    step: str
    detail: str
    failure_class: str | None
    failure_signature: str | None
    usd: float | None = 0.0
    tokens: int | None = 0
    model: str = ""
    session: str = ""
    doing: str = ""
    repo: str = ""
    milestone: str = ""
    substate: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "status": self.status.value,
            "block_reason": self.block_reason,
            "attempts": self.attempts,
            "worker_attempts": self.worker_attempts,
            "step": self.step or None,
            "detail": self.detail or None,
            "failure_class": self.failure_class,
            "failure_signature": self.failure_signature,
            "usd": self.usd,
            "tokens": self.tokens,
            "model": self.model or None,
            "session": self.session or None,
            "doing": self.doing or None,
            "repo": self.repo or None,
            "milestone": self.milestone or None,
            "substate": self.substate or None,
        }


def task_rows(state: RunState) -> list[TaskRow]:
    """Every task in plan order."""
    return [task_row(state, name) for name in state.index.by_rank]


def task_row(state: RunState, name: str) -> TaskRow:
    task = state.tasks[name]
    said = task.attempt.summary if task.status is TaskStatus.DONE else task.detail
    reason = task.block_reason.value if task.block_reason else None
    return TaskRow(
        name, task.status, reason, task.attempts, task.counters.worker_attempts, task.attempt.step, said,
        task.failure.failure_class, task.failure.signature, known_usd(task.spent), known_tokens(task.spent),
        task.agent.model, task.agent.session, task.agent.activity, state.specs[name].repo,
        task.delivery.milestone.value if task.delivery is not None else "",
        task.delivery.substate if task.delivery is not None else "",
    )  # fmt: skip


def open_questions(state: RunState) -> list[Question]:
    return [question for question in state.inbox.questions.values() if question.answer is None]


def counts(state: RunState) -> dict[str, int]:
    return {status.value: state.index.counts.get(status, 0) for status in TaskStatus}


def counts_line(state: RunState) -> str:
    shown = [f"{state.index.counts[s]} {s.value}" for s in NEEDS_FIRST if state.index.counts.get(s)]
    return ", ".join(shown) or "no tasks"


def shown_duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def rest_seconds(state: RunState, elapsed: float) -> float | None:
    """A rough estimate: the pace so far, applied to the tasks not settled yet."""
    settled = sum(
        state.index.counts[s] for s in (TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED)
    )
    left = state.index.counts[TaskStatus.PENDING] + state.index.counts[TaskStatus.RUNNING]
    return elapsed / settled * left if settled and left else None
