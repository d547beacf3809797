"""How the ledger of a task records the revert of its change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ganger.core.events import reverts as ev
from ganger.core.model.ledger import BY_GANGER, Revert
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.state.apply_delivery import not_proved, noted
from ganger.core.state.reducers import applied_in, applies


@applies(ev.RevertChosen)
def _chosen(_s: RunState, _n: str, task: TaskState, event: ev.RevertChosen, at: str) -> TaskState:
    """If Ganger does it, no worker is needed: the task continues as a delivery."""
    by = "" if event.how == BY_GANGER else " by its worker"
    task = noted(task, at, "person", f"to be reverted{by} ({event.question})")
    now = task.delivery
    assert now is not None
    pending = event.how == BY_GANGER
    return replace(task, delivery=replace(now, revert=Revert(event.question, event.how, at), pending=pending))


@applies(ev.RevertFailed)
def _failed(_s: RunState, _n: str, task: TaskState, event: ev.RevertFailed, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"not reverted: {event.why}")
    assert task.delivery is not None
    return replace(task, delivery=replace(task.delivery, revert=None, pending=False))


@applies(ev.Reverted)
def _reverted(_s: RunState, _n: str, task: TaskState, event: ev.Reverted, at: str) -> TaskState:
    task = noted(task, at, "ganger", "the change is reverted, with proof", event.commit)
    now = task.delivery
    assert now is not None
    now = replace(now, revert=None, reverted=event.commit, pending=False, substate="reverted")
    return replace(task, work=replace(task.work, merged=""), delivery=now)


REVERT_EVENTS = applied_in(__name__)


def revert_misfit(state: RunState, task: TaskState, event: Any) -> str:
    """Why this does not fit the task; empty if it does."""
    now = task.delivery
    if now is None:
        return "nothing of it was delivered"
    match event:
        case ev.RevertChosen():
            if now.revert is not None:
                return "it is already being reverted"
            return "" if now.standing else "nothing of it is in the branch"
        case ev.RevertFailed():
            return "" if now.revert is not None else "it is not being reverted"
        case ev.Reverted(commit=commit):
            if now.revert is None or not now.revert.merged:
                return "nothing that reverts it is merged"
            if commit != now.commit:
                return f"{commit[:12]} is not the commit that is tracked ({now.commit[:12]})"
            lacking = not_proved(state, event.task, task)
            return f"reverted without proof of {', '.join(lacking)}" if lacking else ""
    return ""
