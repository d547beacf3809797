"""The two-hour night in which an account's quota runs out twice: the world, and what must hold in it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime

from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.vocabulary import FailureClass, HealSchedule, RunStatus
from sim.life import Death
from sim.plan import Outage, Plan
from sim.programs import output_path

_MINUTE = 60.0
_SPREAD_SEC = 20.0
_MOST_STARTS_PER_SEC = 3
# Whoever is at work when the quota runs out learns of it within seconds; until then others may still start.
_NOTICED_WITHIN_SEC = 15.0
_LAST_MOMENT_SEC = 0.001


def quota_run(seed: int, most_tasks: int = 240) -> Plan:
    """Twenty workers of one account, more than two hundred tasks; the lead dies now and then, also while all rest."""
    chance = random.Random(f"night {seed}")  # noqa: S311
    names = [f"t{number:03}" for number in range(min(most_tasks, chance.randrange(205, 240)))]
    specs = tuple(
        TaskSpec(name, verify_profile="check", prompt_ref=f"prompts/{name}.md", timeout_sec=3600) for name in names
    )
    first = chance.uniform(10, 30) * _MINUTE
    second = first + chance.uniform(45, 60) * _MINUTE
    outages = tuple(Outage(start, start + chance.uniform(8, 20) * _MINUTE) for start in (first, second))
    schedule = chance.choice((HealSchedule.OFF, HealSchedule.BATCH, HealSchedule.EPOCH))
    policy = Policy(heal_schedule=schedule, batch_size=60, concurrency=20, quota_spread_sec=_SPREAD_SEC)
    resting = outages[0].start + chance.uniform(60, 300)
    return Plan(
        seed=seed,
        kind="quota",
        specs=specs,
        policy=policy,
        budget=Budget(),
        causes=(),
        needs={},
        work_sec=(120.0, 900.0),
        check_sec=(2.0, 20.0),
        tick_sec=5.0,
        deaths=(Death(resting),) if chance.random() < 0.5 else (),
        outages=outages,
        files={f"prompts/{name}.md": f"Write {output_path(name)}.\n" for name in names},
    )


def broken_quota_run(events: Sequence[ev.Recorded], outages: Sequence[Outage]) -> list[str]:
    """W07: everything is done, nothing starts while the quota is out, nothing pays for it, and starts are spread."""
    began = _seconds(events[0].at)
    wrong = [*_unfinished(events), *_paid(events), *_started_at_rest(events)]
    starts = [_seconds(row.at) - began for row in events if isinstance(row.event, ev.AttemptStarted)]
    for outage in outages:
        out = [at for at in starts if outage.start + _NOTICED_WITHIN_SEC < at < outage.end - _LAST_MOMENT_SEC]
        if out:
            wrong.append(f"quota: started {len(out)} attempts while the quota was out, the first at {out[0]:.1f} s")
        after = [at for at in starts if outage.end - _LAST_MOMENT_SEC <= at < outage.end + _SPREAD_SEC]
        most = max((_within_a_second(after, at) for at in after), default=0)
        if most > _MOST_STARTS_PER_SEC:
            wrong.append(f"quota: spread: {most} of {len(after)} attempts started within one second after the reset")
        if len(after) < 2:
            wrong.append(f"quota: back: {len(after)} attempts started within {_SPREAD_SEC:g} s of the reset")
    return wrong


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _within_a_second(moments: Iterable[float], at: float) -> int:
    return sum(1 for other in moments if at <= other < at + 1.0)


def _unfinished(events: Sequence[ev.Recorded]) -> list[str]:
    last = events[-1].event
    done = isinstance(last, ev.RunFinished) and last.run_status is RunStatus.COMPLETED
    return [] if done else ["quota: end: not everything is done"]


def _paid(events: Sequence[ev.Recorded]) -> list[str]:
    failed = [row.event for row in events if isinstance(row.event, ev.AttemptFailed)]
    wrong = [f for f in failed if f.failure_class == FailureClass.QUOTA.value and f.counter != "none"]
    found = [f"quota: counters: {f.task}/{f.attempt} lost one of its {f.counter} to the quota" for f in wrong]
    if not any(f.failure_class == FailureClass.QUOTA.value for f in failed):
        found.append("quota: nobody met the quota")
    return found


def _started_at_rest(events: Sequence[ev.Recorded]) -> list[str]:
    """By the run's own account of its accounts."""
    rests: dict[str, float] = {}
    for row in events:
        if isinstance(row.event, ev.AccountPaused):
            rests[row.event.account] = max(row.event.until, rests.get(row.event.account, 0.0))
        elif isinstance(row.event, ev.AttemptStarted):
            left = rests.get(row.event.account, 0.0) - _seconds(row.at)
            if left > _LAST_MOMENT_SEC:
                return [f"quota: started {row.event.task} although its account rests for another {left:.1f} s"]
    return []
