"""Reverting a change that keeps a branch red: whether that is possible, and what a person can choose."""

from __future__ import annotations

from collections.abc import Sequence

from ganger.core.events import QuestionAsked
from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import shown
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import PushStyle

ESCALATED, FATAL = "escalated", "fatal"
REVERT_IT, BY_WORKER = "revert it", "have its worker revert it"
TRY_AGAIN, LEAVE = "try again", "leave it as it is"
STILL_IN_HISTORY = "a revert does not remove it from the history: replace that key first"


def is_in_branch(rules: RepoRules, now: Delivery | None) -> bool:
    """Whether others may depend on its change: it is in the shared branch, or its request was merged."""
    if now is None or not now.standing:
        return False
    return bool(now.landed) if rules.style is PushStyle.REQUEST else bool(now.pushed)


def can_revert(state: RunState, name: str) -> bool:
    now = state.tasks[name].delivery
    return is_in_branch(rules_of(state, name), now) and now is not None and now.revert is None


def options_after(state: RunState, name: str) -> tuple[str, ...]:
    """For a task whose fixes are used up, while its last attempt ends; none if nothing of it left the machine."""
    rules, now = rules_of(state, name), state.tasks[name].delivery
    if now is None or not now.merges or not (now.pushed or now.landed):
        return ()
    if not is_in_branch(rules, now):
        return (TRY_AGAIN, LEAVE)
    again = (REVERT_IT,) if now.revert is None else (REVERT_IT, BY_WORKER)
    return (*again, TRY_AGAIN, LEAVE)


def offered(state: RunState, name: str) -> QuestionAsked | None:
    """What a person is asked about a task that ended, left out perhaps, while its commits keep the branch red; None
    where that is asked already, or answered."""
    number = state.tasks[name].attempts
    asked = [q for q in state.inbox.questions.values() if q.task == name and (q.answer is None or q.attempt == number)]
    if not can_revert(state, name) or any(q.answer in (None, LEAVE) for q in asked):
        return None
    options, task = (REVERT_IT, TRY_AGAIN, LEAVE), state.tasks[name]
    text = f"CI of {rules_of(state, name).branch} is red because of {name}, which is {task.status.value}: {task.detail}"
    context = told(state, name, options)
    return QuestionAsked("", name, ESCALATED, text, attempt=number, context=context, options=options)


def told(state: RunState, name: str, options: Sequence[str]) -> str:
    """What the options do, shown with the question."""
    if REVERT_IT not in options:
        return ""
    now, rules = state.tasks[name].delivery, rules_of(state, name)
    assert now is not None
    count = len(now.standing)
    commits = "its commit" if count == 1 else f"its {count} commits"
    return (
        f"{REVERT_IT}: Ganger reverts {commits} on {rules.branch} of {shown(rules.name)} without an agent, verifies "
        f"and pushes the revert, and follows CI; {name} is then left out. {TRY_AGAIN}: {rules.fixes} more fixes."
    )


def passes_halt(state: RunState, name: str) -> bool:
    """A revert that a person chose is pushed although its repository is halted, if nothing else goes with it."""
    now, repo = state.tasks[name].delivery, state.specs[name].repo
    if now is None or now.revert is None:
        return False
    return not any(
        other != name and state.specs[other].repo == repo and _waits_to_go(task.delivery)
        for other, task in state.tasks.items()
    )


def _waits_to_go(now: Delivery | None) -> bool:
    """Merged, and not in any push yet."""
    return now is not None and now.pending and bool(now.merges) and not now.prepares_revert and now.pushed != now.commit
