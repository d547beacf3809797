"""A small project in git, done by the real `ganger run` with a real agent and a played model, within walls."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ganger.app.runs import read_state
from ganger.core.events import Event, Recorded
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.dev.server import ModelServer
from ganger.errors import NotFoundError
from ganger.local.procfs import ATTEMPT_MARK
from ganger.local.run_folder import RunFolder
from ganger.stores.sqlite import SqliteStore
from tests.agents.matrix import KEY, Row
from tests.patience import until as until

CONFIG = """
[policy]
heal_schedule = "off"
grace_sec = 0.5
{policy}
{agents}
[workspace]
mode = "local-git"
[sandbox]
use = "require"
{more}
"""
TIMEOUT_SEC = 90
# What a task is asked to leave behind; without it no word of the agent's makes the task done.
MADE = "made by a real agent\n"
_CHECK = """import pathlib, sys
sys.exit(pathlib.Path(sys.argv[1]).read_text() != {made!r})
"""


def mark(task: str) -> str:
    """How the played model recognises a task in whatever a program makes of its prompt."""
    return f"MARK({task})"


def made_file(task: str) -> str:
    return f"{task}.txt"


def writes_file(task: str) -> dict[str, object]:
    """The step that does a task's work with the agent's own tools."""
    return {"write": {"path": made_file(task), "content": MADE}}


def result_with_file(task: str) -> dict[str, object]:
    write = {"path": made_file(task), "op": "create", "encoding": "utf8", "content": MADE}
    return {"result": {"writes": [write]}}


def plays(tasks: Mapping[str, object]) -> dict[str, object]:
    """Scenarios by task: a list of steps, or a whole scenario."""
    scenarios = {
        name: {"match": mark(name), **(told if isinstance(told, dict) else {"steps": told})}
        for name, told in tasks.items()
    }
    return {"scenarios": scenarios}


@dataclass
class RealProject:
    """`tasks` are the names of its tasks; what the model does for each is the server's scenario.

    `agent` are settings of the agent. `apart`: settings by task; each of those tasks has a role, an agent and so an
    account of its own, and what happens to one account does not concern the others. `seconds`: time limits by task.
    `orders`: further lines of a task's prompt.
    """

    root: Path
    row: Row
    server: ModelServer
    tasks: tuple[str, ...]
    agent: Mapping[str, object] = field(default_factory=dict)
    apart: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    seconds: Mapping[str, int] = field(default_factory=dict)
    orders: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""
    more: str = ""
    run_id: str = "r1"

    def make(self) -> RealProject:
        self.root.mkdir(parents=True)
        self.home.mkdir()
        files = {
            "ganger.toml": CONFIG.format(policy=self.policy, agents=self._agents(), more=self.more),
            "check.py": _CHECK.format(made=MADE),
            "manifest.json": json.dumps(
                {"manifest_version": "2.0", "run_id": self.run_id, "tasks": [self._task(name) for name in self.tasks]}
            ),
            "verify.json": json.dumps({"profiles": {name: _profile(name) for name in self.tasks}}),
            **{f"prompts/{name}.md": self._prompt(name) for name in self.tasks},
        }
        for name, text in files.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        who = ("-c", "user.name=S", "-c", "user.email=s@example.org")
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "begin")):
            subprocess.run(["git", *who, *words], cwd=self.root, check=True, capture_output=True)
        return self

    def _prompt(self, name: str) -> str:
        return f"{mark(name)} Make {made_file(name)}.\n{self.orders.get(name, '')}\n"

    def _agents(self) -> str:
        given = {"worker": self.agent, **{name: {**self.agent, **more} for name, more in self.apart.items()}}
        return "\n".join(
            f'[agents.{name}]\n{self.row.section(self.server.url, **more)}\n[roles.{name}]\nagent = "{name}"'
            for name, more in given.items()
        )

    def _task(self, name: str) -> dict[str, object]:
        return {
            "id": name,
            "prompt_ref": f"prompts/{name}.md",
            "depends_on": [],
            "timeout_sec": self.seconds.get(name, TIMEOUT_SEC),
            "verify_profile": name,
            "metadata": {"role": name if name in self.apart else "worker"},
        }

    # --- running ----------------------------------------------------------------------------------------------------

    @property
    def home(self) -> Path:
        return self.root.with_name(f"{self.root.name}-home")

    def ganger(self, *words: str, seconds: float = 110) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "ganger", *words],
                cwd=self.root,
                env=self.row.environ(self.server.url, self.home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.kill_agents()
            raise
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    @contextlib.contextmanager
    def leading(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A lead as a process of its own; it and everything it started is ended for certain."""
        with open(self.root.with_name(f"{self.root.name}-lead.log"), "ab") as log:
            lead = subprocess.Popen(
                [sys.executable, "-m", "ganger", "run", *words],
                cwd=self.root,
                env=self.row.environ(self.server.url, self.home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                yield lead
            finally:
                lead.kill()
                lead.wait()
                self.kill_agents()

    def kill_agents(self) -> None:
        """Everything that was started for an attempt, at once and for good."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """What lives of all that was started for an attempt of this run: by the mark it inherits, or where it works."""
        marked = os.fsencode(f"{ATTEMPT_MARK}={self.folder.path}/")
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                inside = os.readlink(place / "cwd").startswith(f"{self.folder.path}/work/")
                if inside or marked in (place / "environ").read_bytes():
                    found.append(int(place.name))
        return found

    def leaks(self) -> list[str]:
        """Every file of the project, of its runs and of the agents' homes that holds the key, or the end of it."""
        places = [path for top in (self.root, self.home) for path in top.rglob("*") if path.is_file()]
        return [str(path) for path in places if KEY[-20:].encode() in path.read_bytes()]

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.root / ".ganger" / self.run_id)

    def state(self) -> RunState:
        return read_state(self.folder)

    def task(self, name: str) -> TaskState:
        return self.state().tasks[name]

    def events(self) -> list[Recorded]:
        try:
            store = SqliteStore(self.folder.path / "ganger.db", read_only=True)
        except NotFoundError:
            return []
        try:
            return list(store.read())
        finally:
            store.close()

    def find(self, kind: type[Event], task: str) -> list[Any]:
        found = (recorded.event for recorded in self.events())
        return [event for event in found if isinstance(event, kind) and getattr(event, "task", "") == task]

    def merged(self, path: str) -> str:
        """A file as it stands in the run's merged result."""
        words = ["git", f"--git-dir={self.root / '.ganger/repo.git'}", "show", f"ganger/{self.run_id}:{path}"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def log(self, task: str, attempt: int = 1) -> str:
        return (self.folder.path / f"logs/{task}.worker.{attempt}.log").read_text(errors="replace")


def _profile(task: str) -> dict[str, object]:
    return {"steps": [{"name": "made", "cmd": f"python3 check.py {made_file(task)}"}]}
