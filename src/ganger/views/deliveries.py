"""Changes on their way: milestone, substate, jobs, mend n of how many, time left; and who holds which repository."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ganger.core.model.ci import chosen
from ganger.core.model.ledger import Delivery, Milestone, RepoRules
from ganger.core.model.records import RunState, TaskState
from ganger.core.money.budgets import time_limit
from ganger.core.planning.repos import Holding, registry, shown
from ganger.core.state.apply_delivery import rules_of
from ganger.core.times import seconds_between
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.views.board import shown_duration

_AT_WORK = "agent"


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One task on its way. `left_sec` is what its milestone has left; below zero it is over time, None where no clock
    runs. `fix` counts mends of what CI or a reviewer found."""

    task: str
    repo: str
    status: str
    milestone: str
    substate: str
    passed: int
    total: int
    current: str
    fix: int
    fixes: int
    left_sec: float | None
    commit: str
    why: str
    run_url: str
    request: str
    request_url: str
    review: str

    def as_json(self) -> dict[str, object]:
        """Empty words are null."""
        return {key: None if value == "" else value for key, value in asdict(self).items()}

    def line(self) -> str:
        """One line that can be read without colour."""
        where = f" in {self.repo}" if self.repo else ""
        link = self.request_url or self.run_url
        return f"{self.task}{where}  {', '.join(self.parts)}{f'  {link}' if link else ''}"

    @property
    def parts(self) -> list[str]:
        found = [f"{self.milestone} {self.substate}".strip()]
        if self.total:
            found.append(f"{self.passed} of {self.total} jobs")
        if self.current:
            found.append(f"at {self.current}")
        if self.milestone == Milestone.FIXING_CI:
            found.append(f"fix {max(1, self.fix)} of {self.fixes}")
        if self.left_sec is not None:
            span = shown_duration(abs(self.left_sec))
            found.append(f"{span} left" if self.left_sec >= 0 else f"over time by {span}")
        return found


def delivery_rows(state: RunState, now: str) -> list[DeliveryRow]:
    """Every task that is being delivered or will be, as far as it is not DONE, in plan order. `now` is as in events."""
    rows = (delivery_row(state, name, now) for name in state.by_rank)
    return [row for row in rows if row is not None and row.status != TaskStatus.DONE]


def delivery_row(state: RunState, name: str, now: str) -> DeliveryRow | None:
    """None for a task whose repository delivers nothing, or that nobody has begun."""
    task, rules = state.tasks[name], rules_of(state, name)
    known = task.delivery
    if known is None and not (rules.delivers and task.status is TaskStatus.RUNNING):
        return None
    known = known or Delivery(since=task.started_at)
    runs = chosen(known.commit, known.runs, rules.events)
    urls = [run.url for run in runs if run.url]
    return DeliveryRow(
        task=name,
        repo=state.specs[name].repo,
        status=task.status.value,
        milestone=known.milestone.value,
        substate=_substate(task, known),
        passed=known.passed,
        total=known.total,
        current=known.current,
        fix=task.ci_fixes,
        fixes=rules.fixes,
        left_sec=_left_sec(state, name, known, rules, now),
        commit=known.commit,
        why=known.why,
        run_url=urls[-1] if urls else "",
        request=known.request.number if known.request is not None else "",
        request_url=known.request.url if known.request is not None else "",
        review=known.review,
    )


# What an attempt does, in D40's words for a worker's part of the way.
_STEPS = {"parse": "preparing_commit", "change": "verifying", "verify": "verifying", "verified": "preparing_commit"}
_FIX_STEPS = {"parse": "preparing_fix", "change": "verifying", "verify": "verifying", "verified": "preparing_fix"}


def _substate(task: TaskState, known: Delivery) -> str:
    """Ganger's own word where it has one, else what the worker says it does."""
    if task.status is TaskStatus.BLOCKED and task.block_reason is BlockReason.EXTERNAL:
        # What it was at before says nothing of what it waits for.
        return "blocked_external"
    if task.status is not TaskStatus.RUNNING or known.milestone is Milestone.PUSHED_TO_CI or known.pending:
        return known.substate
    steps = _FIX_STEPS if known.fixing else _STEPS
    if task.step in steps or task.step == "merge":
        return steps.get(task.step, "merging")
    said = task.worker.step if task.worker is not None else ""
    return said or ("implementing_fix" if known.fixing else "writing")


def _left_sec(state: RunState, name: str, known: Delivery, rules: RepoRules, now: str) -> float | None:
    """D14: CI's time counts from the push, a worker's from the start of its attempt. Who waits for a person has all
    the time there is."""
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING or known.substate == "awaiting_review":
        return None
    if known.milestone is Milestone.PUSHED_TO_CI:
        spent = seconds_between(known.pushed_at, now)
        return (rules.ci_sec if spent <= rules.ci_sec else rules.ci_most_sec) - spent
    if task.step != _AT_WORK:
        return None
    return time_limit(state, name, now) - seconds_between(task.started_at, now)


# --- repositories ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepoRow:
    """One repository (D11). `proved` is its newest commit that CI found green."""

    repo: str
    holders: tuple[Holding, ...]
    halted: str
    broken_by: str
    head: str
    proved: str

    def as_json(self) -> dict[str, object]:
        values = asdict(self) | {"repo": self.repo or ".", "holders": [_holder(one) for one in self.holders]}
        return {key: None if value == "" else value for key, value in values.items()}

    def line(self) -> str:
        parts = [f"{one.task} ({' '.join(filter(None, [one.doing, one.substate]))})" for one in self.holders]
        told = [f"held by {', '.join(parts)}"] if parts else []
        if self.halted:
            told.append(f"HALTED: {self.halted}; ganger unlock {self.repo or '.'} --why TEXT")
        if self.broken_by:
            told.append(f"turned red by {self.broken_by}; what builds on it waits")
        return f"{shown(self.repo)}: {'; '.join(told) or 'free'}"


def _holder(one: Holding) -> dict[str, object]:
    return {"task": one.task, "milestone": one.doing, "substate": one.substate or None, "active": one.active}


def repo_rows(state: RunState) -> list[RepoRow]:
    """Every repository of a run that has locks, halts or several of them; none where that says nothing."""
    held: dict[str, list[Holding]] = {}
    for one in registry(state):
        held.setdefault(one.repo, []).append(one)
    named = [name for name in state.repos if name or name in held or name in state.halted]
    return [
        RepoRow(
            name,
            tuple(held.get(name, ())),
            state.halted.get(name, ""),
            state.broken.get(name, ""),
            state.heads.get(name, ""),
            state.proved.get(name, ""),
        )
        for name in named
    ]
