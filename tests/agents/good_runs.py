"""One run that goes well for each real agent: made once, looked at by many tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from ganger.dev.server import ModelServer
from tests.agents.matrix import KEY, ROWS
from tests.agents.runs import MADE, RealProject, made_file, plays, result_with_file, writes_file

EDITS, ANSWERS = "edits", "answers"
_PACE_SEC = 0.02


def _order(do: str, task: str) -> str:
    return "STAND-IN: " + json.dumps({"do": do, "path": made_file(task), "content": MADE})


# No model plays for a stand-in: the prompt says what it shall do.
ORDERS = {EDITS: _order("edit", EDITS), ANSWERS: _order("writes", ANSWERS)}


@dataclass(slots=True)
class Watch:
    """Looks at the arguments of every process of the machine, as everybody on it can."""

    seen: set[str] = field(default_factory=set)
    looks: int = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(_PACE_SEC):
            self.looks += 1
            for place in Path("/proc").glob("[0-9]*"):
                try:
                    words = (place / "cmdline").read_bytes()
                except OSError:
                    continue
                if KEY.encode() in words:
                    self.seen.add(words.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class GoodRun:
    project: RealProject
    server: ModelServer
    code: int
    output: str
    watch: Watch


class _Folders:
    """Where runs are made that many tests look at."""

    factory: pytest.TempPathFactory


def good_run(name: str, factory: pytest.TempPathFactory) -> GoodRun:
    """Two tasks: one is done with the agent's own tools, the other by files in its answer. The server is gone after."""
    _Folders.factory = factory
    return _made(name)


@cache
def _made(name: str) -> GoodRun:
    steps = {EDITS: [writes_file(EDITS), {"result": {}}], ANSWERS: [result_with_file(ANSWERS)]}
    watch = Watch()
    with ModelServer(plays(steps)) as server:
        root = _Folders.factory.mktemp(name) / "project"
        orders = ORDERS if ROWS[name].stands_in else {}
        project = RealProject(root, ROWS[name], server, tuple(steps), orders=orders, policy="concurrency = 2").make()
        with watch.watching():
            done = project.ganger("run")
    return GoodRun(project, server, done.returncode, done.stdout + done.stderr, watch)
