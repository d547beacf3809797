"""The writer killed or failed at every system call it makes, and the harness proved on planted mistakes."""

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

PROGRAM = ("-m", "tests.workspaces.write_faults")
ROOT = Path(__file__).parents[2]


def sweep(phase: str, fault: str, *planted: str) -> dict[str, Any]:
    with fast_folder() as folder:
        argv = [sys.executable, *PROGRAM, str(folder / "sweep"), phase, fault, *planted]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=stretched(100))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.brief(1)
@pytest.mark.parametrize("phase", ["apply", "prepare", "rollback"])
def test_a_kill_at_any_system_call_leaves_nothing_that_rollback_cannot_mend(phase: str) -> None:
    """T18 T28 failed-verify-rollback: byte-identical afterwards, also when rolled back twice."""
    found = sweep(phase, "kill")
    assert found["bad"] == []
    assert found["points"] > 80


@pytest.mark.parametrize(
    "fault", ["ENOSPC", *(pytest.param(fault, marks=pytest.mark.slow) for fault in ("EIO", "EACCES", "EMFILE"))]
)
def test_an_error_at_any_system_call_of_an_apply_puts_everything_back(fault: str) -> None:
    """T18: all or nothing, whatever the operating system says, and a full disk is called a full disk."""
    found = sweep("apply", fault)
    assert found["bad"] == []
    assert found["points"] > 80


@pytest.mark.parametrize(
    ("planted", "phase", "fault"),
    [
        pytest.param("index-first", "prepare", "kill", marks=pytest.mark.slow),
        ("no-sweep", "apply", "kill"),
        ("in-place", "apply", "ENOSPC"),
        pytest.param("forgetful-rollback", "rollback", "kill", marks=pytest.mark.slow),
    ],
)
def test_the_sweep_finds_a_planted_mistake(planted: str, phase: str, fault: str) -> None:
    """T18: the harness is proved before it is believed."""
    assert sweep(phase, fault, planted)["bad"]
