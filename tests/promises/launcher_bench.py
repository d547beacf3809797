"""A place to try the launcher in: one keeper for many tests, a folder for each, and short ways to start programs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from ganger.launchers.launcher import KeptLauncher, KeptRunning
from ganger.ports.processes import Exit, Launch

T = TypeVar("T")
ENV = {"PATH": os.environ["PATH"]}
PRELUDE = """
import os, signal, subprocess, sys, time
def note(): print(os.getpid(), file=open('pids', 'a'), flush=True)
def wait(): note(); open('ready', 'a').close(); time.sleep(60)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(pid: int) -> list[str]:
    """Every child, zombies too."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


class Bench:
    """A folder of its own in a run that others share."""

    def __init__(self, run: Path, folder: Path, keeper: int = 0) -> None:
        self.run = run
        self.folder = folder
        self.keeper = keeper
        self.log = folder / "out.log"
        self.launcher = KeptLauncher(run, grace_sec=0.2)

    def key(self, name: str = "x") -> str:
        return f"{self.run}/{self.folder}/{name}"

    def launch(
        self, *argv: str, env: Mapping[str, str] = ENV, timeout_sec: float | None = 30, name: str = "x"
    ) -> Launch:
        return Launch(self.key(name), argv, self.folder, env, None, self.log, timeout_sec)

    async def python(self, code: str, *, timeout_sec: float | None = 30, name: str = "x") -> KeptRunning:
        argv = (sys.executable, "-S", "-c", PRELUDE + code)
        return await self.launcher.start(self.launch(*argv, timeout_sec=timeout_sec, name=name))

    async def ready(self, pids: int = 1) -> None:
        while not (self.folder / "ready").exists() or len(self.pids()) < pids:
            await asyncio.sleep(0.005)

    def pids(self) -> list[int]:
        file = self.folder / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def survivors(self) -> list[int]:
        return [pid for pid in self.pids() if alive(pid)]

    def clear(self) -> None:
        for pid in self.survivors():
            os.kill(pid, signal.SIGKILL)

    def play(self, main: Callable[[], Awaitable[T]]) -> T:
        """Runs it with a launcher that lives as long."""

        async def whole() -> T:
            try:
                return await main()
            finally:
                await self.launcher.close()

        self.launcher = KeptLauncher(self.run, grace_sec=0.2)
        return asyncio.run(whole())

    def ended(self, launch: Launch) -> Exit:
        async def main() -> Exit:
            return await (await self.launcher.start(launch)).wait()

        return self.play(main)

    def ended_python(self, code: str, *, timeout_sec: float | None = 30, name: str = "x") -> Exit:
        argv = (sys.executable, "-S", "-c", PRELUDE + code)
        return self.ended(self.launch(*argv, timeout_sec=timeout_sec, name=name))


def keep_company(run: Path) -> Iterator[int]:
    """Holds a connection to a run's keeper, so that it stays from test to test; gives its number."""
    first = KeptLauncher(run, grace_sec=1)

    async def start() -> None:
        await (await first.start(Launch(f"{run}/first", ("true",), run, ENV, None, run / "first.log", 30))).wait()
        company.connect((run / "keeper" / "address").read_text())
        hello = {"do": "hello", "key": (run / "keeper" / "key").read_text()}
        company.sendall(
            b"".join(json.dumps(one).encode() + b"\n" for one in (hello, {"do": "find", "key": "", "n": 1}))
        )
        # It is known once it is answered; until then a keeper would not stay for it.
        while not heard.endswith(b'"n":1}\n'):
            heard.extend(company.recv(4096))
        await first.close()

    heard = bytearray()
    with socket.socket(socket.AF_UNIX) as company:
        asyncio.run(start())
        pid = int(heard.partition(b":")[2].partition(b",")[0])
        yield pid
        company.sendall(b'{"do":"bye"}\n')
        while company.recv(4096):
            pass
