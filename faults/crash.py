"""Kills a lead at a system call, judges, lets the next lead go on, judges again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from faults import keepers, leads, planted
from faults.judge import end_all, judge, judge_end, paid_twice, starts_by_task
from faults.pool import Job, Verdict, scratch
from faults.scenario import Place, crash_scenario
from faults.strace import Point, Strike
from ganger.errors import EXIT_ESCALATED


@dataclass(frozen=True, slots=True)
class Blow:
    """Where one run is killed: the first lead at `points[0]`, the lead that takes over at `points[1]`, and so on.

    `keeper`: not the lead dies there but its keeper.
    """

    seed: int
    points: tuple[Point, ...]
    bug: str = ""
    keeper: bool = False

    def words(self) -> str:
        more = (" --keeper" if self.keeper else "") + (f" --bug {self.bug}" if self.bug else "")
        return f"crash --seed {self.seed}" + "".join(f" --point {point}" for point in self.points) + more


def points_of(seed: int, bug: str = "", *, keeper: bool = False) -> list[Point]:
    """Every point of an undisturbed run of this scenario."""
    leads.import_everything()
    with scratch() as folder:
        if keeper:
            return keepers.trace(Place(folder / "trace", crash_scenario(seed)).make())
        return leads.trace(Place(folder / "trace", crash_scenario(seed)).make(), before=planted.planter(bug))


@cache
def usual_starts(seed: int) -> Counter[str]:
    """How often each agent runs when nobody disturbs this run."""
    leads.import_everything()
    with scratch() as folder:
        place = Place(folder / "usual", crash_scenario(seed)).make()
        ended = leads.run_on(place)
        if problems := judge_end(place, ended, ended.shown):
            raise RuntimeError(f"the undisturbed run {seed} is not as it must be: {problems}")
        return starts_by_task(place)


def blows(count: int, seeds: int, *, double: int = 0, bug: str = "", keeper: bool = False) -> list[Blow]:
    """`count` single kills spread evenly over the runs of all seeds, and `double` kills of the recovery too."""
    chosen: list[Blow] = []
    for seed in range(seeds):
        points = points_of(seed, bug, keeper=keeper)
        share = (count + seeds - 1 - seed) // seeds
        places = sorted({round((n + 0.5) * len(points) / share) for n in range(share)}) if share else []
        chosen += [Blow(seed, (points[min(place, len(points) - 1)],), bug, keeper) for place in places]
        chance = random.Random(seed)  # noqa: S311
        for _ in range((double + seeds - 1 - seed) // seeds):
            chosen.append(Blow(seed, (chance.choice(points), chance.choice(points)), bug, keeper))
    return chosen


def jobs(chosen: list[Blow]) -> list[Job]:
    return [partial(strike, blow) for blow in chosen]


def strike(blow: Blow) -> Verdict:
    """One run from its first lead to its end."""
    leads.import_everything()
    before = planted.planter(blow.bug)
    with scratch() as folder:
        place = Place(folder / "run", crash_scenario(blow.seed)).make()
        try:
            return _struck(place, blow, before)
        finally:
            end_all(place)


def _struck(place: Place, blow: Blow, before: Callable[[], None] | None) -> Verdict:
    wrong: list[str] = []
    shown: list[tuple[int, str]] = []
    killed = 0
    for point in blow.points:
        if blow.keeper:
            ended = keepers.run(place, Strike(point), before=before)
        else:
            ended = leads.run(place, strike=Strike(point), before=before)
        shown += ended.shown
        killed += ended.killed or (blow.keeper and keepers.died(place))
        if ended.code in (0, EXIT_ESCALATED):
            break
        if ended.killed:
            wrong += [f"after the kill at {point}: {problem}" for problem in judge(place, shown, ended=None)]
    ended = leads.run_on(place, before=before)
    shown += ended.shown
    wrong += [f"at the end: {problem}" for problem in judge_end(place, ended, shown)]
    wrong += paid_twice(place, usual_starts(blow.seed), keeper_died=blow.keeper)
    return Verdict(blow.words(), tuple(wrong), "killed" if killed else "not reached")
