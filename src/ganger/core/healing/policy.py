"""Progressive batch healing as a policy: whether a window's failures are healed, retried, escalated or end the run.

A round is one call of the healer for one window's failures. Failures that share a signature form one cluster; when a
window failed too much, one canary of each cluster runs first and the others wait until it has passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.failures.classes import CLASSES, known_class
from ganger.core.failures.retries import attempts_left, end_of, may_retry_class
from ganger.core.model.records import HealRound, Window
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.money.budgets import run_refusal
from ganger.core.state.indexes import is_delivering
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus

Failing = Mapping[str, str]

# The later a failure, the narrower it is: the answer is readable, the change lands, builds, passes, runs.
_ROAD = (
    (FailureClass.CONTRACT_ERROR, FailureClass.OUTPUT_FORMAT, FailureClass.WEAK_CONTRACT, FailureClass.TIMEOUT),
    (FailureClass.PROMPT_GAP, FailureClass.MISSING_PATHS, FailureClass.NO_CHANGE, FailureClass.POLICY_VIOLATION),
    (FailureClass.BUILD_ERROR,),
    (FailureClass.TEST_ERROR,),
    (FailureClass.SMOKE_ERROR,),
)
_PLACE = {cls.value: place for place, group in enumerate(_ROAD) for cls in group}


@dataclass(frozen=True, slots=True)
class HealVerdict:
    """What follows a window: every task that needs a decision is named once."""

    heal: tuple[str, ...] = ()
    isolate: bool = False
    requeue: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    promote: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()
    escalate: tuple[tuple[str, str], ...] = ()
    abandon: str = ""


def healing_on(state: RunState) -> bool:
    """Whether a healer may be called at all."""
    policy = state.policy
    return (
        bool(state.healing.healer)
        and policy.heal_schedule is not HealSchedule.OFF
        and policy.max_heal_rounds_per_window > 0
        and policy.max_total_heal_rounds > 0
    )


def is_healable(task: TaskState) -> bool:
    cls = known_class(task.failure.failure_class)
    return cls is not None and CLASSES[cls].healable


def may_be_healed(state: RunState, name: str) -> bool:
    """A failure that prompts or context can fix, of a task that may run at least one more time."""
    task, spec = state.tasks[name], state.specs[name]
    if task.status is not TaskStatus.FAILED or task.final or not is_healable(task):
        return False
    if not may_retry_class(spec, task.failure.failure_class or ""):
        return False
    return spec.max_attempts is None or task.counters.worker_attempts < spec.max_attempts


def larger(size: int) -> int:
    """The next Fibonacci number above `size`."""
    a, b = 1, 2
    while a <= size:
        a, b = b, a + b
    return a


def smaller(size: int) -> int:
    """The next Fibonacci number below `size`; 1 stays 1."""
    a, b = 1, 2
    while b < size:
        a, b = b, a + b
    return a


def passed(task: TaskState) -> bool:
    """Whether its window finds no fault with it: what waits to be merged is verified."""
    return task.status is TaskStatus.DONE or task.work.in_merge_queue or is_delivering(task)


def failure_rate(state: RunState, tasks: Sequence[str]) -> float:
    """Healable failures over the attempted tasks without the blocked and non-healable ones (T11)."""
    healable = done = 0
    for name in tasks:
        task = state.tasks[name]
        done += passed(task)
        healable += task.status in (TaskStatus.FAILED, TaskStatus.ESCALATED) and is_healable(task)
    return healable / (done + healable) if healable else 0.0


def rounds_of(state: RunState, lineage: int) -> int:
    return sum(1 for round_ in state.healing.rounds if round_.lineage == lineage)


def may_heal_again(state: RunState, lineage: int) -> bool:
    """Whether the window's, the run's and the money budgets allow another round."""
    policy = state.policy
    return (
        rounds_of(state, lineage) < policy.max_heal_rounds_per_window
        and len(state.healing.rounds) < policy.max_total_heal_rounds
        and not run_refusal(state, state.log.last_at)
    )


def clusters(failing: Failing) -> list[tuple[str, tuple[str, ...]]]:
    """Tasks by signature, the largest cluster first; tasks keep their order."""
    grouped: dict[str, list[str]] = {}
    for name, signature in failing.items():
        grouped.setdefault(signature, []).append(name)
    found = [(signature, tuple(names)) for signature, names in grouped.items()]
    return sorted(found, key=lambda pair: -len(pair[1]))


def converging(before: Failing, after: Failing) -> str:
    """Which sign of progress a heal round shows (T22); empty when there is none."""
    if len(after) < len(before):
        return "fewer tasks fail"
    if _repeated(after) < _repeated(before):
        return "fewer tasks share a failure"
    if after and _narrowness(after.values()) > _narrowness(before.values()):
        return "the failure became narrower"
    return ""


def _repeated(failing: Failing) -> int:
    return sum(len(names) for _, names in clusters(failing) if len(names) > 1)


def _narrowness(signatures: Iterable[str]) -> int:
    return min((_PLACE.get(s.partition(":")[0], 0) for s in signatures), default=len(_ROAD))


def failing_with_held(state: RunState, names: Iterable[str]) -> dict[str, str]:
    """Failing tasks and those held behind them, with their signatures."""
    found: dict[str, str] = {}
    for name in names:
        for each in (name, *state.index.held.get(name, ())):
            found[each] = state.tasks[each].failure.signature or ""
    return found


# --- after a window ----------------------------------------------------------------------------------------------


def after_window(state: RunState, window: Window) -> HealVerdict:
    """Judges every task of a window that has settled."""
    failed = [t for t in window.tasks if state.tasks[t].status is TaskStatus.FAILED and not state.tasks[t].final]
    release, promote, behind = _held_behind(state, window)
    if not healing_on(state):
        # This canary will not be healed again, so the tasks behind it no longer wait for it.
        failed += [each for t in window.tasks if not passed(state.tasks[t]) for each in state.index.held.get(t, ())]
        again = tuple(t for t in failed if may_run_again(state, t))
        return HealVerdict(requeue=again, give_up=_without(failed, again), release=release)
    sick = [t for t in failed if may_be_healed(state, t)]
    rest = _without(failed, sick)
    again = tuple(t for t in rest if may_run_again(state, t))
    verdict = HealVerdict(
        requeue=again, release=release, promote=promote, give_up=_without(rest, again), escalate=tuple(behind)
    )
    return _with_healing(state, window, sick, verdict) if sick else verdict


def _with_healing(state: RunState, window: Window, sick: list[str], so_far: HealVerdict) -> HealVerdict:
    policy = state.policy
    stubborn = [t for t in sick if state.tasks[t].counters.repeats >= policy.signature_repeat_limit]
    curable = _without(sick, stubborn)
    reason = _hopeless(state, window, sick, stubborn)
    escalate = [*so_far.escalate]
    for name in stubborn:
        rounds = state.tasks[name].counters.healer_attempts
        escalate.append((name, f"the same failure came back {state.tasks[name].counters.repeats} times after healing"))
        told = f"its canary {name} still fails after {rounds} heal rounds; it was not run again"
        escalate += [(held, told) for held in state.index.held.get(name, ())]
    if reason or not curable:
        return _replace(so_far, escalate=escalate, give_up=(*so_far.give_up, *_all(state, curable)), abandon=reason)
    if may_heal_again(state, window.lineage):
        held = any(name in state.index.held for name in curable)
        isolate = held or failure_rate(state, window.tasks) > policy.failure_threshold
        return _replace(so_far, escalate=escalate, heal=tuple(_all(state, curable)), isolate=isolate)
    again = [t for t in curable if may_run_again(state, t) and not state.tasks[t].counters.healer_attempts]
    left = _all(state, _without(curable, again))
    return _replace(
        so_far, escalate=escalate, requeue=(*so_far.requeue, *again), give_up=(*so_far.give_up, *left), abandon=reason
    )


def _replace(verdict: HealVerdict, **changes: object) -> HealVerdict:
    values = {name: getattr(verdict, name) for name in HealVerdict.__slots__} | changes
    values["escalate"] = tuple(values["escalate"])
    return HealVerdict(**values)


def _all(state: RunState, names: Iterable[str]) -> list[str]:
    """These tasks and all tasks held behind them."""
    return list(dict.fromkeys(each for name in names for each in (name, *state.index.held.get(name, ()))))


def _hopeless(state: RunState, window: Window, sick: list[str], stubborn: list[str]) -> str:
    """Why another round would only repeat the same failures; empty while healing may still help."""
    for signature, names in clusters({name: _signature(state, name) for name in stubborn}):
        together = len(_all(state, names))
        if together > 1:
            rounds = rounds_of(state, window.lineage)
            return (
                f"healing does not converge: {together} tasks fail with {signature!r}, "
                f"unchanged after {rounds} heal rounds"
            )
    # A task that shares a coarse failure with another proves nothing; a window in which nothing works any more does.
    beaten = {} if any(passed(state.tasks[t]) for t in window.tasks) else _defeated(state)
    for name in _without(sick, stubborn):
        known = beaten.get(_signature(state, name))
        if known is not None and not state.tasks[name].counters.healer_attempts:
            return (
                f"healing does not converge: {name} fails with {_signature(state, name)!r}, "
                f"which healing could not fix in {known}"
            )
    if len(state.healing.rounds) >= state.policy.max_total_heal_rounds and sick and not _last_helped(state, sick):
        return (
            f"the total healing budget of {state.policy.max_total_heal_rounds} rounds is used up without improvement; "
            f"still failing: {_named(state, sick)}"
        )
    return ""


def _last_helped(state: RunState, sick: list[str]) -> bool:
    last = state.healing.rounds[-1]
    before = dict(zip(last.failed, last.signatures, strict=True))
    after = {name: signature for name, signature in failing_with_held(state, sick).items() if name in before}
    return bool(converging(before, after))


def _defeated(state: RunState) -> dict[str, str]:
    """Signatures that persist after all allowed healing, and a task that escalated with each."""
    return {
        state.tasks[name].failure.signature or "": name
        for round_ in state.healing.rounds
        for name in round_.failed
        if name in state.tasks
        and state.tasks[name].status is TaskStatus.ESCALATED
        and state.tasks[name].counters.repeats >= state.policy.signature_repeat_limit
    }


def _held_behind(state: RunState, window: Window) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, str]]]:
    """What happens to tasks held behind a canary of this window that will not be healed again."""
    release: list[str] = []
    promote: list[str] = []
    escalate: list[tuple[str, str]] = []
    for name in window.tasks:
        held = state.index.held.get(name)
        if not held:
            continue
        task = state.tasks[name]
        if passed(task):
            release += held
        elif task.status is TaskStatus.ESCALATED or (task.status is TaskStatus.FAILED and task.final):
            escalate += [(each, f"its canary {name} ended {task.status.value}; it was not run again") for each in held]
        elif not may_be_healed(state, name):
            promote.append(name)
    return tuple(release), tuple(promote), escalate


def _signature(state: RunState, name: str) -> str:
    return state.tasks[name].failure.signature or ""


def _named(state: RunState, names: Sequence[str], most: int = 5) -> str:
    shown = [f"{name} ({_signature(state, name)})" for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")


def _without(names: Iterable[str], out: Iterable[str]) -> tuple[str, ...]:
    gone = frozenset(out)
    return tuple(name for name in names if name not in gone)


def may_run_again(state: RunState, name: str) -> bool:
    """A failed task with attempts left and a class that is retried."""
    task, spec = state.tasks[name], state.specs[name]
    if task.status is not TaskStatus.FAILED or not may_retry_class(spec, task.failure.failure_class or ""):
        return False
    return attempts_left(spec, task, state.policy) > 0


def given_up(state: RunState, name: str, detail: str) -> ev.TaskSettled:
    """The end of a task for which no retry is left."""
    task = state.tasks[name]
    ended = end_of(task.failure.failure_class, task.failure.signature, state.policy, healing=healing_on(state))
    return ev.TaskSettled(name, ended[0], detail, ended[1])


# --- after the healer --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cure:
    """What a checked healer's decision leads to: `reset` may run again, `escalate` may not."""

    reset: tuple[str, ...] = ()
    escalate: tuple[tuple[str, str], ...] = ()
    touched: frozenset[str] = frozenset()
    next_epoch: bool = False
    shrink: bool = False


def shrunk_size(state: RunState, round_: HealRound, cure: Cure) -> int:
    """The window size from now on if the healer asks for a smaller one; 0 if it does not. A window that failed too
    much has shrunk already. Only `auto` has sizes that change; under any schedule the retry itself is smaller."""
    if not cure.shrink:
        return 0
    return state.windows.batch_size if round_.isolate else smaller(state.windows.batch_size)


def after_round(state: RunState, round_: HealRound, cure: Cure) -> tuple[tuple[str, ...], list[ev.Event]]:
    """The tasks of the retry window, and what happens to every task of the round."""
    failed = [name for name in round_.failed if state.tasks[name].status is TaskStatus.FAILED]
    events: list[ev.Event] = []
    handed_on = dict(cure.escalate)
    events += [ev.TaskSettled(name, TaskStatus.ESCALATED, handed_on[name]) for name in failed if name in handed_on]
    left = [name for name in failed if name not in handed_on]
    whys = {name: why for name in left if (why := _not_again(state, name, cure))}
    again = [name for name in left if name not in whys]
    events += [given_up(state, name, f"{state.tasks[name].detail} ({why})") for name, why in whys.items()]
    retry, events = _isolated(state, again, cure, events) if round_.isolate else _spread(again, cure, events)
    return retry[: smaller(len(round_.tasks)) if cure.shrink else None], events


def _not_again(state: RunState, name: str, cure: Cure) -> str:
    """Why a task of the round does not run again; empty when it does."""
    if name not in cure.reset:
        return "the healer does not reset it"
    granted = name in cure.touched or attempts_left(state.specs[name], state.tasks[name], state.policy) > 0
    return "" if granted else "no patch touches it, and its attempts are used up"


def after_nothing(
    state: RunState, round_: HealRound, escalate: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[ev.Event]]:
    """A round without a single patch: the tasks to heal again, those of a retry window, and the events."""
    failed = [name for name in round_.failed if state.tasks[name].status is TaskStatus.FAILED]
    events: list[ev.Event] = [
        ev.TaskSettled(name, TaskStatus.ESCALATED, escalate[name]) for name in failed if name in escalate
    ]
    failed = [name for name in failed if name not in escalate]
    if failed and may_heal_again(state, round_.lineage):
        return tuple(failed), (), events
    again = [name for name in failed if may_run_again(state, name) and state.tasks[name].waits_for_canary not in failed]
    if round_.isolate:
        retry, events = _isolated(state, again, Cure(tuple(again)), events)
    else:
        retry = tuple(again)
        events += [ev.TaskRequeued(name, f"{_NOTHING}; tried again as it is") for name in again]
    behind = {name for name in failed if state.tasks[name].waits_for_canary in again}
    events += [
        given_up(state, name, f"{state.tasks[name].detail} ({_NOTHING})")
        for name in failed
        if name not in again and name not in behind
    ]
    return (), retry, events


_NOTHING = "no heal round brought a patch"
Outcome = tuple[tuple[str, ...], list[ev.Event]]


def _spread(again: list[str], cure: Cure, events: list[ev.Event]) -> Outcome:
    events += [_requeue(name, cure, "healed; its window is tried again") for name in again]
    return (() if cure.next_epoch else tuple(again)), events


def _isolated(state: RunState, again: list[str], cure: Cure, events: list[ev.Event]) -> Outcome:
    canaries: list[str] = []
    for _, names in clusters({name: _shared_signature(state, name, again) for name in again}):
        canary = _canary(state, names)
        canaries.append(canary)
        events.append(_requeue(canary, cure, "runs first as the canary of its failure"))
        events += [ev.TaskHeld(name, canary) for name in names if name != canary]
    return tuple(canaries), events


def _shared_signature(state: RunState, name: str, again: Sequence[str]) -> str:
    """Tasks held behind a canary stay with it, even if the canary now fails differently."""
    canary = state.tasks[name].waits_for_canary
    return _signature(state, canary if canary in again else name)


def _canary(state: RunState, names: Sequence[str]) -> str:
    """The canary stays the task that has run most often for this cluster; else it is the first in plan order."""
    return min(names, key=lambda name: (name not in state.index.held, state.index.rank[name]))


def _requeue(name: str, cure: Cure, why: str) -> ev.TaskRequeued:
    return ev.TaskRequeued(name, why, granted=1 if name in cure.touched else 0)


def questions_for(events: Iterable[ev.Event]) -> list[ev.Event]:
    """A question for every task that these events hand to a person; the journal names it."""
    return [
        ev.QuestionAsked("", event.task, kind, event.detail)
        for event in events
        if isinstance(event, ev.TaskSettled) and (kind := _question_kind(event))
    ]


def _question_kind(event: ev.TaskSettled) -> str:
    if event.status is TaskStatus.ESCALATED:
        return "escalated"
    if event.status is not TaskStatus.BLOCKED:
        return ""
    return {BlockReason.PAUSED: "crash", BlockReason.PERMISSION_DENIED: "permission_denied"}.get(
        event.block_reason or BlockReason.EXTERNAL, ""
    )
