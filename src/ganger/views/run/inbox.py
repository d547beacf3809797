"""The questions of a run, open ones first, each with the tasks that wait for it and what to type."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ganger.core.control.removals import REMOVED
from ganger.core.control.reviews import REVIEW
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import budget_named
from ganger.core.planning.repos import PROJECT
from ganger.core.scheduling.quota import account_of
from ganger.core.scheduling.resume import parked
from ganger.core.state.hosts import waiting
from ganger.core.times import stamp
from ganger.core.vocabulary import TaskStatus

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class InboxRow:
    """`behind` are the tasks that cannot run before this one is DONE. `deadline` is when `default` counts."""

    id: str
    task: str
    kind: str
    since: str
    text: str
    answer: str | None
    commands: tuple[str, ...]
    attempt: int = 0
    context: str = ""
    options: tuple[str, ...] = ()
    default: str = ""
    deadline: str = ""
    raised: int = 0
    behind: tuple[str, ...] = ()
    worker: str = ""
    account: str = ""
    host: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "task": self.task or None,
            "account": self.account or None,
            "host": self.host or None,
            "kind": self.kind,
            "category": self.kind,
            "since": self.since,
            "text": self.text,
            "context": self.context or None,
            "options": list(self.options),
            "default": self.default or None,
            "deadline": self.deadline or None,
            "raised": self.raised,
            "attempt": self.attempt or None,
            "waiting_worker": self.worker or None,
            "blocks": list(self.behind),
            "open": self.answer is None,
            "answer": self.answer,
            "commands": list(self.commands),
        }

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts to know before answering, one line each."""
        lines = [f"{number}) {option}" for number, option in enumerate(self.options, 1)]
        if self.default and self.deadline and self.answer is None:
            lines.append(f"answers itself with {self.default!r} at {self.deadline[:19]}Z")
        if self.worker and self.answer is None:
            lines.append(f"its worker {self.worker} is still running and will receive the answer")
        if self.behind:
            named = ", ".join(self.behind[:_MOST_NAMED])
            more = f" and {len(self.behind) - _MOST_NAMED} more" if len(self.behind) > _MOST_NAMED else ""
            tasks = "1 task waits" if len(self.behind) == 1 else f"{len(self.behind)} tasks wait"
            lines.append(f"{tasks} for it: {named}{more}")
        if self.raised:
            lines.append("raised again since" if self.raised == 1 else f"raised {self.raised} more times since")
        return tuple(lines)


def inbox(state: RunState, *, answered: bool = False) -> list[InboxRow]:
    """Oldest first within open and answered."""
    asked = sorted(state.inbox.questions.values(), key=lambda question: question.answer is not None)
    return [inbox_row(state, question) for question in asked if answered or question.answer is None]


def inbox_row(state: RunState, question: Question) -> InboxRow:
    is_open = question.answer is None
    task = state.tasks.get(question.task)
    at_work = task is not None and task.status is TaskStatus.RUNNING and task.attempts == question.attempt
    return InboxRow(
        question.id,
        question.task,
        question.kind,
        question.at,
        question.text,
        question.answer,
        _commands(state, question) if is_open else (),
        question.attempt,
        question.context,
        question.options,
        question.default,
        stamp(question.deadline) if question.deadline else "",
        question.raised,
        _behind(state, question) if is_open else (),
        task.worker.name if at_work and task is not None and task.worker is not None else "",
        question.account,
        question.host,
    )


def _behind(state: RunState, question: Question) -> tuple[str, ...]:
    """The tasks that wait for a question, in plan order, without those that are DONE. For an account: all tasks that
    use it; for a host: those that can only continue when it is back."""
    if question.host:
        return tuple(waiting(state, question.host))
    if question.account:
        return tuple(name for name in state.index.by_rank if _waits_for_account(state, name, question.account))
    found: set[str] = set()
    if question.kind == REMOVED:
        found.update(name for name in parked(state, state.specs[question.task].repo) if name != question.task)
    queue = [question.task, *sorted(found)]
    for current in queue:
        for dependent in state.index.dependents.get(current, ()):
            if dependent not in found and state.tasks[dependent].status is not TaskStatus.DONE:
                found.add(dependent)
                queue.append(dependent)
    return tuple(sorted(found, key=state.index.rank.__getitem__))


def _waits_for_account(state: RunState, name: str, account: str) -> bool:
    task = state.tasks[name]
    waits = task.status is TaskStatus.PENDING or (task.status is TaskStatus.BLOCKED and not task.final)
    return waits and account_of(state, name) == account


def _commands(state: RunState, question: Question) -> tuple[str, ...]:
    """Commands ready to paste; they name the run, because another run may be the newest by then."""
    run = f" --run {shlex.quote(state.run_id)}"
    said = "NUMBER_OR_TEXT" if question.options else "TEXT"
    answer = f"ganger answer {shlex.quote(question.id)} {said}{run}"
    if question.task:
        task = shlex.quote(question.task)
        if question.kind == REVIEW:
            return f"ganger approve {task}{run}", f"ganger rework {task} TEXT{run}", f"ganger ledger {task}{run}"
        rest = (answer, f"ganger logs {task}{run}", f"ganger skip {task}{run}")
        repo = state.specs[question.task].repo if question.task in state.specs else ""
        if question.kind == "fatal" and repo in state.chains.halted:
            return (f"ganger unlock {shlex.quote(repo or PROJECT)} --why TEXT{run}", *rest)
        return rest
    if question.kind == "budget":
        return f"ganger run --set {budget_named(question.text)}=AMOUNT", answer
    return (answer,)
