"""What a person's command does to a run: the events it becomes, and a sentence that reports the outcome.

The lead records all events of one command in one transaction, and only then takes the next command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ganger.core import events as ev
from ganger.core.command_result import Effect, Refusal as Refusal, counted, number_of, task_named, text_of
from ganger.core.control import answers, reviews, worker_commands
from ganger.core.control.questions import chosen, find_question as find_question
from ganger.core.control.removals import is_skipped as is_skipped, left_out
from ganger.core.control.worker_commands import SKIPPED as SKIPPED
from ganger.core.model.counters import LIMITS
from ganger.core.model.run_state import RunState
from ganger.core.planning.dependents import behind_failed
from ganger.core.planning.repos import PROJECT, graph_of, shown
from ganger.core.scheduling.resume import bad_need, bring_back, but, close_questions, following
from ganger.core.settings.applicability import Circumstances, judge_setting
from ganger.core.state import hosts
from ganger.core.vocabulary import BlockReason, TaskStatus

_REFUSED = "refused: "


class Asked(Protocol):
    """A command as the store keeps it."""

    @property
    def number(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def data(self) -> Mapping[str, object]: ...


def act(state: RunState, command: Asked, now: float) -> list[ev.Event]:
    """Everything the command changes, then `CommandTaken`.

    Empty if the command was taken before, or if the run has ended: then the next lead takes it.
    """
    if command.number <= state.lead.commands_taken or state.finished:
        return []
    try:
        kind = KINDS.get(command.kind)
        if kind is None:
            raise Refusal(f"there is no command {command.kind!r}; known are {', '.join(KINDS)}")
        effect = kind(state, command.data, now)
    except Refusal as problem:
        effect = Effect(f"{_REFUSED}{problem}")
    return [*effect.events, ev.CommandTaken(command.number, command.kind, effect.outcome)]


def refused(command: Asked, why: str) -> list[ev.Event]:
    """For a reason that only shows when the command is carried out."""
    return [ev.CommandTaken(command.number, command.kind, f"{_REFUSED}{why}")]


def was_refused(outcome: str) -> bool:
    return outcome.startswith(_REFUSED)


# --- the run -----------------------------------------------------------------------------------------------------


def _pause(state: RunState, _data: Mapping[str, object], _now: float) -> Effect:
    if state.lead.stopping or state.lead.draining:
        raise Refusal("the run is already ending; ganger run continues it")
    if state.lead.paused:
        return Effect("the run is already paused; ganger resume continues")
    rest = f"; {_attempts(state)}" if state.index.running else ""
    return Effect(
        f"paused: nothing new starts{rest}; ganger resume continues", (ev.RunPaused("requested by a person"),)
    )


def _resume(state: RunState, _data: Mapping[str, object], _now: float) -> Effect:
    if state.lead.stopping or state.lead.draining:
        raise Refusal("the run is ending; ganger run continues it")
    if not state.lead.paused:
        return Effect("the run is not paused; nothing to do")
    return Effect("resumed: the run continues", (ev.RunResumed("requested by a person"),))


def _stop(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    lead = data.get("lead")
    if isinstance(lead, int) and lead != state.lead.count:
        raise Refusal(f"it was meant for lead {lead} of this run, which has ended; this is lead {state.lead.count}")
    if state.lead.stopping:
        return Effect("the run is already stopping")
    if data.get("drain") is not True:
        ended = (
            f"{counted(len(state.index.running), 'running attempt')} will be stopped"
            if state.index.running
            else "nothing runs"
        )
        return Effect(f"stopping: {ended}; ganger run continues the run", (ev.StopRequested("ganger stop"),))
    if state.lead.draining:
        return Effect("the run is already draining; ganger stop ends it at once")
    rest = f"; {_attempts(state)}" if state.index.running else ""
    return Effect(f"draining: nothing new starts and the run ends{rest}", (ev.DrainRequested("ganger stop --drain"),))


def _attempts(state: RunState) -> str:
    running = len(state.index.running)
    return f"{counted(running, 'running attempt')} {'finishes' if running == 1 else 'finish'} first"


# --- one task ----------------------------------------------------------------------------------------------------


def _retry(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    name, hint = task_named(state, data), text_of(data, "hint")
    task = state.tasks[name]
    if task.status is TaskStatus.RUNNING and data.get("force") is not True and (host := hosts.awaited_by(state, name)):
        return Effect(f"{host} is tried now; {name} continues when it answers", tuple(hosts.tried(state, name)))
    if task.status is TaskStatus.RUNNING and data.get("force") is not True:
        force = f"ganger retry {name} --force stops it and starts over"
        raise Refusal(f"{name} is RUNNING (attempt {task.attempts}); wait for its end, or {force}")
    if task.status is TaskStatus.RUNNING:
        worker_commands.require_running(state, name)
        return worker_commands.start_over(name, task, hint)
    if task.status is TaskStatus.DONE and data.get("force") is not True:
        raise Refusal(f"{name} is DONE; ganger retry {name} --force runs it again")
    if task.status is TaskStatus.PENDING and not hint and task.not_before <= now:
        raise Refusal(f"{name} is PENDING and starts by itself; ganger why {name} shows what it waits for")
    if task.block_reason is BlockReason.AWAITING_REVIEW and data.get("force") is not True:
        raise Refusal(f"{name} is waiting for a review: ganger approve {name}, or ganger rework {name} TEXT")
    need = bad_need(state, name)
    if need is not None:
        raise Refusal(
            f"{name} needs {need}, which is {state.tasks[need].status.value}: retry {need}, and {name} follows"
        )
    with_hint, again = " with your hint" if hint else "", " again" if task.attempts else ""
    closed = close_questions(state, name, hint or "retried")
    events = (*closed, *bring_back(state, name, "retried by a person", hint), *hosts.tried(state, name))
    return Effect(f"{name} runs{again}{with_hint}{but(state, name, now)}{following(events, name)}", events)


def _skip(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    name = task_named(state, data)
    task = state.tasks[name]
    if task.status is TaskStatus.RUNNING:
        worker_commands.require_running(state, name)
        return worker_commands.leave_out(name, task)
    if task.status is TaskStatus.DONE:
        raise Refusal(f"{name} is DONE; there is nothing left to skip")
    if is_skipped(state, name):
        return Effect(f"{name} is already left out; ganger retry {name} includes it again")
    behind = behind_failed(state, name)
    also = f", and so are {counted(len(behind), 'task')} that need it" if behind else ""
    return Effect(f"{name} is left out{also}; ganger retry {name} includes it again", left_out(state, name, "skipped"))


# --- repositories ------------------------------------------------------------------------------------------------


def _unlock(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    """A person takes responsibility: releases the locks of this repository's tasks, and any halt or pause."""
    repo, why = _repo_named(state, data), text_of(data, "why")
    if not why:
        raise Refusal("it gives no reason; --why TEXT is kept with the run")
    holders = sorted(state.index.locks.get(repo, ()), key=state.index.rank.__getitem__)
    lifted = [word for word, where in (("halt", state.chains.halted), ("pause", state.chains.broken)) if repo in where]
    if not holders and not lifted:
        return Effect(f"{shown(repo)} is neither locked nor halted; nothing to do")
    running = [name for name in holders if name in state.index.running]
    runs = "still runs and shares" if len(running) == 1 else "still run and share"
    still = f"; {', '.join(running)} {runs} the chain with tasks that start now" if running else ""
    freed = [f"{', '.join(holders)} no longer {'holds' if len(holders) == 1 else 'hold'} it"] if holders else []
    freed += [f"its {word} is lifted" for word in lifted]
    back = _stopped_by(state, repo) if repo in state.chains.halted else []
    freed += [f"{', '.join(back)} {'continues' if len(back) == 1 else 'continue'}"] if back else []
    lifts = f"{shown(repo)} is no longer halted"
    again = [event for name in back for event in bring_back(state, name, lifts, "")]
    events = (ev.RepoUnlocked(repo, why, tuple(holders)), *again)
    return Effect(f"{shown(repo)} is free: {' and '.join(freed)}{still}", events)


def _stopped_by(state: RunState, repo: str) -> list[str]:
    """Deliveries that wait only because this repository of their chain is halted."""
    graph, found = graph_of(state.chains.rules), []
    for name in state.index.by_rank:
        task, own = state.tasks[name], state.specs[name].repo
        chain = {own, *graph.upstream.get(own, ()), *graph.downstream.get(own, ())}
        waits = task.block_reason is BlockReason.PAUSED and task.delivery is not None and task.delivery.pending
        if waits and not is_skipped(state, name) and chain & state.chains.halted.keys() == {repo}:
            found.append(name)
    return found


def _repo_named(state: RunState, data: Mapping[str, object]) -> str:
    name = data.get("repo")
    if not isinstance(name, str) or not name:
        raise Refusal("it names no repository")
    repo = "" if name == PROJECT else name
    if repo and repo not in state.chains.rules:
        known = ", ".join(sorted(other for other in state.chains.rules if other))
        raise Refusal(f"there is no repository {name}; there are {known}" if known else "this run has no repositories")
    return repo


# --- questions and patches ---------------------------------------------------------------------------------------


def _answer(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    question, text = find_question(state, data.get("question")), text_of(data, "text")
    if not text:
        raise Refusal("the answer is empty")
    return answers.given(state, question, chosen(question, text), now)


def _undo_patch(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    patch = state.healing.patches.get(str(data.get("patch", "")))
    if patch is None:
        raise Refusal(f"there is no patch {data.get('patch', '')}; ganger patches lists them")
    if patch.undone:
        return Effect(f"{patch.id} is already undone")
    undone = ev.PatchUndone(patch.id, "undone by a person")
    return Effect(f"{patch.id} is undone; later attempts run without it", (undone,))


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
    **{f"policy.{name}": Range(0) for name in LIMITS},
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
    part: Any = state.policy if section == "policy" else state.money.budget
    before = getattr(part, field)
    if before == value:
        return Effect(f"{key} is already {_shown(value)}")
    changed = replace(part, **{field: value})
    policy, budget = (changed, state.money.budget) if section == "policy" else (state.policy, changed)
    outcome = f"{key} is {_shown(value)} now (was {_shown(before)}){_without_effect(state, key, value)}"
    closed = [
        ev.QuestionAnswered(q.id, outcome)
        for q in state.inbox.questions.values()
        if section == "budget" and q.kind == "budget" and not q.task and q.answer is None
    ]
    return Effect(outcome, (ev.SettingsChanged(policy, budget), *closed))


def _without_effect(state: RunState, key: str, value: object) -> str:
    given = Circumstances(state.mode, state.policy.heal_schedule.value, bool(state.healing.healer))
    finding = judge_setting(key, value, (given,))
    return f", without effect: {finding.why}" if finding is not None else ""


def read_setting(key: object, value: object) -> tuple[str, float | None]:
    """The full key and the checked value; a number, its text, or `none` for no limit."""
    if not isinstance(key, str) or not key:
        raise Refusal("it names no setting")
    full = key if "." in key else f"policy.{key}"
    if full == "policy.heal_schedule":
        raise Refusal("the schedule cannot change during a run; use ganger stop, then ganger run --set")
    known = SETTINGS.get(full)
    if known is None:
        raise Refusal(f"{key} cannot be set during a run; these can: {', '.join(SETTINGS)}")
    if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
        if not known.may_be_none:
            raise Refusal(f"{full} needs a number")
        return full, None
    return full, _number(full, value, known)


def _number(key: str, value: object, known: Range) -> float:
    number = number_of(value)
    if math.isnan(number):
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
    "unlock": _unlock,
    "approve": reviews.approve,
    "rework": reviews.rework,
    "set": _set,
    "answer": _answer,
    "extend": worker_commands.extend,
    "end": worker_commands.end,
    "reassign": worker_commands.reassign,
    "undo_patch": _undo_patch,
}
