"""The floor: a bounded loop that runs the agent and the check of each task and commits once. No engine can do less.

Run as a program it prints one JSON line: `python floor.py PROJECT TASKS CONCURRENCY AGENT…`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw


class Floor:
    """Output goes to files and the commit is as durable as Ganger's; there is nothing else."""

    def __init__(self, project: Path, agent: Sequence[str]) -> None:
        self.project, self.agent = project, agent
        self.logs = project / "floor-logs"
        self.logs.mkdir()
        self.store = apsw.Connection(str(project / "floor.db"))
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE done (task TEXT, agent INT, verify INT)",
        ):
            self.store.execute(statement)

    async def run(self, tasks: int, concurrency: int) -> float:
        """Seconds from before the first start to after the last commit."""
        names = iter([f"task-{number:06d}" for number in range(tasks)])
        began = time.perf_counter()
        await asyncio.gather(*(self._work(names) for _ in range(concurrency)))
        return time.perf_counter() - began

    async def _work(self, names: Iterator[str]) -> None:
        for name in names:
            agent = await self._spawn(name, "worker", self.agent)
            verify = await self._spawn(name, "verify", ("true",))
            if (agent, verify) != (0, 0):
                raise SystemExit(f"{name}: agent ended with {agent}, check with {verify}")
            self.store.execute("INSERT INTO done VALUES (?, ?, ?)", (name, agent, verify))

    async def _spawn(self, name: str, kind: str, argv: Sequence[str]) -> int:
        with open(self.logs / f"{name}.{kind}.log", "wb") as log:
            child = subprocess.Popen(
                argv,
                cwd=self.project,
                env={**os.environ, "GANGER_TASK_ID": name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        await _ended(child.pid)
        return child.wait()


async def _ended(pid: int) -> None:
    """The cheapest way to see an end: no thread and no transport for each child."""
    loop = asyncio.get_running_loop()
    descriptor = os.pidfd_open(pid)
    ended = loop.create_future()
    loop.add_reader(descriptor, ended.set_result, None)
    await ended
    loop.remove_reader(descriptor)
    os.close(descriptor)


def main(words: Sequence[str]) -> None:
    project, tasks, concurrency, *agent = words
    floor = Floor(Path(project), agent)
    seconds = asyncio.run(floor.run(int(tasks), int(concurrency)))
    print(json.dumps({"loop_sec": seconds}))


if __name__ == "__main__":
    main(sys.argv[1:])
