"""Bugs put into the engine on purpose: the simulator counts only because it finds each of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from checker.memory_store import MemoryStore
from ganger.core import events as ev
from ganger.core.failures import retries
from ganger.core.healing import policy as healing
from ganger.core.model.records import Budget, Window
from ganger.core.model.run_state import RunState
from ganger.core.scheduling import choosing, health, quota, windows
from ganger.core.scheduling.windows import Decision, Start, decide
from ganger.core.state.apply import apply
from ganger.core.vocabulary import FailureClass, HealSchedule, TaskStatus
from ganger.engine import lead
from ganger.engine.journal import Journal
from ganger.engine.workers import monitor
from ganger.local.run_folder import RunFolder
from ganger.ports.processes import Launcher
from ganger.ports.store import Entry
from ganger.ports.workspace import Workspace
from sim.life import Death
from sim.plan import Cause, HealerRates, Plan, Rates
from sim.play import play
from sim.quota_run import quota_run
from sim.worlds import plan_of

_AFTER_WINDOW, _LOOK = healing.after_window, health.look


@dataclass(frozen=True, slots=True)
class Planted:
    """A bug, and words of the rules one of which must catch it within so many seeds.

    `shape` makes the worlds rich in the fault the bug needs to show.
    """

    name: str
    caught_by: tuple[str, ...]
    plant: Callable[[], AbstractContextManager[object]]
    shape: Callable[[Plan], Plan] = lambda plan: plan
    seeds: int = 40


def caught(bug: Planted, place: Path, first: int = 1) -> tuple[int, str] | None:
    """The first seed that shows the bug and the rule it breaks; None when it is missed."""
    with bug.plant():
        for seed in range(first, first + bug.seeds):
            for wrong in play(bug.shape(plan_of(seed)), place / f"world-{seed}").wrong:
                if wrong.startswith(bug.caught_by):
                    return seed, wrong
    return None


async def _throws_away(
    journal: Journal, _folder: RunFolder, _workspace: Workspace, launcher: Launcher, **_how: object
) -> list[str]:
    """A recovery that ends what an earlier lead started and begins it again."""
    await launcher.end_others(())
    state = journal.state
    for name in sorted(state.index.running):
        task = state.tasks[name]
        why = "the lead died"
        await journal.report(name, task.attempt.token, ev.AttemptInterrupted(name, task.attempts, why))
    return []


def _starts_too_early(state: RunState, now: float) -> list[Decision]:
    """A scheduler that does not wait for dependencies."""
    decisions = decide(state, now)
    waiting = [
        name for name, unmet in state.index.unmet.items() if unmet and state.tasks[name].status is TaskStatus.PENDING
    ]
    if waiting and any(isinstance(one, Start) for one in decisions):
        decisions.append(Start(waiting[0]))
    return decisions


async def _acknowledges_first(self: Journal) -> None:
    """A journal that says "durable" before it is."""
    queue, self._queue, self._tick = self._queue, [], None
    for number, entry in enumerate(queue, self.state.log.last_seq + 1):
        apply(self.state, ev.Recorded(number, entry.at, entry.event))

    async def later() -> None:
        await asyncio.sleep(0.05)
        await self.store.append(queue)

    self._late = asyncio.get_running_loop().create_task(later())  # type: ignore[attr-defined]


def _appends_for_anybody(self: MemoryStore, batch: Sequence[Entry]) -> list[ev.Recorded]:
    """A store that checks neither fence nor token."""
    start = len(self.memory.events) + 1
    recorded = [ev.Recorded(number, entry.at, entry.event) for number, entry in enumerate(batch, start)]
    self.memory.events.extend(recorded)
    return recorded


def _releases_all(state: RunState, window: Window, verdict: healing.HealVerdict) -> healing.HealVerdict:
    """Tasks held behind a canary run again whatever became of it."""
    held = tuple(each for name in window.tasks for each in state.index.held.get(name, ()))
    kept = tuple(name for name in verdict.heal if name not in held)
    ended = tuple(pair for pair in verdict.escalate if pair[0] not in held)
    give_up = tuple(name for name in verdict.give_up if name not in held)
    return replace(verdict, heal=kept, release=held, promote=(), escalate=ended, give_up=give_up, abandon="")


def _judges_softly(state: RunState, window: Window) -> healing.HealVerdict:
    return _releases_all(state, window, _AFTER_WINDOW(state, window))


@contextlib.contextmanager
def _heals_for_ever() -> Iterator[None]:
    with patch.object(healing, "may_heal_again", lambda _state, _lineage: True):
        yield


def _with_freezes(plan: Plan) -> Plan:
    stopped = tuple(Death(after, 3, freezes=True) for after in (20.0, 60.0, 200.0))
    return replace(plan, deaths=stopped, work_sec=(1.0, 60.0), rates=Rates(), stops=(), asked=(), keeper_deaths=())


def _with_lies(plan: Plan) -> Plan:
    """Every task lacks the same sentence, and the healer always has something else to say."""
    cause = Cause("alpha", "RULE alpha: keep the convention alpha.", "shared_context", "context/a.md")
    policy = replace(
        plan.policy, heal_schedule=HealSchedule.BATCH, max_heal_rounds_per_window=2, max_total_heal_rounds=8
    )
    return replace(
        plan,
        policy=policy,
        budget=Budget(),
        causes=(cause,),
        needs={spec.id: (cause,) for spec in plan.specs},
        rates=Rates(),
        healer=HealerRates(lie=1.0),
        calm_at=1e9,
    )


def _back_at_once(state: RunState, account: str, now: float, _task: str = "") -> float:
    """An account whose tasks all come back at the same moment."""
    return quota.paused_until(state, account, now)


@contextlib.contextmanager
def _wakes_all_at_once() -> Iterator[None]:
    with patch.object(choosing, "paused_until", _back_at_once), patch.object(choosing, "next_place", lambda *_: 0.0):
        yield


@contextlib.contextmanager
def _forgets_the_rest() -> Iterator[None]:
    """A pause that holds only those who met the limit."""
    with patch.object(choosing, "paused_until", lambda *_: 0.0), patch.object(choosing, "next_place", lambda *_: 0.0):
        yield


def _ends_whoever_is_silent(policy: health.HealthPolicy, signs: health.Signs, watch: health.HealthWatch) -> health.Look:
    """A judge for whom silence is a stall, whatever else is seen."""
    return _LOOK(policy, replace(signs, cpu_at=0.0), watch)


def _with_long_work(plan: Plan) -> Plan:
    calm = replace(plan, work_sec=(1000.0, 1100.0), rates=Rates(), tick_sec=10.0, stops=(), asked=(), deaths=())
    return replace(calm, causes=(), needs={}, hopeless=frozenset(), budget=Budget(), keeper_deaths=(), store_faults=())


def _a_quota_run(plan: Plan) -> Plan:
    """Long enough for the first outage."""
    return quota_run(plan.seed, most_tasks=110)


PLANTED = (
    Planted("all wake at once", ("quota: spread",), _wakes_all_at_once, _a_quota_run, seeds=3),
    Planted("the pause is forgotten", ("quota: started",), _forgets_the_rest, _a_quota_run, seeds=3),
    Planted(
        "a quota burns attempts",
        ("quota: counters",),
        lambda: patch.dict(retries._PAID_BY, {FailureClass.QUOTA: "worker_attempts"}),
        _a_quota_run,
        seeds=3,
    ),
    Planted(
        "silence is a stall",
        ("ended at work",),
        lambda: patch.object(monitor, "look", _ends_whoever_is_silent),
        _with_long_work,
        seeds=5,
    ),
    Planted("recovery starts again", ("paid twice",), lambda: patch.object(lead, "recover", _throws_away)),
    Planted("endless healing", ("heal rounds", "replay"), _heals_for_ever),
    Planted("unmet dependency", ("dependencies", "replay"), lambda: patch.object(lead, "decide", _starts_too_early)),
    Planted(
        "acknowledged before append",
        ("unrecorded start",),
        lambda: patch.object(Journal, "_commit", _acknowledges_first),
    ),
    Planted(
        "no fence", ("stale lead",), lambda: patch.object(MemoryStore, "append", _appends_for_anybody), _with_freezes
    ),
    Planted("hold released", ("canary",), lambda: patch.object(windows, "after_window", _judges_softly), _with_lies),
)
