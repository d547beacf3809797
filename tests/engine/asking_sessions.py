"""Sessions that somebody else opened, as tests play them: they ask a real lead for tasks, and report."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganger.worker.errors import Away
from ganger.worker.find_run import RunAddress
from ganger.worker.http import LeadAnswer, call
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, until

PULL = '[agents.people]\nkind = "pull"\nin_place = false\n[roles.people]\nagent = "people"\n'
PEOPLE: Mapping[str, object] = {"metadata": {"role": "people"}}


def people_project(root: Path, tasks: list[dict[str, object]], *, more: str = "", **options: Any) -> Project:
    """Direct mode; tasks of the role `people` wait for sessions."""
    project = Project(root, tasks, **options).make()
    config = root / "ganger.toml"
    config.write_text(f"{config.read_text()}\n{PULL}{more}")
    return project


def people_in_git(root: Path, tasks: list[dict[str, object]], *, more: str = "", **options: Any) -> GitProject:
    return GitProject(root, tasks, more=f"{PULL}{more}", **options).make()


@dataclass(frozen=True)
class Session:
    """One that asks under its name."""

    project: Project
    worker: str = "me"

    def ask(self, *, wait_sec: float = 0, request: str = "", **more: object) -> dict[str, Any]:
        """The reply, once somebody leads."""
        body = {"id": request or os.urandom(6).hex(), "worker": self.worker, "wait_sec": wait_sec, **more}
        found: list[LeadAnswer] = []

        def asked() -> bool:
            try:
                door = RunAddress(str(self.project.folder.path))
                found.append(call(door.address, door.token, "/v1/next", body, wait_sec + 60))
            except Away:
                return False
            return True

        until(asked)
        assert found[0].taken, found[0].body
        return found[0].body

    def get(self, *, wait_sec: float = 30, **more: object) -> Held:
        reply = self.ask(wait_sec=wait_sec, **more)  # type: ignore[arg-type]
        assert reply["task"], reply
        return Held(reply)

    def ask_aside(self, *, wait_sec: float = 30) -> Aside:
        return Aside(self, wait_sec)


@dataclass(frozen=True)
class Held:
    """A task it was given."""

    reply: dict[str, Any]

    @property
    def task(self) -> str:
        return str(self.reply["task"]["id"])

    @property
    def attempt(self) -> int:
        return int(self.reply["task"]["attempt"])

    @property
    def workspace(self) -> Path:
        return Path(self.reply["task"]["workspace"])

    def say(self, verb: str, **body: object) -> LeadAnswer:
        return call(self.reply["report"], self.reply["token"], f"/v1/{verb}", body, 60)

    def report(self, *writes: dict[str, object], status: str = "DONE") -> LeadAnswer:
        result = {"contract_version": "2.0", "task_id": self.task, "status": status, "summary": "did it"}
        return self.say("report", result={**result, "writes": list(writes)} if writes else result)

    def do(self, name: str = "", text: str = "done\n") -> LeadAnswer:
        """Edits its folder, and reports."""
        (self.workspace / (name or f"{self.task}.txt")).write_text(text)
        return self.report()


class Aside:
    """A question that is being asked in a thread of its own."""

    def __init__(self, session: Session, wait_sec: float) -> None:
        self.reply: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._ask, args=(session, wait_sec), daemon=True)
        self._thread.start()

    def _ask(self, session: Session, wait_sec: float) -> None:
        self.reply = session.ask(wait_sec=wait_sec)

    @property
    def waits(self) -> bool:
        return self._thread.is_alive()

    def answer(self) -> dict[str, Any]:
        self._thread.join(60)
        assert not self.waits, "nobody answered"
        return self.reply
