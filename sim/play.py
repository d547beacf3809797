"""One world from its first lead to its end: leads die and are replaced, faults stop, the run must come to an end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from checker.invariants import Seen, broken
from checker.memory_store import Memory, MemoryStore
from ganger.core import events as ev
from ganger.core.times import stamp
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.engine.lead import Lead
from ganger.errors import GangerError
from ganger.local.run_folder import RunFolder
from ganger.ports.store import LEASE_SEC
from sim.assemble import House
from sim.borrowed import Hands, borrowed
from sim.clock import SimClock
from sim.keeper import Keeper
from sim.life import Frozen, Killed, Life
from sim.loop import SimLoop, Stuck
from sim.plan import Asked, Plan
from sim.programs import GOOD, Programs, output_path
from sim.quota_run import broken_quota_run
from sim.store import Disk
from sim.witness import Witness
from sim.workspace import Project

_MOST_LEADS = 40
_QUIET_SEC = 8 * 3600.0
_LONGEST_SEC = 30 * 24 * 3600.0
_LOOK_SEC = 1800.0
_THAW_STEPS = 400


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one seed. `wrong` is empty when every rule held."""

    seed: int
    kind: str
    wrong: tuple[str, ...]
    events: tuple[ev.Recorded, ...]
    status: str
    simulated_sec: float
    workers: int
    leads: int
    happened: Mapping[str, int]

    @property
    def run_hours(self) -> float:
        """Hours of a run with twenty workers; one with fewer counts in proportion."""
        return self.simulated_sec / 3600 * min(self.workers, 20) / 20


def play(plan: Plan, place: Path) -> Outcome:
    """Plays one world in a folder of its own, which is removed afterwards."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        game = Game(plan, place)
        with borrowed(game.hands, plan):
            return game.run()
    finally:
        shutil.rmtree(place, ignore_errors=True)


class Game:
    """Everything around the leads of one world."""

    def __init__(self, plan: Plan, place: Path) -> None:
        self.plan, self.hands, self.clock = plan, Hands(plan.seed), SimClock()
        root = place / "project"
        root.mkdir()
        project = Project(root, dict(plan.files))
        self.witness = Witness(self.clock.monotonic)
        programs = Programs(plan, project, self.clock)
        keeper = Keeper(self.clock, programs, watch_start=self.witness.started, watch_end=self.witness.ended)
        folder = RunFolder(place / "run")
        folder.make()
        disk = Disk({fault.append: fault for fault in plan.store_faults})
        self.house = House(plan, folder, project, self.clock, keeper, Memory(), disk, self.witness)
        self.leads = 0
        self.ended = False
        self.happened: Counter[str] = Counter()
        self._lead: Lead | None = None
        self._loop: SimLoop | None = None
        self._frozen: SimLoop | None = None
        self._last_error = ""
        self._taken_up_again = False
        self._dead: set[int] = set()
        self._plan_happenings()

    # --- what happens around the lead -----------------------------------------------------------------------------

    def _plan_happenings(self) -> None:
        plan, at = self.plan, self.clock.at
        for when in plan.keeper_deaths:
            at(when, self.house.keeper.die)
        for when, step in plan.clock_steps:
            at(when, partial(self._step_clock, step))
        for when in plan.stops:
            at(when, self._stop)
        for asked in plan.asked:
            at(asked.at, partial(self._send, asked))
        at(_LOOK_SEC, self._look)

    def _step_clock(self, step: float) -> None:
        self.clock.skew += step

    def _stop(self) -> None:
        if self._lead is not None and self._loop is not None:
            self._loop.call_soon(self._lead.stop, "SIGTERM")

    def _send(self, asked: Asked) -> None:
        data = dict(asked.data)
        if asked.kind == "answer":
            data["question"] = self._open_question()
        MemoryStore(self.house.memory).send(stamp(self.clock.now()), asked.kind, data)

    def _open_question(self) -> str:
        events = [entry.event for entry in self.witness.events]
        answered = {event.question for event in events if isinstance(event, ev.QuestionAnswered)}
        asked = [event.question for event in events if isinstance(event, ev.QuestionAsked)]
        return next((one for one in asked if one not in answered), "q-1")

    def _look(self) -> None:
        """Liveness: something is recorded now and then, and the run does not go on for ever.

        A person comes by, too: a run that was paused is not left so.
        """
        if self.ended:
            return
        if self.clock.elapsed > self.plan.calm_at + _LONGEST_SEC:
            raise Stuck("the run is still going on long after the last fault")
        if self._lead is not None and self._lead.state.lead.paused and self.clock.elapsed > self.plan.calm_at:
            self._send(Asked(0.0, "resume"))
        waits = _QUIET_SEC + sum(abs(step) for _, step in self.plan.clock_steps)
        quiet = self.clock.elapsed - self.witness.last_commit_at
        if self._lead is not None and quiet > waits and not self._lead.state.lead.paused:
            raise Stuck(f"nothing was recorded for {quiet / 3600:.1f} h")
        self.clock.at(self.clock.elapsed + _LOOK_SEC, self._look)

    # --- leads ----------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        deaths = list(self.plan.deaths)
        while not self.ended and self.leads < _MOST_LEADS:
            self.leads += 1
            life = Life(self.leads, deaths.pop(0) if deaths else None, self.clock.monotonic)
            self._one_lead(life)
            self._pass_time()
        if self._frozen is not None:
            self._frozen.bury()
        if not self.ended:
            self.witness.say(f"no end after {self.leads} leads; the last one: {self._last_error or 'no error'}")
        return self._outcome()

    def _one_lead(self, life: Life) -> None:
        loop = self._loop = SimLoop(self.clock, life, self.hands)
        finished = False
        try:
            self._begin(life)
            loop.run_until_complete(self._lead_on(life))
            finished = True
            self._dead.add(life.pid)
        except Frozen:
            self.happened["leads stopped"] += 1
            self._freeze(loop)
        except Killed:
            self.happened["leads killed"] += 1
            self._dead.add(life.pid)
        except GangerError as problem:
            self._last_error = f"{problem.code}: {problem.message}"
            self._dead.add(life.pid)
        except Exception as problem:  # noqa: BLE001
            self.witness.say(f"{type(problem).__name__}: {problem}")
            self.ended = True
        if loop is not self._frozen:
            loop.bury()
        self._judge(finished=finished)
        self._lead = self._loop = None

    async def _lead_on(self, life: Life) -> None:
        self._lead = await self.house.lead(life, self._dead)
        await self._lead.run()

    def _begin(self, life: Life) -> None:
        """A stopped process cannot be proved dead, so its lease must run out first."""
        if self._frozen is not None:
            self.clock.advance(self.clock.elapsed + LEASE_SEC + 1)
        self.hands.life = life

    def _freeze(self, loop: SimLoop) -> None:
        if self._frozen is not None:
            self._frozen.bury()
        self._frozen = loop
        self.clock.at(self.clock.elapsed + LEASE_SEC + self.plan.thaw_sec, partial(self._thaw, loop))

    def _thaw(self, loop: SimLoop) -> None:
        """A lead that was stopped comes back beside the new one. Whatever it says must be refused."""
        if self._frozen is not loop or self._loop is None:
            return
        self.happened["leads come back"] += 1
        before, self.hands.life = self.hands.life, loop.life
        loop.run_aside(_THAW_STEPS)
        loop.bury()
        self._dead.add(loop.life.pid)
        self._frozen, self.hands.life = None, before

    def _pass_time(self) -> None:
        away = self.plan.away_sec[self.leads % len(self.plan.away_sec)]
        if not self.ended:
            self.clock.advance(self.clock.elapsed + away)

    # --- judging --------------------------------------------------------------------------------------------------

    def _judge(self, *, finished: bool) -> None:
        events = self.house.memory.events
        last = events[-1].event if events else None
        if finished and isinstance(last, ev.RunFinished) and last.run_status is not RunStatus.RUNNING:
            self.ended = last.run_status is RunStatus.COMPLETED or not self._take_up_again()
        text = self.house.folder.state.read_text(encoding="utf-8") if self.house.folder.state.exists() else None
        seen = Seen(
            state_text=text,
            exact=finished,
            finished=finished,
            agent_starts=dict(self.witness.starts),
            live=self.witness.live(),
            changed=self._changed(),
        )
        self.witness.wrong += broken(events, seen)
        if finished:
            self._judge_files()
        if self.ended and self.plan.outages:
            self.witness.wrong += broken_quota_run(events, self.plan.outages)
        if self.witness.wrong:
            self.ended = True

    def _take_up_again(self) -> bool:
        """A person answers what is open and has the rest tried once more, once."""
        if self._taken_up_again or not self.plan.taken_up_again:
            return False
        self._taken_up_again = True
        self._send(Asked(0.0, "answer", (("text", "go on"),)))
        for name, known in self.witness.tasks.items():
            if known.status is not TaskStatus.DONE:
                self._send(Asked(0.0, "retry", (("task", name), ("hint", "once more"))))
        return True

    def _changed(self) -> list[str]:
        files, before = self.house.project.files, self.plan.files
        return [path for path in sorted(files.keys() | before.keys()) if files.get(path) != before.get(path)]

    def _judge_files(self) -> None:
        """What is DONE is there, once and as it was checked; of everything else nothing is left."""
        for name, known in self.witness.tasks.items():
            text = self.house.project.files.get(output_path(name), "")
            author = self.witness.author(name)
            number = author.launch.argv[2] if author is not None else "?"
            if known.status is TaskStatus.DONE and text != f"{name} {number} {GOOD}\n":
                self.witness.say(f"files: {name} is DONE by agent {number} and its file says {text!r}")
            elif known.status is not TaskStatus.DONE and text:
                self.witness.say(f"files: {name} is {known.status.value} and its file says {text!r}")

    def _outcome(self) -> Outcome:
        events = tuple(self.house.memory.events)
        last = events[-1].event if events else None
        status = last.run_status.value if isinstance(last, ev.RunFinished) else "?"
        return Outcome(
            self.plan.seed,
            self.plan.kind,
            tuple(dict.fromkeys(self.witness.wrong)),
            events,
            status,
            self.clock.elapsed,
            self.plan.policy.concurrency,
            self.leads,
            self._counted(),
        )

    def _counted(self) -> Counter[str]:
        """What this world really met, so that a quiet simulator is noticed."""
        kinds = Counter(type(entry.event) for entry in self.witness.events)
        lost = sum(1 for one in self.house.keeper.processes.values() if one.exit is not None and one.exit.lost)
        seen = {"attempts": kinds[ev.AttemptStarted], "heal rounds": kinds[ev.HealStarted], "lost processes": lost}
        seen |= {"workers suspected": kinds[ev.WorkerSuspected], "workers ended": kinds[ev.WorkerEnding]}
        seen |= {"accounts paused": kinds[ev.AccountPaused]}
        seen |= {"commands": kinds[ev.CommandTaken], "failed appends": len(self.house.disk.fired)}
        return self.happened + Counter(seen)


def fingerprint(outcome: Outcome) -> str:
    """Two plays of one seed must give the same."""
    return json.dumps(
        [[entry.seq, entry.at, ev.type_name(entry.event), ev.encode(entry.event)] for entry in outcome.events]
    )
