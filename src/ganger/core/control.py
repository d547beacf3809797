"""What a person's command does to a run: the events it becomes, and a sentence on what came of it.

The lead records all events of one command in one transaction, and only then looks at the next command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ganger.core import events as ev
from ganger.core.dependents import behind_failed
from ganger.core.quota import account_of, paused_until
from ganger.core.records import Question, RunState
from ganger.core.vocabulary import BlockReason, TaskStatus

SKIPPED = "skipped by a person"
_REFUSED = "refused: "
_LONGEST_TEXT = 20_000
_BAD = frozenset({TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED})


class Asked(Protocol):
    """A command as the store keeps it."""

    @property
    def number(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def data(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class Effect:
    """What a command does. Refused ones do nothing but say why."""

    outcome: str
    events: tuple[ev.Event, ...] = ()


class Refusal(Exception):
    """Why a command cannot be done, and what could be done instead."""


def act(state: RunState, command: Asked, now: float) -> list[ev.Event]:
    """Everything the command changes, then `CommandTaken`.

    Nothing at all for one that was taken before, or while the run has ended: the next lead takes it.
    """
    if command.number <= state.commands_taken or state.finished:
        return []
    try:
        kind = KINDS.get(command.kind)
        if kind is None:
            raise Refusal(f"there is no command {command.kind!r}; known are {', '.join(KINDS)}")
        effect = kind(state, command.data, now)
    except Refusal as problem:
        effect = Effect(f"{_REFUSED}{problem}")
    return [*effect.events, ev.CommandTaken(command.number, command.kind, effect.outcome)]


def was_refused(outcome: str) -> bool:
    return outcome.startswith(_REFUSED)


# --- the run -----------------------------------------------------------------------------------------------------


def _pause(state: RunState, _data: Mapping[str, object], _now: float) -> Effect:
    if state.stopping or state.draining:
        raise Refusal("the run is ending already; ganger run continues it")
    if state.paused:
        return Effect("the run is paused already; ganger resume goes on")
    went_on = f"; {_attempts(state)} to the end" if state.running else ""
    return Effect(
        f"paused: nothing new starts{went_on}; ganger resume goes on", (ev.RunPaused("asked for by a person"),)
    )


def _resume(state: RunState, _data: Mapping[str, object], _now: float) -> Effect:
    if state.stopping or state.draining:
        raise Refusal("the run is ending; ganger run continues it")
    if not state.paused:
        return Effect("the run is not paused; nothing to do")
    return Effect("resumed: the run goes on", (ev.RunResumed("asked for by a person"),))


def _stop(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    lead = data.get("lead")
    if isinstance(lead, int) and lead != state.leads:
        raise Refusal(f"it was meant for lead {lead} of this run, and that one has ended; this is lead {state.leads}")
    if state.stopping:
        return Effect("the run is stopping already")
    if data.get("drain") is not True:
        ended = f"{_counted(len(state.running), 'running attempt')} will be ended" if state.running else "nothing runs"
        return Effect(f"stopping: {ended}; ganger run continues the run", (ev.StopRequested("ganger stop"),))
    if state.draining:
        return Effect("the run is draining already; ganger stop ends it at once")
    rest = f"; {_attempts(state)} to the end first" if state.running else ""
    return Effect(f"draining: nothing new starts and the run ends{rest}", (ev.DrainRequested("ganger stop --drain"),))


def _attempts(state: RunState) -> str:
    return f"{_counted(len(state.running), 'running attempt')} {'goes' if len(state.running) == 1 else 'go'} on"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# --- one task ----------------------------------------------------------------------------------------------------


def _retry(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    name, hint = _task(state, data), _text(data, "hint")
    task = state.tasks[name]
    if task.status is TaskStatus.RUNNING:
        raise Refusal(f"{name} is RUNNING (attempt {task.attempts}); wait for its end, or ganger stop")
    if task.status is TaskStatus.DONE and data.get("force") is not True:
        raise Refusal(f"{name} is DONE; ganger retry {name} --force runs it again")
    if task.status is TaskStatus.PENDING and not hint and task.not_before <= now:
        raise Refusal(f"{name} is PENDING and runs by itself; ganger why {name} says what it waits for")
    need = _bad_need(state, name)
    if need is not None:
        raise Refusal(f"{name} needs {need}, which is {state.tasks[need].status.value}: retry {need}, {name} follows")
    told, again = " with your hint" if hint else "", " again" if task.attempts else ""
    closed = _close_questions(state, name, hint or "retried")
    events = (*closed, *_bring_back(state, name, "retried by a person", hint))
    return Effect(f"{name} runs{again}{told}{_but(state, name, now)}{_following(events, name)}", events)


def _skip(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    name = _task(state, data)
    task = state.tasks[name]
    if task.status is TaskStatus.RUNNING:
        raise Refusal(f"{name} is RUNNING (attempt {task.attempts}); wait for its end, or ganger stop, then skip it")
    if task.status is TaskStatus.DONE:
        raise Refusal(f"{name} is DONE; there is nothing left to skip")
    if is_skipped(state, name):
        return Effect(f"{name} is left out already; ganger retry {name} takes it in again")
    closed = _close_questions(state, name, "skipped")
    behind = behind_failed(state, name)
    blocked = [
        ev.TaskSettled(b, TaskStatus.BLOCKED, f"it waits for {name}, which was skipped", BlockReason.DEPENDENCY_FAILED)
        for b in behind
    ]
    settled = ev.TaskSettled(name, TaskStatus.BLOCKED, SKIPPED, BlockReason.PAUSED)
    also = f", and so are {_counted(len(behind), 'task')} that need it" if behind else ""
    return Effect(f"{name} is left out{also}; ganger retry {name} takes it in again", (*closed, settled, *blocked))


def is_skipped(state: RunState, name: str) -> bool:
    """Left out by a person: it stays so until a person takes it in again, also in a later lead."""
    task = state.tasks[name]
    return task.block_reason is BlockReason.PAUSED and task.detail == SKIPPED


def _task(state: RunState, data: Mapping[str, object]) -> str:
    name = data.get("task")
    if not isinstance(name, str) or not name:
        raise Refusal("it names no task")
    if name not in state.tasks:
        raise Refusal(f"there is no task {name}; ganger tasks lists them")
    return name


def _text(data: Mapping[str, object], key: str) -> str:
    text = data.get(key, "")
    if not isinstance(text, str):
        raise Refusal(f"the {key} is no text")
    if len(text) > _LONGEST_TEXT:
        raise Refusal(f"the {key} has {len(text)} characters, at most {_LONGEST_TEXT} go into a prompt")
    return text.strip()


def _bad_need(state: RunState, name: str) -> str | None:
    return next((need for need in state.specs[name].depends_on if _is_bad(state, need)), None)


def _is_bad(state: RunState, name: str) -> bool:
    """Ended other than DONE for good; a failure its window has yet to judge, or a wait for quota, is not."""
    task = state.tasks[name]
    return task.status in _BAD and task.final


def _close_questions(state: RunState, name: str, text: str) -> list[ev.Event]:
    asked = [q.id for q in state.questions.values() if q.task == name and q.answer is None]
    return [ev.QuestionAnswered(question, text) for question in asked]


def _bring_back(state: RunState, name: str, why: str, hint: str) -> list[ev.Event]:
    """The task with one more attempt, and in plan order whatever was blocked behind it and by nothing else."""
    waiting = state.tasks[name].status is TaskStatus.PENDING
    events: list[ev.Event] = []
    if waiting:
        # Only what is settled can be queued again, and only so does a hint reach a task.
        events.append(ev.TaskSettled(name, TaskStatus.BLOCKED, "taken aside by a person", BlockReason.PAUSED))
    events.append(ev.TaskRequeued(name, why, granted=0 if waiting else 1, hint=hint, by_person=True))
    need = _bad_need(state, name)
    if need is not None:
        waits = f"it waits for {need}, which is {state.tasks[need].status.value}"
        return [*events, ev.TaskSettled(name, TaskStatus.BLOCKED, waits, BlockReason.DEPENDENCY_FAILED)]
    back = {name}
    for other in sorted(_behind(state, name), key=state.rank.__getitem__):
        blocked = state.tasks[other].block_reason is BlockReason.DEPENDENCY_FAILED
        if blocked and not any(n not in back and _is_bad(state, n) for n in state.specs[other].depends_on):
            back.add(other)
            events.append(ev.TaskRequeued(other, f"{name} runs again"))
    return events


def _behind(state: RunState, name: str) -> set[str]:
    found: set[str] = set()
    queue = [name]
    for current in queue:
        new = [d for d in state.dependents.get(current, ()) if d not in found]
        found.update(new)
        queue.extend(new)
    return found


def _but(state: RunState, name: str, now: float) -> str:
    """Why it does not start this very moment, as far as a person should know."""
    until = paused_until(state, account_of(state, name), now)
    if state.paused:
        return ", once the run is resumed"
    if state.stopping or state.draining:
        return ", when the run is continued: this lead is ending"
    if state.scope.only is not None and name not in state.scope.only:
        return ", when ganger run is called without --only"
    return f", when its account's quota is back in {math.ceil(until - now)} s" if until else ""


def _following(events: tuple[ev.Event, ...], name: str) -> str:
    count = sum(1 for event in events if isinstance(event, ev.TaskRequeued) and event.task != name)
    return f"; {_counted(count, 'task')} blocked behind it may run too" if count else ""


# --- questions and patches ---------------------------------------------------------------------------------------


def _answer(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    question, text = find_question(state, data.get("question")), _text(data, "text")
    if not text:
        raise Refusal("the answer is empty")
    answered = ev.QuestionAnswered(question.id, text)
    task = state.tasks.get(question.task)
    if task is None:
        return Effect(f"{question.id} is answered", (answered,))
    name = question.task
    if task.status is TaskStatus.RUNNING:
        raise Refusal(f"{name} is RUNNING (attempt {task.attempts}) and cannot hear you; answer when it has ended")
    if task.status is TaskStatus.DONE:
        return Effect(f"{question.id} is answered; {name} is DONE already", (answered,))
    others = [e for e in _close_questions(state, name, text) if e != answered]
    events = (answered, *others, *_bring_back(state, name, f"{question.id} was answered", text))
    if isinstance(events[-1], ev.TaskSettled):
        return Effect(f"{question.id} is answered; {name} keeps it: {events[-1].detail}", events)
    again = f"{name} runs again with your answer"
    return Effect(f"{question.id} is answered; {again}{_but(state, name, now)}{_following(events, name)}", events)


def find_question(state: RunState, word: object) -> Question:
    """An open question by its id, or by its task's id where that has only one."""
    if not isinstance(word, str) or not word:
        raise Refusal("it names no question")
    known = state.questions.get(word)
    if known is not None and known.answer is not None:
        raise Refusal(f"{word} was answered already; ganger inbox shows what is open")
    if known is not None:
        return known
    of_task = [q for q in state.questions.values() if q.task == word and q.answer is None]
    if len(of_task) > 1:
        raise Refusal(f"{word} has {len(of_task)} open questions: {', '.join(q.id for q in of_task)}; name one of them")
    if not of_task:
        raise Refusal(f"there is no open question {word}; ganger inbox shows what is open")
    return of_task[0]


def _undo_patch(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    patch = state.patches.get(str(data.get("patch", "")))
    if patch is None:
        raise Refusal(f"there is no patch {data.get('patch', '')}; ganger patches lists them")
    if patch.undone:
        return Effect(f"{patch.id} is undone already")
    undone = ev.PatchUndone(patch.id, "undone by a person")
    return Effect(f"{patch.id} is undone; attempts from now on are made without it", (undone,))


# --- settings ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    lowest: float
    highest: float = math.inf
    whole: bool = True
    may_be_none: bool = False


_AMOUNT = Range(0, whole=False, may_be_none=True)
_COUNT = Range(0, may_be_none=True)
SETTINGS: Mapping[str, Range] = {
    "policy.concurrency": Range(1, 1024),
    "policy.batch_size": Range(1),
    "policy.failure_threshold": Range(0, 1, whole=False),
    "policy.max_worker_attempts_per_task": Range(1),
    "policy.max_heal_rounds_per_window": Range(0),
    "policy.max_total_heal_rounds": Range(0),
    "policy.signature_repeat_limit": Range(1),
    "policy.format_retries": Range(0),
    "policy.respawns": Range(0),
    "policy.transient_retries": Range(0),
    "policy.merge_retries": Range(0),
    "policy.no_change_retries": Range(0),
    "policy.stall_restarts": Range(0),
    "policy.checkpoints": Range(0),
    "policy.quota_spread_sec": Range(0, whole=False),
    "policy.quota_wait_sec": Range(1, whole=False),
    "budget.usd": _AMOUNT,
    "budget.tokens": _COUNT,
    "budget.attempts": _COUNT,
    "budget.wall_sec": _AMOUNT,
    "budget.task_usd": _AMOUNT,
    "budget.task_tokens": _COUNT,
    "budget.task_wall_sec": _AMOUNT,
    "budget.attempt_usd": Range(0, whole=False),
    "budget.attempt_tokens": Range(0),
}


def _set(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    key, value = read_setting(data.get("key"), data.get("value"))
    section, _, field = key.partition(".")
    part: Any = state.policy if section == "policy" else state.budget
    before = getattr(part, field)
    if before == value:
        return Effect(f"{key} is {_shown(value)} already")
    changed = replace(part, **{field: value})
    policy, budget = (changed, state.budget) if section == "policy" else (state.policy, changed)
    outcome = f"{key} is {_shown(value)} now (was {_shown(before)})"
    closed = [
        ev.QuestionAnswered(q.id, outcome)
        for q in state.questions.values()
        if section == "budget" and q.kind == "budget" and not q.task and q.answer is None
    ]
    return Effect(outcome, (ev.SettingsChanged(policy, budget), *closed))


def read_setting(key: object, value: object) -> tuple[str, float | None]:
    """The full key and the checked value; a number, its text, or `none` for no limit."""
    if not isinstance(key, str) or not key:
        raise Refusal("it names no setting")
    full = key if "." in key else f"policy.{key}"
    if full == "policy.heal_schedule":
        raise Refusal("the schedule cannot change while a run goes on; ganger stop, then ganger run --set")
    known = SETTINGS.get(full)
    if known is None:
        raise Refusal(f"{key} cannot be set while a run goes on; these can: {', '.join(SETTINGS)}")
    if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
        if not known.may_be_none:
            raise Refusal(f"{full} needs a number")
        return full, None
    return full, _number(full, value, known)


def _number(key: str, value: object, known: Range) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        either = " or none" if known.may_be_none else ""
        raise Refusal(f"{key} needs a number{either}, not {str(value)[:80]!r}")
    if known.whole and number != int(number):
        raise Refusal(f"{key} needs a whole number, not {value}")
    if not known.lowest <= number <= known.highest:
        most = "" if known.highest == math.inf else f" and at most {_shown(known.highest)}"
        raise Refusal(f"{key} must be at least {_shown(known.lowest)}{most}, not {value}")
    return int(number) if known.whole else number


def _shown(value: float | None) -> str:
    return "without a limit" if value is None else f"{value:g}" if abs(value) < 1e6 else str(value)


KINDS: Mapping[str, Callable[[RunState, Mapping[str, object], float], Effect]] = {
    "pause": _pause,
    "resume": _resume,
    "stop": _stop,
    "retry": _retry,
    "skip": _skip,
    "set": _set,
    "answer": _answer,
    "undo_patch": _undo_patch,
}
