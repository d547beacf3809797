"""Cuts the power under a run: the lead dies at a point, the disk forgets what was not synced, all else dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from faults import leads, planted
from faults.branch import gap
from faults.crash import kinds_of, spread, usual_starts
from faults.disks import Disk, NoDisk, disk
from faults.judge import end_all, events_of, judge, judge_end, paid_twice, processes
from faults.pool import Job, Verdict, scratch
from faults.runs import crash_scenario
from faults.scenario import Place
from faults.strace import Point, Strike
from ganger.errors import EXIT_ESCALATED


@dataclass(frozen=True, slots=True)
class Cut:
    """When the power goes: at a point, or after the lead has ended by itself."""

    seed: int
    point: Point | None
    bug: str = ""
    mode: str = "direct"

    def words(self) -> str:
        when = f" --point {self.point}" if self.point else " --at-end"
        bug = f" --bug {self.bug}" if self.bug else ""
        return f"powercut --mode {self.mode} --seed {self.seed}{when}{bug}"


def cuts(count: int, seeds: int, *, bug: str = "", mode: str = "direct") -> list[Cut]:
    """Spread evenly over the runs of all seeds; the last of each is after the end."""
    chosen: list[Cut] = []
    for seed in range(seeds if count else 0):
        share = max(1, (count + seeds - 1 - seed) // seeds)
        for points, weight in kinds_of(seed, bug, mode=mode):
            chosen += [Cut(seed, point, bug, mode) for point in spread(points, round((share - 1) * weight))]
        chosen.append(Cut(seed, None, bug, mode))
    return chosen


def jobs(chosen: list[Cut]) -> list[Job]:
    return [partial(cut_power, cut) for cut in chosen]


def why_not() -> str:
    """Why this machine cannot do it; empty when it can."""
    try:
        with scratch() as folder:
            (folder / "at").mkdir()
            with disk(folder / "image", folder / "at") as made:
                made.cut_power()
    except (NoDisk, OSError) as problem:
        return str(problem)
    return ""


def cut_power(cut: Cut) -> Verdict:
    leads.import_everything()
    before = planted.planter(cut.bug)
    with scratch() as folder, contextlib.ExitStack() as stack:
        mounted: list[Disk] = []
        place = Place(folder / "run", crash_scenario(cut.seed, cut.mode))
        place.make(at_root=lambda root: mounted.append(stack.enter_context(disk(folder / "image", root))))
        os.sync()
        try:
            return _cut(place, mounted[0], cut, before)
        finally:
            end_all(place)


def _cut(place: Place, at: Disk, cut: Cut, before: Callable[[], None] | None) -> Verdict:
    strike = Strike(cut.point) if cut.point else None
    struck = leads.run(place, strike=strike, before=before)
    at.cut_power()
    _everything_dies(place)
    at.unmount()
    at.mount()
    gaps = (gap(place, events_of(place)),) if place.scenario.in_git else ()
    whole = struck if struck.code in (0, EXIT_ESCALATED) else None
    wrong = [f"after the power cut: {problem}" for problem in judge(place, struck.shown, ended=whole)]
    ended = leads.run_on(place, before=before)
    wrong += [f"at the end: {problem}" for problem in judge_end(place, ended, [*struck.shown, *ended.shown])]
    if not wrong:
        wrong += paid_twice(place, usual_starts(cut.seed, cut.mode), keeper_died=True, power_cut=True)
    return Verdict(cut.words(), tuple(wrong), "after the end" if whole else "while running", gaps)


def _everything_dies(place: Place) -> None:
    while processes(place):
        end_all(place)
