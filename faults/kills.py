"""Kills the lead, the keeper or both at random moments of a fleet's run, again and again, until every task is done."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from faults import leads, planted
from faults.judge import end_all, judge, judge_end, keepers, paid_twice
from faults.leads import Lead
from faults.pool import Job, Verdict, scratch
from faults.runs import fleet_scenario
from faults.scenario import Place

WHOM = ("lead", "keeper", "both")
_MOST_PAUSE_SEC = 0.6
_MOST_LEADS = 60


@dataclass(frozen=True, slots=True)
class Spree:
    """One fleet, and how it is killed: `kills` times at moments drawn from the seed."""

    seed: int
    whom: str
    kills: int = 10
    tasks: int = 40
    concurrency: int = 4
    agent_sec: float = 0.2
    bug: str = ""
    mode: str = "direct"

    def words(self) -> str:
        size = (
            f"--kills {self.kills} --tasks {self.tasks} --concurrency {self.concurrency} --agent-sec {self.agent_sec:g}"
        )
        bug = f" --bug {self.bug}" if self.bug else ""
        return f"kills --mode {self.mode} --whom {self.whom} --seed {self.seed} {size}{bug}"


def jobs(sprees: list[Spree]) -> list[Job]:
    return [partial(carry_on, spree) for spree in sprees]


def carry_on(spree: Spree) -> Verdict:
    """As many fleets as it takes for this number of kills; the first one that is wrong is told."""
    leads.import_everything()
    chance = random.Random(f"{spree.seed} {spree.whom}")  # noqa: S311
    done = 0
    while done < spree.kills:
        with scratch() as folder:
            scenario = fleet_scenario(spree.tasks, spree.concurrency, spree.agent_sec, spree.mode)
            place = Place(folder / "run", scenario).make()
            try:
                fleet = _Fleet(place, spree, chance, planted.planter(spree.bug))
                wrong = fleet.run(spree.kills - done)
            finally:
                end_all(place)
        done += fleet.killed
        if wrong:
            return Verdict(spree.words(), tuple(wrong), f"killed {done} times")
    return Verdict(spree.words(), (), f"killed {done} times")


class _Fleet:
    """One run under fire."""

    def __init__(self, place: Place, spree: Spree, chance: random.Random, before: Callable[[], None] | None) -> None:
        self.place, self.spree, self.chance, self.before = place, spree, chance, before
        self.killed = 0
        self.shown: list[tuple[int, str]] = []
        self.wrong: list[str] = []

    def run(self, kills: int) -> list[str]:
        lead: Lead | None = None
        for _ in range(_MOST_LEADS + kills):
            lead = lead or Lead(self.place, before=self.before)
            if self.killed < kills and self._lives_for(lead, self.chance.uniform(0, _MOST_PAUSE_SEC)):
                lead = self._kill(lead)
                continue
            ended = lead.wait()
            self.shown += ended.shown
            if ended.code == 0 or self.spree.whom == "lead":
                usual = {job.name: 1 for job in self.place.scenario.jobs}
                self.wrong += judge_end(self.place, ended, self.shown)
                self.wrong += paid_twice(self.place, usual, keeper_died=self.spree.whom != "lead")
                return self.wrong
            # A lead that lost its keeper may say so and leave; the next one goes on.
            lead = None
        return [*self.wrong, "outcome: the run came to no end"]

    def _lives_for(self, lead: Lead, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if lead.poll() is not None:
                return False
            time.sleep(0.002)
        return lead.poll() is None

    def _kill(self, lead: Lead) -> Lead | None:
        """Who is meant dies at once; the lead that is left, if any."""
        order = [self.spree.whom] if self.spree.whom != "both" else self.chance.sample(["lead", "keeper"], 2)
        for whom in order:
            if whom == "lead":
                lead.kill()
            else:
                for pid in keepers(self.place):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        self.killed += 1
        if "lead" not in order:
            return lead
        self.shown += lead.wait().shown
        problems = judge(self.place, self.shown, ended=None)
        self.wrong += [f"after kill {self.killed}: {problem}" for problem in problems]
        return None
