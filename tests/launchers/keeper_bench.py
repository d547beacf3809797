"""A run with a keeper of its own, whose processes can be found and killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from ganger.launchers.connect import KeeperOptions
from ganger.launchers.launcher import KeptLauncher
from ganger.launchers.ledger import Account, read_ledger
from ganger.launchers.leftovers import clear_traces
from ganger.ports.processes import Exit, Launch
from tests import patience

T = TypeVar("T")
ENV = {"PATH": os.environ["PATH"]}
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Each start leaves a line, so that nothing can be started twice unseen.
COUNTED = "echo $$ >> starts; "
PATIENCE_SEC = 30.0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(holds: Callable[[], object]) -> None:
    """Returns when it does; a test that would wait for ever fails instead."""
    patience.until(holds, PATIENCE_SEC, pause_sec=0.005)


class Run:
    """One run's folder, and every lead that comes to it."""

    def __init__(self, folder: Path, *, idle_sec: float = 5.0, cgroup: bool = True, broken: str = "") -> None:
        self.folder = folder
        if broken:
            (folder / "broken").write_text(broken)
        odd = f"{HERE}:broken_keepers" if broken else ""
        self.options = KeeperOptions(idle_sec=idle_sec, cgroup=cgroup, odd=odd)
        self.launcher = self.new_launcher()

    def new_launcher(self) -> KeptLauncher:
        return KeptLauncher(self.folder, grace_sec=0.2, options=self.options)

    def key(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def shell(self, name: str, code: str, *, timeout_sec: float | None = 60) -> Launch:
        return self.launch(name, "sh", "-c", COUNTED + code, timeout_sec=timeout_sec)

    def launch(self, name: str, *argv: str, timeout_sec: float | None = 60) -> Launch:
        log = self.folder / f"{name}.log"
        return Launch(self.key(name), argv, self.folder, ENV, None, log, timeout_sec)

    def play(self, main: Callable[[KeptLauncher], Awaitable[T]]) -> T:
        """One lead's life, from its first question to a proper goodbye."""

        async def whole() -> T:
            try:
                return await main(self.launcher)
            finally:
                await self.launcher.close()

        self.launcher = self.new_launcher()
        return asyncio.run(whole())

    def found(self, name: str) -> Exit | None:
        """What a new lead finds of it, once it has ended."""
        return self.find_all([name])[0]

    def find_all(self, names: Iterable[str]) -> list[Exit | None]:
        async def main(launcher: KeptLauncher) -> list[Exit | None]:
            found = [await launcher.find(self.key(name)) for name in names]
            return [await running.wait() if running is not None else None for running in found]

        return self.play(main)

    def lead(self, code: str) -> subprocess.Popen[str]:
        """A lead in a process of its own, which does that and then waits to be killed."""
        words = (str(self.folder), str(self.options.idle_sec), code)
        return subprocess.Popen(
            [sys.executable, "-m", "tests.launchers.doomed_lead", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    def killed_lead(self, code: str) -> None:
        """A lead that has done that and was killed."""
        with self.lead(code) as doomed:
            assert doomed.stdout is not None and doomed.stdout.readline() == "done\n"
            doomed.kill()

    def starts(self) -> int:
        file = self.folder / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def noted(self) -> list[int]:
        """The processes that noted their numbers."""
        file = self.folder / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def survivors(self) -> list[int]:
        return [pid for pid in self.noted() if alive(pid)]

    def account(self) -> Account:
        return read_ledger(self.folder / "keeper" / "ledger.jsonl")

    def processes(self, part: str) -> list[int]:
        """The keeper or the guard of this run."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
                if os.fsencode(self.folder) in words and part.encode() in words[6]:
                    found.append(int(entry.name))
        return [pid for pid in found if alive(pid)]

    def kill(self, *parts: str) -> None:
        for pid in [pid for part in parts for pid in self.processes(part)]:
            _kill(pid)

    def clear(self) -> None:
        """After a test that may have failed halfway. A guard that loses its keeper clears up and leaves."""
        self.kill("keeper")
        until(lambda: not self.processes("guard"))
        clear_traces(str(self.folder / "keeper"))
        for pid in self.survivors():
            _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
