"""Hosts of remotes and forges that do not answer, or refuse the token: which tasks wait, and the question about it.

No task fails for it. Its tasks wait, one question is asked for all of them, and they continue when it answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ganger.core import events as ev
from ganger.core.command_result import Effect, counted
from ganger.core.events.hosts import AWAY as AWAY, DENIED as DENIED
from ganger.core.model.records import HostTrouble, Question
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.state.indexes import is_delivering
from ganger.core.state.reducers import applied_in, applies
from ganger.core.times import seconds_between, stamp, unix_time
from ganger.core.vocabulary import BlockReason, TaskStatus

HOST = "host"
# Short words for the messages of programs; the first match counts.
_REASONS = (
    (re.compile(r"connection refused", re.I), "connection refused"),
    (re.compile(r"couldn't connect|failed to connect|connection attempts failed", re.I), "no connection"),
    (re.compile(r"could not resolve|name or service not known|name resolution|nodename nor", re.I),
     "its name cannot be resolved"),
    (re.compile(r"(?:returned error: |it answered )(5\d\d)", re.I), "it answers {0}"),
    (re.compile(r"no answer within|did not answer within|timed? ?out", re.I), "no answer in time"),
    (re.compile(r"connection reset|disconnected|closed by", re.I), "it closes the connection"),
    (re.compile(r"certificate|\btls\b|\bssl\b", re.I), "no secure connection"),
)  # fmt: skip
_MOST_WHY = 160


def short_reason(said: str) -> str:
    for pattern, words in _REASONS:
        if found := pattern.search(said):
            return words.format(*found.groups())
    return " ".join(said.split())[:_MOST_WHY]


def waiting(state: RunState, host: str) -> list[str]:
    """The tasks that can only continue when it is back, in plan order."""
    trouble = state.hosts.get(host)
    named = set(trouble.waiting) if trouble is not None else set()
    return [name for name in state.index.by_rank if name in named and _waits(state, name)]


def _waits(state: RunState, name: str) -> bool:
    task = state.tasks[name]
    if task.status is TaskStatus.BLOCKED:
        return _is_parked(state, name)
    return is_delivering(task) and task.status in (TaskStatus.RUNNING, TaskStatus.PENDING)


def _is_parked(state: RunState, name: str) -> bool:
    """It has waited too long: it is parked until the host is back."""
    task = state.tasks[name]
    return task.status is TaskStatus.BLOCKED and task.block_reason is BlockReason.EXTERNAL and not task.final


def awaited_by(state: RunState, name: str) -> str:
    """The host that this task waits for; empty if there is none."""
    return next((host for host in state.hosts if name in state.hosts[host].waiting and _waits(state, name)), "")


def is_away(state: RunState, hosts: Iterable[str]) -> str:
    """The first of them that is in trouble."""
    return next((host for host in hosts if host in state.hosts), "")


def question_about_host(state: RunState, host: str) -> Question | None:
    """The open question about it."""
    asked = (q for q in state.inbox.questions.values() if q.kind == HOST and q.host == host and q.answer is None)
    return next(asked, None)


def told(host: str, trouble: HostTrouble) -> str:
    """What is wrong with it, since when and why."""
    since = f"{trouble.since[11:16]} UTC" if trouble.since else "a while"
    why = f" ({trouble.why})" if trouble.why else ""
    if trouble.kind == DENIED:
        return f"{host} has refused the token since {since}{why}"
    return f"{host} has not answered since {since}{why}"


def asking(state: RunState, host: str, hint: str = "") -> list[ev.QuestionAsked]:
    """One question for all tasks that wait; nothing if it is already open."""
    trouble = state.hosts.get(host)
    if trouble is None or question_about_host(state, host) is not None:
        return []
    if trouble.kind == DENIED:
        how = hint or "renew the token that delivery.token_env or delivery.token_file names"
        then = (
            f"Next: {how}; a file is read again, a variable only when `ganger run` starts. Ganger keeps retrying; an "
            "answer retries immediately"
        )
    else:
        then = "Ganger keeps retrying, and the tasks continue when it answers; an answer retries immediately"
    return [ev.QuestionAsked("", "", HOST, f"{told(host, trouble)}. {then}", host=host)]


def not_waited_for(state: RunState, hosts: Iterable[str]) -> list[ev.Event]:
    """Ends the trouble of hosts that the run no longer uses, or for which no task waits."""
    used, events = frozenset(hosts), list[ev.Event]()
    for host, trouble in state.hosts.items():
        if host not in used or not waiting(state, host):
            asked = question_about_host(state, host)
            events += [ev.HostBack(host, way) for way in trouble.ways]
            events += [ev.QuestionAnswered(asked.id, "no task waits for it any more")] if asked is not None else []
    return events


def after_answer(state: RunState, host: str, way: str) -> list[ev.Event]:
    """It answers over this way. Once it answers over every way that failed, the tasks continue."""
    trouble = state.hosts.get(host)
    if trouble is None or way not in trouble.ways:
        return []
    events: list[ev.Event] = [ev.HostBack(host, way)]
    if trouble.ways != (way,):
        return events
    asked = question_about_host(state, host)
    if asked is not None:
        events.append(ev.QuestionAnswered(asked.id, f"{host} answers again"))
    return [*events, *_back(state, host, f"{host} answers again")]


def _back(state: RunState, host: str, why: str, but: str = "") -> list[ev.Event]:
    return [ev.TaskRequeued(name, why) for name in waiting(state, host) if name != but and _is_parked(state, name)]


def tried(state: RunState, name: str) -> list[ev.Event]:
    """A person retries this task: the host it waits for is tried immediately, for all tasks that wait for it."""
    host = awaited_by(state, name)
    if not host:
        return []
    asked, why = question_about_host(state, host), f"{name} was retried"
    answered = [ev.QuestionAnswered(asked.id, why)] if asked is not None else []
    return [*answered, ev.HostTried(host, why), *_back(state, host, why, but=name)]


def answer_host(state: RunState, question: Question, text: str) -> Effect:
    """Any answer means that the host is worth a try."""
    events: list[ev.Event] = [ev.QuestionAnswered(question.id, text)]
    if question.host in state.hosts:
        events.append(ev.HostTried(question.host, f"{question.id} was answered"))
    back = _back(state, question.host, f"{question.id} was answered: {question.host} is tried again")
    waits = waiting(state, question.host)
    goes = "waits for it and continues" if len(waits) == 1 else "wait for it and continue"
    then = f"; {counted(len(waits), 'task')} {goes} when it answers"
    said = f"{question.id} is answered; {question.host} is tried now{then if waits else ''}"
    return Effect(said, (*events, *back))


# --- how events change it ----------------------------------------------------------------------------------------


@applies(ev.HostAway)
def _away(state: RunState, event: ev.HostAway, at: str) -> None:
    old = state.hosts.get(event.host)
    if old is None:
        state.hosts[event.host] = HostTrouble(event.kind, event.why, at, (event.way,), event.tries, event.next_at, at)
        return
    ways = tuple(dict.fromkeys((*old.ways, event.way)))
    known = replace(old, ways=ways, tries=event.tries, next_at=event.next_at)
    if event.way == old.ways[0]:
        # Two ways report it in different words: one of them is enough.
        known = replace(known, kind=event.kind, why=event.why)
    state.hosts[event.host] = known


@applies(ev.HostAwaited)
def _awaited(state: RunState, event: ev.HostAwaited, _at: str) -> None:
    old = state.hosts[event.host]
    state.hosts[event.host] = replace(old, waiting=tuple(dict.fromkeys((*old.waiting, event.task))))


@applies(ev.HostTried)
def _tried(state: RunState, event: ev.HostTried, at: str) -> None:
    state.hosts[event.host] = replace(state.hosts[event.host], next_at=0.0, patient_since=at)


@applies(ev.HostBack)
def _is_back(state: RunState, event: ev.HostBack, at: str) -> None:
    old = state.hosts[event.host]
    ways = tuple(way for way in old.ways if way != event.way)
    if ways:
        state.hosts[event.host] = replace(old, ways=ways)
        return
    del state.hosts[event.host]
    for name in old.waiting:
        if name in state.tasks:
            state.tasks[name] = _uncounted(state.tasks[name], old.since, at)


def _uncounted(task: TaskState, since: str, at: str) -> TaskState:
    """The time in which CI could not be followed does not count against its limit."""
    now = task.delivery
    if now is None or not now.pushed_at:
        return task
    lost = seconds_between(max(since, now.pushed_at), at)
    return replace(task, delivery=replace(now, pushed_at=stamp(unix_time(now.pushed_at) + lost)))


def try_all(state: RunState) -> None:
    """A new lead tries each of them immediately."""
    for host, trouble in state.hosts.items():
        state.hosts[host] = replace(trouble, next_at=0.0)


HOST_EVENTS = applied_in(__name__)


def host_misfit(state: RunState, event: Any) -> str:
    """Why this does not fit the known hosts; empty if it does."""
    if isinstance(event, ev.HostAway):
        return "" if event.kind in (AWAY, DENIED) else f"unknown kind of trouble {event.kind!r}"
    known = state.hosts.get(event.host)
    if known is None:
        return f"nothing is wrong with {event.host}"
    if isinstance(event, ev.HostAwaited) and event.task not in state.tasks:
        return "no such task"
    return (
        f"it was not tried over {event.way}" if isinstance(event, ev.HostBack) and event.way not in known.ways else ""
    )


def is_patience_over(trouble: HostTrouble, now: float, limit_sec: float) -> bool:
    return now - unix_time(trouble.patient_since) >= limit_sec
