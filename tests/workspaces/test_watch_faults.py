"""The watch killed at its system calls, and the harness proved on planted mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import stretched
from tests.workspaces.write_harness import fast_folder

pytestmark = pytest.mark.whole

PROGRAM = ("-m", "tests.workspaces.watch_faults")
ROOT = Path(__file__).parents[2]


def sweep(phase: str, fault: str, step: int, *planted: str) -> dict[str, Any]:
    with fast_folder() as folder:
        argv = [sys.executable, *PROGRAM, str(folder / "sweep"), phase, fault, str(step), *planted]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=stretched(100))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("phase", "step", "least"), [("begin", 3, 30), ("begin-twice", 3, 30), ("accept", 4, 30), ("undo", 9, 60)]
)
def test_a_kill_leaves_a_baseline_and_a_folder_that_the_next_process_can_mend(
    phase: str, step: int, least: int
) -> None:
    """T18 T20 W02 G08: byte-identical after the second undo, nothing lost, the agent's work saved once."""
    found = sweep(phase, "kill", step)
    assert found["bad"] == []
    assert found["points"] > least


@pytest.mark.parametrize(
    ("phase", "step", "fault"), [("accept", 7, "ENOSPC"), ("accept", 7, "EIO"), ("undo", 31, "ENOSPC")]
)
def test_an_error_of_the_disk_never_spoils_the_baseline(phase: str, step: int, fault: str) -> None:
    """T18: the run stops with a named error, and what was there before can still be gone back to."""
    found = sweep(phase, fault, step)
    assert found["bad"] == []
    assert found["points"] > 15


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("planted", "phase", "step"),
    [
        ("record-in-place", "begin", 3),
        ("names-before-bytes", "begin-twice", 3),
        ("unsaved", "undo", 97),
        ("no-links", "undo", 97),
    ],
)
def test_the_sweep_finds_a_planted_mistake(planted: str, phase: str, step: int) -> None:
    """T18: the harness is proved before it is believed."""
    assert sweep(phase, "kill", step, planted)["bad"]
