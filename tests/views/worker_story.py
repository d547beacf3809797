"""A run in memory with workers at work, made of recorded events only."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.times import stamp
from ganger.core.vocabulary import HealSchedule, Mode, TaskStatus

BEGAN = 1_767_225_600.0
OFF = Policy(heal_schedule=HealSchedule.OFF)
NEEDS: dict[str, tuple[str, ...]] = {"api": (), "ui": ("api",), "docs": ("ui",), "db": (), "tests": ("api", "db")}


class Story:
    """api ← ui ← docs; api, db ← tests. `sec` is how long after the beginning something happens."""

    def __init__(self, mode: Mode = Mode.DIRECT, pull_roles: tuple[str, ...] = ()) -> None:
        specs = tuple(TaskSpec(name, needs, role="worker") for name, needs in NEEDS.items())
        self.state, self.seq = RunState(), 0
        self.record(ev.RunStarted("r1", "digest", OFF, specs))
        accounts = {"worker": "work"}
        self.record(ev.LeadStarted(1, policy=OFF, accounts=accounts, mode=mode, pull_roles=pull_roles))

    def record(self, *events: ev.Event, sec: float = 0.0) -> None:
        for event in events:
            self.seq += 1
            apply(self.state, ev.Recorded(self.seq, stamp(BEGAN + sec), event))
        assert self.state.log.refused == []

    def start(self, name: str, worker: str = "", sec: float = 0.0) -> None:
        number = self.state.tasks[name].attempts + 1
        token, log = f"{name}.{number}", f"logs/{name}.worker.{number}.log"
        self.record(
            ev.AttemptStarted(
                name, number, token, "coder", "first attempt", log, "work", kind="scripted", worker=worker
            ),
            sec=sec,
        )
        if not worker:
            self.record(ev.AttemptLaunched(name, number, 1, 1), sec=sec)

    def worker(self, name: str) -> str:
        """What the worker of a task is called."""
        worker = self.state.tasks[name].worker
        assert worker is not None
        return worker.name

    def finish(self, name: str) -> None:
        number = self.state.tasks[name].attempts
        self.record(ev.VerifyFinished(name, number, True, "log", 0.1, ()))
        self.record(ev.TaskSettled(name, TaskStatus.DONE, "verified by check"))

    def ask(self, name: str, text: str = "Which port?", **more: object) -> None:
        number = len(self.state.inbox.questions) + 1
        attempt = self.state.tasks[name].attempts
        asked = ev.QuestionAsked(f"q-{number}", name, "ambiguous_spec", text, attempt, f"r{number}", **more)  # type: ignore[arg-type]
        self.record(asked)
