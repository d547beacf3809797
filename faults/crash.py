"""Kills a lead at a system call or another moment, judges, lets the next lead go on, judges again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from faults import judge as judges, keepers, leads, planted
from faults.branch import gap
from faults.judge import end_all, events_of, judge, judge_end, paid_twice
from faults.pool import Job, Verdict, scratch
from faults.runs import SHORT, crash_scenario
from faults.scenario import Place
from faults.strace import Point, Strike
from ganger.errors import EXIT_ESCALATED

# Of ten kills in git, so many at system calls of the lead, at moments of its threads, and before git itself is through.
_SHARES = (4, 5, 1)
_LATE = ("brk", "openat", "rename")
# Folders are made and removed in many small steps; those of one name after one event tell much the same.
_OF_A_KIND = 4
_THE_MOVE = "/head_intended"


@dataclass(frozen=True, slots=True)
class Blow:
    """Where one run is killed: the first lead at `points[0]`, the lead that takes over at `points[1]`, and so on.

    `keeper`: not the lead dies there but its keeper.
    """

    seed: int
    points: tuple[Point, ...]
    bug: str = ""
    keeper: bool = False
    mode: str = "direct"

    def words(self) -> str:
        more = (" --keeper" if self.keeper else "") + (f" --bug {self.bug}" if self.bug else "")
        points = "".join(f" --point {point}" for point in self.points)
        return f"crash --mode {self.mode} --seed {self.seed}{points}{more}"


def points_of(seed: int, bug: str = "", *, keeper: bool = False, mode: str = "direct") -> list[Point]:
    """Every system call of an undisturbed lead, or of its keeper."""
    leads.import_everything()
    with scratch() as folder:
        place = Place(folder / "trace", crash_scenario(seed, mode)).make()
        return keepers.trace(place) if keeper else leads.trace(place, before=planted.planter(bug))


def moments_of(seed: int, bug: str = "") -> tuple[list[Point], list[Point]]:
    """What the threads of an undisturbed lead in git do, and its git processes."""
    leads.import_everything()
    with scratch() as folder:
        place = Place(folder / "trace", crash_scenario(seed, "local-git")).make()
        return leads.trace_moments(place, before=planted.planter(bug))


@cache
def usual_starts(seed: int, mode: str = "direct") -> Counter[str]:
    """How often each agent runs when nobody disturbs this run."""
    scenario = crash_scenario(seed, mode)
    if seed >= SHORT:
        return Counter(job.name for job in scenario.jobs)
    leads.import_everything()
    with scratch() as folder:
        place = Place(folder / "usual", scenario).make()
        ended = leads.run_on(place)
        if problems := judge_end(place, ended, ended.shown):
            raise RuntimeError(f"the undisturbed run {seed} ({mode}) is not as it must be: {problems}")
        return judges.usual_starts(place)


def blows(
    count: int, seeds: int, *, double: int = 0, bug: str = "", keeper: bool = False, mode: str = "direct"
) -> list[Blow]:
    """`count` single kills spread evenly over the runs of all seeds, and `double` kills of the recovery too."""
    chosen: list[Blow] = []
    for seed in range(seeds if count or double else 0):
        kinds = kinds_of(seed, bug, keeper=keeper, mode=mode)
        share = (count + seeds - 1 - seed) // seeds
        for points, weight in kinds:
            chosen += [Blow(seed, (point,), bug, keeper, mode) for point in spread(points, round(share * weight))]
        chance = random.Random(seed)  # noqa: S311
        both = [points for points, _ in kinds for _ in range(2)][:4]
        for number in range((double + seeds - 1 - seed) // seeds):
            pair = (chance.choice(both[number % len(both)]), chance.choice(both[(number // 2) % len(both)]))
            chosen.append(Blow(seed, pair, bug, keeper, mode))
    return chosen


def kinds_of(seed: int, bug: str, *, keeper: bool = False, mode: str = "direct") -> list[tuple[list[Point], float]]:
    """The points of each kind, and what part of all kills is due to it."""
    calls = points_of(seed, bug, keeper=keeper, mode=mode)
    if keeper or mode == "direct":
        return [(calls, 1.0)]
    own, children = moments_of(seed, bug)
    late = [_as_late(point) for point in children if _could_be_late(point)]
    return [
        (points, share / sum(_SHARES)) for points, share in zip((calls, _balanced(own), late), _SHARES, strict=True)
    ]


def _balanced(points: Sequence[Point]) -> list[Point]:
    """A few of each kind; of those around a move of the branch, all."""
    kinds: dict[str, list[Point]] = {}
    for point in points:
        kinds.setdefault(point.call, []).append(point)
    chosen = [
        point
        for call, some in kinds.items()
        for point in (some if call.endswith(_THE_MOVE) and "git-" in call else spread(some, _OF_A_KIND))
    ]
    return sorted(chosen, key=lambda point: point.call.rpartition("/")[2])


def _could_be_late(point: Point) -> bool:
    word, _, call = point.call.partition("/")
    return word == "git-update-ref" and call.partition(".")[0] in _LATE


def _as_late(point: Point) -> Point:
    return replace(point, call=point.call.replace("git-", "late-", 1))


def spread(points: Sequence[Point], count: int) -> list[Point]:
    """So many of them, at even distances."""
    if not points or count < 1:
        return []
    places = sorted({round((n + 0.5) * len(points) / count) for n in range(count)})
    return [points[min(place, len(points) - 1)] for place in places]


def jobs(chosen: list[Blow]) -> list[Job]:
    return [partial(strike, blow) for blow in chosen]


def strike(blow: Blow) -> Verdict:
    """One run from its first lead to its end."""
    leads.import_everything()
    before = planted.planter(blow.bug)
    with scratch() as folder:
        place = Place(folder / "run", crash_scenario(blow.seed, blow.mode)).make()
        try:
            return _struck(place, blow, before)
        finally:
            end_all(place)


def _struck(place: Place, blow: Blow, before: Callable[[], None] | None) -> Verdict:
    wrong: list[str] = []
    shown: list[tuple[int, str]] = []
    gaps: list[str] = []
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
            gaps += [gap(place, events_of(place))] if place.scenario.in_git else []
            wrong += [f"after the kill at {point}: {problem}" for problem in judge(place, shown, ended=None)]
    ended = leads.run_on(place, before=before)
    shown += ended.shown
    wrong += [f"at the end: {problem}" for problem in judge_end(place, ended, shown)]
    if not wrong:
        wrong += paid_twice(place, usual_starts(blow.seed, blow.mode), keeper_died=blow.keeper)
    return Verdict(blow.words(), tuple(wrong), "killed" if killed else "not reached", tuple(gaps))
