"""Processes whose output goes straight to a log and which outlive the lead."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start: no shell, no pipe; both output streams go to `log_path`. `key` is unique on the machine.

    The process's keeper limits time and output, also when the lead is gone. `programs` are other programs of the
    operator that it starts.
    """

    key: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin_path: Path | None
    log_path: Path
    timeout_sec: float | None
    append: bool = False
    output_limit_bytes: int | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. `started` is false when it never ran; `error` then says why.

    `lost`: its keeper died, so the end was not seen; its tree is gone. `log_bytes` is the log's size at the end.
    """

    code: int | None
    signal: int | None
    timed_out: bool
    duration_sec: float
    started: bool
    error: str
    over_output: bool = False
    lost: bool = False
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """A process tree as the system shows it. `stopped`: by a signal; all others wait for a stopped one. `lined_up`: how
    long each of its processes has waited for a processor, by process id."""

    processes: int
    cpu_sec: float
    stopped: bool = False
    lined_up: Mapping[int, float] = field(default_factory=dict)


class Running(Protocol):
    """A started process; `pid` is None when it never ran. `start_time` excludes a later process with the same pid."""

    @property
    def pid(self) -> int | None: ...

    @property
    def start_time(self) -> int | None: ...

    async def wait(self) -> Exit: ...


class Launcher(Protocol):
    """Processes of one run. They keep running when the lead dies; the next lead finds them by their keys."""

    async def prepare(self) -> None:
        """Prepares, so that the first start does not have to wait."""

    async def start(self, launch: Launch) -> Running:
        """Starts it once: a key that was started before is not started again; its present state is returned."""

    async def find(self, key: str) -> Running | None:
        """What an earlier lead started under this key: running, ended or lost. None: it was never started."""

    def knows_all(self) -> bool:
        """Whether the keeper has run without a break: then a key it does not know was never started."""

    async def end(self, key: str) -> None:
        """Stops this tree: SIGTERM, grace, SIGKILL. Its `wait` returns when it is gone; safe to call when it is."""

    async def extend(self, key: str, sec: float) -> bool:
        """Moves its time limit to at least `sec` seconds from now; False when it is not running or is being stopped."""

    def facts(self, running: Running) -> Facts | None:
        """What its processes are doing at this moment; None when that is unknown."""

    async def end_others(self, keep: Collection[str]) -> int:
        """Kills every tree of this run whose key is not kept, also detached ones; returns once they are gone."""

    async def stop_all(self, grace_sec: float) -> None: ...

    def kill_all(self) -> None:
        """SIGKILL to every tree, now."""

    async def close(self) -> None:
        """Releases the launcher; running processes keep running."""
