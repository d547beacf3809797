"""Programs that leave something behind in every way we know, and who is left of them when their end is told.

`python -m tests.launchers.escapees 100` makes a hundred rounds of every kind and prints the survivors.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from ganger.launchers.launcher import KeptLauncher, KeptRunning
from tests.launchers.keeper_bench import Run

PRELUDE = """
import ctypes, os, signal, sys, time
fork, token = os.fork, sys.argv[1]
def ready(): open(token, 'a').close()
def stay(): ready(); time.sleep(600)
def become(environment): os.execve(sys.executable, [sys.executable, '-S', '-c', STAY, token], environment)
def chain():
    ready()
    while True:
        if fork(): os._exit(0)
        os.setsid()
def bear(): [fork() or os._exit(0) for _ in range(5)]
def part(): fork() and os._exit(0)
STAY = "import sys, time; open(sys.argv[1], 'a').close(); time.sleep(600)"
"""
KINDS = {
    "child": "stay()",
    "setsid child": "os.setsid(); stay()",
    "daemon": "os.setsid(); part(); stay()",
    "SIGTERM ignorer": "signal.signal(signal.SIGTERM, signal.SIG_IGN); stay()",
    "emptied environment": "os.setsid(); part(); become({})",
    "stopped in its own group": "os.setpgid(0, 0); ready(); os.kill(os.getpid(), signal.SIGSTOP)",
    "chain of forks": "os.setsid(); chain()",
    "new session after a while": "ready(); os.closerange(0, 3); time.sleep(.05); os.setsid(); time.sleep(600)",
    "renamed": "os.setsid(); part(); ctypes.CDLL(None).prctl(15, b'kworker/0:1'); stay()",
    "parent of zombies": "os.setsid(); part(); bear(); stay()",
    "another's mark": "os.setsid(); part(); become({'GANGER_ATTEMPT_MARK': '/elsewhere/x'})",
}
UNTIL_READY = "\nwhile not os.path.exists(token): time.sleep(.005)\n"
LEADERS = {"ends": "sys.exit(0)", "stopped": "time.sleep(600)"}


def survivors(token: str) -> list[int]:
    """Every process that was started with this word, zombies not counted: those have no words any more."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.fsencode(token) in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def _left(running: KeptRunning, token: str) -> int:
    await running.wait()
    found = survivors(token)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


async def sweep(run: Run, launcher: KeptLauncher, rounds: int, kinds: Collection[str] = tuple(KINDS)) -> dict[str, int]:
    """How many of each kind were alive after the end of their program was told."""
    left = dict.fromkeys(kinds, 0)
    for number, leader in itertools.product(range(rounds), LEADERS):
        started = {}
        for place, kind in enumerate(kinds):
            name = f"{number}-{leader}-{place}"
            code = f"{PRELUDE}\nif not fork():\n    {KINDS[kind]}\n{UNTIL_READY}{LEADERS[leader]}"
            token = str(run.folder / name)
            started[token] = await launcher.start(run.launch(name, sys.executable, "-S", "-c", code, token))
        if leader == "stopped":
            while not all(Path(token).exists() for token in started):
                await asyncio.sleep(0.005)
            await launcher.stop_all(0.05)
        found = await asyncio.gather(*(_left(running, token) for token, running in started.items()))
        for kind, count in zip(kinds, found, strict=True):
            left[kind] += count
    return left


def main(rounds: int) -> None:
    for cgroup in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder), cgroup=cgroup)
            left = collections.Counter(run.play(lambda launcher, run=run: sweep(run, launcher, rounds)))  # type: ignore[misc]
        print(f"{'with' if cgroup else 'without'} a control group, {rounds} rounds x 2 ends: {left.total()} survivors")
        for kind, count in left.items():
            print(f"  {count:4} of {rounds * 2:4}  {kind}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
