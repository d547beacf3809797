"""Commands called in this process say what the program says: the one test that starts each as a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_project import Answer, as_program, ganger, make_project, task
from tests.cli.in_process import TEXT

SCRIPT = {"good": [{"result": {"status": "DONE", "summary": "ok"}}]}
LINES = {
    "agents": ("agents", "--json"),
    "config": ("config", "show"),
    "events": ("events",),
    "explain": ("explain", "NO_EFFECT"),
    "inbox": ("inbox",),
    "ledger": ("ledger",),
    "logs": ("logs", "good"),
    "parse": ("parse", "no-such-file"),
    "patches": ("patches",),
    "plan": ("plan",),
    "schema": ("schema",),
    "skip": ("skip", "nobody"),
    "approve": ("approve", "nobody"),
    "rework": ("rework", "nobody", "again"),
    "retry": ("retry", "nobody"),
    "land": ("land",),
    "state": ("state", "export"),
    "status": ("status",),
    "tasks": ("tasks", "--json"),
    "validate": ("validate",),
    "why": ("why", "good"),
    "workers": ("workers",),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_project(tmp_path_factory.mktemp("called"), task("good"))
    assert ganger("run", cwd=root).code in (0, 1)
    return root


def test_every_command_that_is_called_is_compared() -> None:
    assert LINES.keys() == TEXT


@pytest.mark.parametrize("command", LINES)
def test_called_and_started_it_says_the_same(finished: Path, command: str) -> None:
    """T26: code, output and errors."""
    called: Answer = ganger(*LINES[command], cwd=finished)
    assert called == as_program(*LINES[command], cwd=finished)
    assert called.out + called.err
