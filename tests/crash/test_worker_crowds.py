"""Sessions take tasks and report while leads are killed: a slice of what `make workers` runs in full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.planted_reports import BUGS
from tests.patience import stretched

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]


def harness(*words: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: it forks leads, which a threaded test runner should not."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    argv = [sys.executable, "-m", "faults", *words]
    return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=stretched(110))


@pytest.mark.brief(1)
@pytest.mark.parametrize(("mode", "tasks"), [("direct", 60), ("local-git", 24)])
def test_of_all_who_ask_one_gets_each_task_and_no_report_is_lost(mode: str, tasks: int) -> None:
    """Z02 W03 H07 H10 G02: sockets, HTTP, programs, MCP and files, under two dead leads."""
    found = harness("workers", "--mode", mode, "--workers", "10", "--tasks", str(tasks), "--restarts", "2")
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]


def test_a_lead_that_dies_while_twenty_report_loses_no_word_it_acknowledged() -> None:
    """H07 H09 G01: what it had not acknowledged comes from the spools, once."""
    size = ("--workers", "20", "--tasks", "24", "--reports", "12", "--restarts", "4")
    found = harness("workers", "--mode", "direct", *size)
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]


BRIEF = ("early-unlink",)


@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    "name", [name if name in BRIEF else pytest.param(name, marks=pytest.mark.slow) for name in BUGS]
)
def test_a_planted_bug_of_reporting_is_caught(name: str) -> None:
    """H07 Z02: the harness is believed because it has caught each of these."""
    found = harness("planted", name)
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]
