"""Compares a recorded run with today's core: wherever the engine decided something, what would it decide now?

The state always follows the record. After a first divergence the record follows another decision, so later
divergences only say that the two still differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused
from ganger.core import events as ev
from ganger.core.control.commands import SETTINGS, Refusal, read_setting
from ganger.core.failures.classes import Failure, known_class
from ganger.core.failures.retries import Then, after_failure
from ganger.core.healing.policy import healing_on
from ganger.core.model.records import Budget, Policy
from ganger.core.model.run_state import RunState
from ganger.core.names import healer_log
from ganger.core.scheduling.windows import (
    CloseWindow,
    Decision,
    Finish,
    MergeLevel,
    OpenWindow,
    Start,
    Wait,
    Wake,
    closing_events,
    decide,
)
from ganger.core.state.apply import apply
from ganger.core.state.apply_delivery import rules_of
from ganger.core.state.apply_healing import NO_ANSWER
from ganger.core.state.apply_worker import WORKER_EVENTS
from ganger.core.vocabulary import HealSchedule, TaskStatus

Amend = Callable[[Policy, Budget], tuple[Policy, Budget]]


@dataclass(frozen=True, slots=True)
class Divergence:
    """One place where today's core decides otherwise."""

    seq: int
    at: str
    about: str
    recorded: str
    today: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay found. `decisions` is how many were compared."""

    run_id: str
    events: int
    decisions: int
    divergences: tuple[Divergence, ...]


def replay(events: Iterable[ev.Recorded], amend: Amend | None = None) -> Replayed:
    """Feeds the events to today's core; `amend` replaces the recorded settings with others."""
    work = _Replay()
    rows = [replace(row, event=_amended(row.event, amend)) for row in events] if amend else list(events)
    place = 0
    while place < len(rows):
        size = len(_claims(rows, place)) or 1
        work.take(rows[place : place + size], rows[place + size].event if place + size < len(rows) else None)
        place += size
    return Replayed(work.state.run_id, len(rows), work.decisions, tuple(work.divergences))


def amendment(settings: Iterable[tuple[str, str]]) -> Amend:
    """Other values for settings of [policy] and [budget]; raises Refusal for an invalid one."""
    policy: dict[str, Any] = {}
    budget: dict[str, Any] = {}
    for key, text in settings:
        if key in ("heal_schedule", "policy.heal_schedule"):
            policy["heal_schedule"] = _schedule(text)
            continue
        if (key if "." in key else f"policy.{key}") not in SETTINGS:
            raise Refusal(f"{key} decides nothing that a replay can show; these do: {', '.join(SETTINGS)}")
        full, value = read_setting(key, text)
        section, _, name = full.partition(".")
        (policy if section == "policy" else budget)[name] = value
    return lambda before, spent: (replace(before, **policy), replace(spent, **budget))


def _schedule(text: str) -> HealSchedule:
    try:
        return HealSchedule(text)
    except ValueError:
        raise Refusal(f"policy.heal_schedule is one of {', '.join(HealSchedule)}, not {text!r}") from None


def _amended(event: ev.Event, amend: Amend) -> ev.Event:
    if isinstance(event, ev.RunStarted):
        return replace(event, policy=amend(event.policy, Budget())[0])
    if isinstance(event, ev.LeadStarted | ev.SettingsChanged):
        policy, budget = amend(event.policy, event.budget)
        return replace(event, policy=policy, budget=budget)
    return event


def _claims(rows: Sequence[ev.Recorded], place: int) -> list[ev.Recorded]:
    """The attempts that one decision started: recorded together, so at the same moment."""
    rest = (rows[index] for index in range(place, len(rows)))
    return list(takewhile(lambda row: _is_claim(row.event) and row.at == rows[place].at, rest))


def _is_claim(event: ev.Event) -> bool:
    """A task that a session asked for was given, not started: the session decides when to ask."""
    return isinstance(event, ev.AttemptStarted) and not event.worker


@dataclass(frozen=True, slots=True)
class _Move:
    """A decision in a form in which the recorded and today's can be compared."""

    kind: str
    what: tuple[object, ...] = ()

    @property
    def words(self) -> str:
        return _WORDS[self.kind](*self.what)


_WORDS: dict[str, Callable[..., str]] = {
    "wait": lambda: "nothing starts",
    "wake": lambda *tasks: f"{_listed(tasks)} wait no longer for quota",
    "start": lambda *tasks: f"start {_listed(tasks)}",
    "open": lambda tasks, retry_of: (
        f"open a window with {_listed(tasks)}" + (f", a retry of window {retry_of}" if retry_of else "")
    ),
    "close": lambda done, failed, blocked, rate, size: (
        f"close the window with {done} done, {failed} failed, {blocked} "
        f"blocked, failure rate {rate:g}; next size {size}"
    ),
    "heal": lambda *tasks: f"heal {_listed(tasks)}" if tasks else "heal nothing",
    "abandon": lambda: "give up healing",
    "finish": lambda status: f"end the run as {status}",
    "pay": lambda counter: f"{counter} is charged",
    "queue": lambda: "queue it again",
    "settle": lambda status, reason, final: (
        f"settle it {status}" + (f" ({reason})" if reason else "") + ("" if final else ", to be judged with its window")
    ),
    "apply": lambda what: what,
}


def _listed(names: Sequence[object], most: int = 8) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


_QUEUE = _Move("queue")
_NO_HEALING = _Move("heal")


def _decided(decisions: Sequence[Decision]) -> _Move:
    match decisions:
        case [Start(), *_]:
            return _Move("start", tuple(d.task for d in decisions if isinstance(d, Start)))
        case [OpenWindow(tasks=tasks, retry_of=retry_of)]:
            return _Move("open", (tasks, retry_of))
        case [CloseWindow() as close]:
            return _Move("close", (close.done, close.failed, close.blocked, close.failure_rate, close.next_size))
        case [Finish(run_status=status)]:
            return _Move("finish", (status.value,))
        case [Wake(tasks=tasks)]:
            return _Move("wake", tasks)
        case [Wait() | MergeLevel()] | []:
            return _Move("wait")
    raise AssertionError(decisions)


def _recorded(rows: Sequence[ev.Recorded]) -> _Move | None:
    """The decision an event carries out; None for events that only report something."""
    match rows[0].event:
        case ev.AttemptStarted(worker=""):
            return _Move("start", tuple(row.event.task for row in rows if isinstance(row.event, ev.AttemptStarted)))
        case ev.WindowOpened(tasks=tasks, retry_of=retry_of):
            return _Move("open", (tasks, retry_of))
        case ev.WindowClosed() as closed:
            return _Move("close", (closed.done, closed.failed, closed.blocked, closed.failure_rate, closed.next_size))
        case ev.RunFinished(run_status=status):
            return _Move("finish", (status.value,))
    return None


# After these events, nothing else can be decided than before them.
_INERT = (
    ev.AttemptLaunched,
    ev.AgentHeard,
    ev.AttemptExited,
    ev.ResultAccepted,
    ev.ResultRefused,
    ev.WritesIntended,
    ev.WritesApplied,
    ev.WritesRolledBack,
    ev.VerifyStarted,
    ev.VerifyFinished,
    ev.VerifyRecovered,
    ev.WorkspaceReady,
    ev.ChangeTaken,
    ev.WorkSaved,
    ev.GatesChecked,
    ev.FixedRestored,
    ev.RefsMoved,
    ev.GatesRestored,
    ev.ExpectedMissing,
    ev.HeadIntended,
    ev.HeadKept,
    ev.AttemptFailed,
    ev.QuestionAsked,
    ev.QuestionRaised,
    ev.CommandTaken,
    *WORKER_EVENTS,
)


@dataclass(slots=True)
class _Replay:
    state: RunState = field(default_factory=RunState)
    decisions: int = 0
    divergences: list[Divergence] = field(default_factory=list)
    # What would have been decided at each point since the last decision: a lead decides before it sees what is
    # recorded in the same commit.
    possible: list[_Move] = field(default_factory=list)
    changed: bool = True
    healing: _Move | None = None
    expected: dict[str, _Move] = field(default_factory=dict)

    def take(self, rows: Sequence[ev.Recorded], following: ev.Event | None) -> None:
        """One event, or the claims of one decision."""
        row = rows[0]
        made = _recorded(rows)
        if made is not None:
            self._decision(row, made, following)
        else:
            if self.changed and self.state.specs:
                self.possible.append(_decided(decide(self.state, _seconds(row.at))))
                self.changed = False
            self._consequence(row)
        for each in rows:
            self._apply(each)
        self.changed = self.changed or not isinstance(row.event, _INERT)

    def _decision(self, row: ev.Recorded, made: _Move, following: ev.Event | None) -> None:
        now = decide(self.state, _seconds(row.at)) if self.state.specs else []
        today = _decided(now)
        if self.healing not in (None, _NO_HEALING):
            self._compare(row, "healing", made, self.healing)
        elif made in self.possible or _is_beginning(made, today, following):
            self.decisions += 1
        else:
            self._compare(row, "the next step", made, today)
        self.possible, self.changed, self.healing = [], True, None
        if isinstance(row.event, ev.WindowClosed) and now and isinstance(now[0], CloseWindow):
            self._expect(now[0])

    def _expect(self, close: CloseWindow) -> None:
        verdict = close.verdict
        self.healing = _Move("abandon") if verdict.abandon else _Move("heal", verdict.heal)
        self.expected = {}
        for event in closing_events(self.state, close):
            if isinstance(event, ev.TaskRequeued | ev.TaskSettled):
                self.expected[event.task] = _ending(event)

    def _consequence(self, row: ev.Recorded) -> None:
        match row.event:
            case ev.LeadStarted():
                self.expected, self.healing = {}, None
            case ev.HealStarted(failed=failed):
                self._healing(row, _Move("heal", failed))
            case ev.HealAbandoned():
                self._healing(row, _Move("abandon"))
            case ev.AttemptFailed() as failed:
                self._failure(row, failed)
            case ev.TaskRequeued() | ev.TaskSettled() as event:
                self._outcome(row, event.task, _ending(event))

    def _healing(self, row: ev.Recorded, made: _Move) -> None:
        """Only the first step after a window is the policy's; what follows a round depends on the healer's answer."""
        if self.healing is not None:
            self._compare(row, "healing", made, self.healing)
            self.healing = None

    def _outcome(self, row: ev.Recorded, task: str, made: _Move) -> None:
        wanted = self.expected.pop(task, None)
        if wanted is not None:
            self._compare(row, task, made, wanted)

    def _failure(self, row: ev.Recorded, event: ev.AttemptFailed) -> None:
        """Which counter is charged, and what must follow for this task."""
        cls, task = known_class(event.failure_class), self.state.tasks.get(event.task)
        if cls is None or task is None:
            return
        failed = Failure(cls, event.signature, event.detail)
        spec, policy = self.state.specs[event.task], self.state.policy
        asked = [q for q in self.state.inbox.questions.values() if q.task == event.task and q.attempt == event.attempt]
        asks = any(question.answer is None for question in asked)
        fixes = rules_of(self.state, event.task).fixes
        chosen = after_failure(spec, task, policy, failed, healing=healing_on(self.state), asks=asks, fixes=fixes)
        self._compare(row, event.task, _Move("pay", (event.counter,)), _Move("pay", (chosen.counter,)))
        again = chosen.then in (Then.AGAIN_NOW, Then.AGAIN_AFTER)
        final = chosen.then is Then.SETTLE
        self.expected[event.task] = _QUEUE if again else _settled(chosen.status, chosen.block_reason, final=final)

    def _apply(self, row: ev.Recorded) -> None:
        before = len(self.state.log.refused)
        apply(self.state, row)
        if len(self.state.log.refused) > before:
            name = ev.type_name(row.event)
            problem = self.state.log.refused[-1].partition(": ")[2]
            self._compare(row, name, _Move("apply", ("take it",)), _Move("apply", (f"refuse it: {problem}",)))

    def _compare(self, row: ev.Recorded, about: str, made: _Move, today: _Move) -> None:
        self.decisions += 1
        if made != today:
            self.divergences.append(Divergence(row.seq, row.at, about, made.words, today.words))


def _ending(event: ev.TaskRequeued | ev.TaskSettled) -> _Move:
    if isinstance(event, ev.TaskRequeued):
        return _QUEUE
    return _settled(event.status, event.block_reason, final=event.final)


def _settled(status: TaskStatus, reason: object = None, *, final: bool = True) -> _Move:
    return _Move("settle", (status.value, reason, final or status is not TaskStatus.FAILED))


def _is_beginning(made: _Move, today: _Move, following: ev.Event | None) -> bool:
    """Whether this is today's decision, or the first part of one that is recorded in several parts."""
    if made == today:
        return True
    part = made.kind == today.kind == "start" and today.what[: len(made.what)] == made.what
    return part and isinstance(following, ev.AttemptStarted)


def _seconds(at: str) -> float:
    """A moment at which the decision was certainly due: recorded times have no fraction of a microsecond."""
    return datetime.fromisoformat(at).timestamp() + 1e-6 if at else 0.0


# --- answers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Log:
    """A log that a run has kept, and its task; a healer's has none. `tries` counts how often that healer was asked
    before."""

    agent: str
    path: str
    task: str = ""
    tries: int = 0


Extract = Callable[[Log], Parsed[Any] | Refused | None]
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Reread:
    """What reading the logs again found. `missing` are logs that no longer exist."""

    answers: int
    missing: tuple[str, ...]
    divergences: tuple[Divergence, ...]


def reread(events: Iterable[ev.Recorded], extract: Extract) -> Reread:
    """Reads every recorded answer again with today's parser; `extract` gives None if the log is gone."""
    logs: dict[_Key, Log] = {}
    answers, missing, found = 0, [], []
    for row in events:
        key, said = _answered(row.event)
        log = logs.get(key)
        answer = None if log is None else extract(log)
        if answer is not None and log is not None:
            answers += 1
            if _said(answer) != said:
                found.append(Divergence(row.seq, row.at, log.path, said, _said(answer)))
        elif log is not None:
            missing.append(log.path)
        _follow(logs, row.event)
    return Reread(answers, tuple(missing), tuple(found))


def _follow(logs: dict[_Key, Log], event: ev.Event) -> None:
    match event:
        case ev.AttemptStarted(task=task, attempt=number, agent=agent, log=path):
            logs[task, number] = Log(agent, path, task)
        case ev.HealStarted(round=number, agent=agent, log=path):
            logs["", number] = Log(agent, path)
        case ev.HealRefused(round=number) if ("", number) in logs:
            last = logs["", number]
            again = last.tries + 1
            logs["", number] = replace(last, path=healer_log(number, again), tries=again)


_NOTHING: _Key = ("", 0)


def _answered(event: ev.Event) -> tuple[_Key, str]:
    """Which answer an event records, and how it was understood."""
    match event:
        case ev.ResultAccepted(task=task, attempt=number, status=status, repaired=repaired, writes=writes):
            return (task, number), _accepted(status, writes, repaired=repaired)
        case ev.ResultRefused(task=task, attempt=number, code=code):
            return (task, number), f"refused: {code}"
        case ev.HealRefused(round=number, code=code) if code not in NO_ANSWER:
            return ("", number), f"refused: {code}"
        case ev.HealFinished(round=number, decision=decision, problem=""):
            return ("", number), decision
    return _NOTHING, ""


def _said(answer: Parsed[Any] | Refused) -> str:
    if isinstance(answer, Refused):
        return f"refused: {answer.code}"
    if isinstance(answer.value, HealDecision):
        return answer.value.decision
    return _accepted(answer.value.status, len(answer.value.writes or ()), repaired=answer.repaired)


def _accepted(status: str, writes: int, *, repaired: bool) -> str:
    return f"{status} with {writes} writes" + (", after a repair" if repaired else "")
