"""The whole architecture on one page: what the engine needs from the world, and nothing more.

Clock      what time it is
Store      events, durable before `append` returns
Launcher   processes whose output goes straight to a log
Agent      how one kind of CLI is called and how its answer is read
Workspace  the files agents work on, and the one door through which changes land
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ganger.contracts.parser import Parsed, Refused
from ganger.contracts.task_result import TaskResult, Write
from ganger.core.events import Event, Recorded


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""


class Store(Protocol):
    """One run's events. One writer; readers may be other processes."""

    def append(self, batch: Sequence[tuple[str, Event]]) -> list[Recorded]:
        """Writes (time, event) pairs in one durable transaction and returns them numbered."""

    def read(self, since: int = 0) -> Iterator[Recorded]:
        """Events with a number above `since`, in order."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to be: no shell, no pipe; both output streams go to `log_path`. `key` is unique on the machine."""

    key: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin_path: Path | None
    log_path: Path
    timeout_sec: float | None
    append: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. `started` is false when it never ran; `error` then says why."""

    code: int | None
    signal: int | None
    timed_out: bool
    duration_sec: float
    started: bool
    error: str


class Running(Protocol):
    """A started process; `pid` is None when it never ran. `start_time` tells it from a later one with the same pid."""

    @property
    def pid(self) -> int | None: ...

    @property
    def start_time(self) -> int | None: ...

    async def wait(self) -> Exit: ...


class Launcher(Protocol):
    async def start(self, launch: Launch) -> Running: ...

    async def stop_all(self, grace_sec: float) -> None: ...

    def kill_all(self) -> None:
        """SIGKILL to every tree, now."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent kind can do."""

    stdin_prompt: bool = False
    arg_prompt: bool = False
    file_prompt: bool = False
    pty: bool = False
    interactive: bool = False


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What an agent may know of the attempt it is asked to make."""

    run_id: str
    task_id: str
    attempt: int
    role: str
    workspace: Path
    prompt_file: Path
    log_path: Path
    timeout_sec: float
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentHealth:
    ready: bool
    version: str = ""
    details: tuple[str, ...] = ()


class Agent(Protocol):
    """One configured agent. `prepare` says how to call it, `execute` starts it, `extract_result` reads the log."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def prepare(self, context: AttemptContext) -> Launch: ...

    async def execute(self, launch: Launch, launcher: Launcher) -> Running: ...

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused: ...

    def healthcheck(self) -> AgentHealth: ...


class Changes(Protocol):
    """A change set that passed every safeguard and has not touched anything yet."""

    @property
    def paths(self) -> tuple[str, ...]: ...


class Workspace(Protocol):
    """Where agents work. `propose` only looks; `back_up` must be whole and recorded before `apply` changes a byte."""

    @property
    def root(self) -> Path: ...

    def read_text(self, ref: str) -> str:
        """A file of the project by relative path; never one outside it."""

    def propose(self, writes: Sequence[Write], *, allow_shrinkage: bool) -> Changes:
        """Checks every safeguard; raises WriteRefused."""

    def back_up(self, changes: Changes, folder: Path) -> None: ...

    def apply(self, changes: Changes, folder: Path) -> None:
        """All or nothing."""

    def roll_back(self, folder: Path) -> tuple[str, ...]:
        """Puts everything back from the backup alone; harmless to repeat. The paths it restored."""

    def discard(self, folder: Path) -> None: ...


Listener = Callable[[Recorded], None]
