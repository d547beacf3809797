"""One real agent program run once, without the engine: home and workspace are made, it is called, its log is heard."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.settings import AgentSettings
from ganger.core.model.records import TaskSpec
from ganger.core.signs import Heard
from ganger.engine.prompts.assemble import assemble
from ganger.ports.agents import Agent, AttemptContext
from ganger.ports.processes import Launch
from ganger.ports.sessions import SessionRepair
from tests.agents.installed import Installed

KEY = "sk-ganger-trial-5d1f0c7be2a94f6380aa41d7e6b3c958"
TASK = "T1"
SECONDS = 100.0
_MARK = "GANGER_TRIAL"
# As Ganger's own walls do it: another uid, a pid namespace of its own that dies with its first process.
_WALLS = (
    "unshare",
    "--user",
    "--map-user=61023",
    "--map-group=61023",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)

Maker = Callable[[str, AgentSettings, Path, Mapping[str, str]], Agent]


@dataclass(frozen=True, slots=True)
class Ran:
    """`code` is None when it was still running at the end of its time and was killed."""

    code: int | None
    heard: Heard
    log: Path
    launch: Launch

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass(slots=True)
class Going:
    """A process at work. `kill` ends everything it started, at once and for good."""

    process: subprocess.Popen[bytes]
    launch: Launch
    agent: Agent

    def kill(self) -> Ran:
        self.process.kill()
        self.process.wait()
        while left := processes_with(f"{_MARK}={self.launch.key}"):
            for pid in left:
                _kill(pid)
            time.sleep(0.01)
        return self._ran(None)

    def wait(self, seconds: float = SECONDS) -> Ran:
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()
        return self._ran(code)

    def _ran(self, code: int | None) -> Ran:
        return Ran(code, self.agent.hear(self.launch.log_path), self.launch.log_path, self.launch)


@dataclass(slots=True)
class Trial:
    """One task's place: `workspace` (a git repository), `home`, and `person`, the home of who started it all."""

    folder: Path
    make: Maker
    program: Installed
    environ: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 0

    def __post_init__(self) -> None:
        for place in (self.workspace, self.home, self.person, self.shared, self.folder / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        if not (self.workspace / ".git").exists():
            subprocess.run(["git", "init", "-q", str(self.workspace)], check=True)

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def person(self) -> Path:
        return self.folder / "person"

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    def agent(self, **settings: Any) -> Agent:
        given = AgentSettings(**{"kind": "", "argv": self.program.argv, **self.settings, **settings})
        environ = {"PATH": self.program.path, "HOME": str(self.person), "LANG": "C.UTF-8", **self.environ}
        return self.make("trial", given, self.folder, environ)

    def run(self, text: str, *, session: str = "", walled: bool = False, seconds: float = SECONDS, **more: Any) -> Ran:
        """Starts it with the prompt Ganger would write for `text`, and waits for its end. `more` are settings."""
        return self.start(text, session=session, walled=walled, **more).wait(seconds)

    def start(self, text: str, *, session: str = "", walled: bool = False, **more: Any) -> Going:
        self.attempt += 1
        agent, context = self.agent(**more), self.context(text, session=session, walled=walled)
        mended = agent.repaired(self.home, session) if session and isinstance(agent, SessionRepair) else {}
        for name, data in {**mended, **agent.furnish(context)}.items():
            place = self.home / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        launch = agent.prepare(context)
        return Going(_start(launch, walled=walled, tmp=self.folder / "tmp"), launch, agent)

    def context(self, text: str, *, session: str, walled: bool) -> AttemptContext:
        prompt = self.folder / f"{self.attempt}.prompt"
        prompt.write_text(prompt_of(text), encoding="utf-8")
        return AttemptContext(
            run_id="trial",
            task_id=TASK,
            attempt=self.attempt,
            role="worker",
            workspace=self.workspace,
            prompt_file=prompt,
            log_path=self.folder / f"{self.attempt}.log",
            timeout_sec=SECONDS,
            home=self.home,
            shared=self.shared,
            session=session,
            walled=walled,
        )

    def leaks(self, ran: Ran) -> list[str]:
        """Where the key can be read that should be nowhere but in the environment."""
        places = [str(path) for path in sorted(self.folder.rglob("*")) if path.is_file() and _holds(path, KEY)]
        return [*places, *(word for word in ran.launch.argv if KEY in word)]


@dataclass(frozen=True, slots=True)
class _Text:
    text: str

    def read_text(self, ref: str) -> str:
        return self.text


def prompt_of(text: str) -> str:
    return assemble(TaskSpec(TASK, prompt_ref="prompt.md"), _Text(text), "")


def wait_for(path: Path, seconds: float = 60.0) -> None:
    """Until a tool has left its mark."""
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.02)


def walls_stand() -> bool:
    """Whether this machine lets the trial's walls be raised."""
    return shutil.which(_WALLS[0]) is not None and _raised()


@cache
def _raised() -> bool:
    return subprocess.run([*_WALLS, "true"], capture_output=True, check=False).returncode == 0


def _start(launch: Launch, *, walled: bool, tmp: Path) -> subprocess.Popen[bytes]:
    if walled and not walls_stand():
        pytest.skip("needs unshare and user namespaces")
    env = {**launch.env, _MARK: launch.key, "TMPDIR": str(tmp)}
    assert launch.stdin_path is not None
    with open(launch.stdin_path, "rb") as stdin, open(launch.log_path, "wb") as log:
        return subprocess.Popen(
            [*(_WALLS if walled else ()), *launch.argv],
            cwd=launch.cwd,
            env=env,
            stdin=stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def processes_with(setting: str) -> list[int]:
    """Every process that was started with this variable, however far it got away from who started it."""
    wanted = setting.encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            variables = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in variables:
            found.append(int(place.name))
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _holds(path: Path, text: str) -> bool:
    try:
        return text.encode() in path.read_bytes()
    except OSError:
        return False
