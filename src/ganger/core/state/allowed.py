"""Which events do not fit a run as it stands: by the statuses that their classes name, and by rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ganger.core import events as ev
from ganger.core.model.counters import CHARGED
from ganger.core.model.records import HealRound
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.planning.plan import plan_if_sound
from ganger.core.planning.repos import why_not
from ganger.core.state.apply_delivery import DELIVERY_EVENTS, delivery_misfit, not_proved
from ganger.core.state.apply_reverts import REVERT_EVENTS, revert_misfit
from ganger.core.state.hosts import HOST_EVENTS, host_misfit
from ganger.core.vocabulary import AttemptStep, Mode, TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
B, F, E = TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.ESCALATED
SETTLED = frozenset({D, B, F, E})


def run_misfit(state: RunState, event: ev.Event) -> str:
    if isinstance(event, ev.RunStarted):
        return "the run has begun already" if state.specs else ""
    if not state.specs:
        return "no run has begun"
    rule = _RUN_RULES.get(type(event))
    return rule(state, event) if rule is not None else ""


def _window_opened(state: RunState, event: ev.WindowOpened) -> str:
    if state.windows.current is not None:
        return f"window {state.windows.current.index} is still open"
    if open_round(state) is not None:
        return "a healer is at work"
    return "a task of it does not exist" if not state.specs.keys() >= set(event.tasks) else ""


def _window_closed(state: RunState, event: ev.WindowClosed) -> str:
    return (
        "that window is not open" if state.windows.current is None or state.windows.current.index != event.index else ""
    )


def _heal_started(state: RunState, event: ev.HealStarted) -> str:
    if state.windows.current is not None:
        return "a window is open: healing never runs inside one"
    if open_round(state) is not None:
        return "another round is open"
    if event.round != len(state.healing.rounds) + 1:
        return f"round {event.round} does not follow {len(state.healing.rounds)}"
    if event.round > state.policy.max_total_heal_rounds:
        return f"the total of {state.policy.max_total_heal_rounds} heal rounds is used up"
    return "a task of it does not exist" if not state.specs.keys() >= set(event.failed) else ""


def _of_open_round(state: RunState, event: Any) -> str:
    now = open_round(state)
    return "" if now is not None and now.number == event.round else f"round {event.round} is not open"


def _patch_applied(state: RunState, event: ev.PatchApplied) -> str:
    return "there is a patch of that name" if event.patch in state.healing.patches else _of_open_round(state, event)


def _patch_undone(state: RunState, event: ev.PatchUndone) -> str:
    known = state.healing.patches.get(event.patch)
    return "no such patch" if known is None else "it is undone already" if known.undone else ""


def _cost_settled(state: RunState, event: ev.CostSettled) -> str:
    return "" if 0 < event.attempt <= len(state.healing.rounds) else "no such round"


def _question_asked(state: RunState, event: ev.QuestionAsked) -> str:
    return "there is a question of that name" if event.question in state.inbox.questions else ""


def _question_answered(state: RunState, event: ev.QuestionAnswered) -> str:
    known = state.inbox.questions.get(event.question)
    return "no such question" if known is None else "it is answered already" if known.answer is not None else ""


def _question_raised(state: RunState, event: ev.QuestionRaised) -> str:
    known = state.inbox.questions.get(event.question)
    return "no such question" if known is None else "it is answered already" if known.answer is not None else ""


def open_round(state: RunState) -> HealRound | None:
    """The heal round whose healer has not answered yet."""
    return state.healing.rounds[-1] if state.healing.rounds and not state.healing.rounds[-1].decision else None


def _reconciled(state: RunState, event: ev.Reconciled) -> str:
    running = state.index.running.intersection((*event.removed, *event.changed))
    if running:
        return f"{min(running)} is still RUNNING"
    if open_round(state) is not None:
        return "a healer is at work"
    if not state.specs.keys() >= {*event.changed, *event.removed}:
        return "a task of it does not exist"
    return "" if plan_if_sound(event.tasks) is not None else "its tasks can have no order"


def _head_intended(state: RunState, event: ev.HeadIntended) -> str:
    if not event.tasks or event.tasks[0] not in state.specs:
        return "it names no task"
    if state.specs[event.tasks[0]].repo in state.branches.intents:
        return "another move of the branch is under way"
    lost = [name for name in event.tasks if name not in state.index.in_merge_queue]
    return f"{lost[0]} does not wait to be merged" if lost else ""


def _head_kept(state: RunState, event: ev.HeadKept) -> str:
    return "" if event.repo in state.branches.intents else "no move of the branch is under way"


_RUN_RULES: dict[type, Callable[[RunState, Any], str]] = {
    ev.Reconciled: _reconciled,
    ev.HeadIntended: _head_intended,
    ev.HeadKept: _head_kept,
    ev.WindowOpened: _window_opened,
    ev.WindowClosed: _window_closed,
    ev.HealStarted: _heal_started,
    ev.HealRefused: _of_open_round,
    ev.HealFinished: _of_open_round,
    ev.PatchApplied: _patch_applied,
    ev.PatchRefused: _of_open_round,
    ev.PatchUndone: _patch_undone,
    ev.CostSettled: _cost_settled,
    ev.QuestionAsked: _question_asked,
    ev.QuestionAnswered: _question_answered,
    ev.QuestionRaised: _question_raised,
    **dict.fromkeys(HOST_EVENTS, host_misfit),
}


def task_misfit(state: RunState, task: TaskState, event: ev.Event) -> str:
    if not isinstance(event, ev.TaskEvent) or task.status not in event.fits:
        return f"not possible while {task.status.value}"
    if isinstance(event, ev.AttemptEvent | ev.MessageLeft) and event.attempt != task.attempts:
        return f"attempt {event.attempt} is not the current one ({task.attempts})"
    if isinstance(event, ev.AttemptStarted):
        return _start_misfit(state, task, event)
    if isinstance(event, ev.TaskSettled):
        return _settle_misfit(state, task, event)
    if type(event) in DELIVERY_EVENTS:
        return delivery_misfit(task, event)
    if type(event) in REVERT_EVENTS:
        return revert_misfit(state, task, event)
    if isinstance(event, ev.MergeQueued):
        return "" if task.verification.passed_attempt == task.attempts else "it is not verified"
    if isinstance(event, ev.Merged):
        return _merged_misfit(state, task, event)
    if (
        isinstance(event, ev.AttemptFailed | ev.AttemptInterrupted | ev.AttemptCheckpointed)
        and task.attempt.step == AttemptStep.FAILED
    ):
        return "this attempt has failed already"
    if isinstance(event, ev.AttemptFailed):
        return "" if event.counter in CHARGED else f"there is no counter {event.counter!r}"
    return ""


def _start_misfit(state: RunState, task: TaskState, event: ev.AttemptStarted) -> str:
    if event.attempt != task.attempts + 1:
        return f"attempt {event.attempt} does not follow {task.attempts}"
    if state.index.unmet[event.task]:
        return "a dependency is not DONE"
    if state.finished:
        return "the run has ended"
    return "" if event.delivers or not state.chains.rules else why_not(state, event.task)


def _merged_misfit(state: RunState, task: TaskState, event: ev.Merged) -> str:
    if not event.commit:
        return "" if task.verification.passed_attempt == task.attempts else "it is not verified"
    moved = state.branches.intents.get(state.specs[event.task].repo)
    if moved is None or event.task not in moved.tasks:
        return "the branch was not about to move for it"
    return "" if event.commit == moved.commits[moved.tasks.index(event.task)] else "another commit was to be merged"


def _settle_misfit(state: RunState, task: TaskState, event: ev.TaskSettled) -> str:
    if event.status not in SETTLED:
        return f"{event.status.value} settles nothing"
    if event.status is D and (task.status is not R or task.verification.passed_attempt != task.attempts):
        return "DONE without passed verification of this attempt"
    if event.status is D and state.mode is not Mode.DIRECT and not task.work.merged:
        return "DONE although its change is not merged"
    lacking = not_proved(state, event.task, task) if event.status is D else ()
    return f"DONE without proof of {', '.join(lacking)}" if lacking else ""
