"""A kill at any system call of a round leaves nothing half: repeating it ends at the same place."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import stretched
from tests.workspaces import git_rounds
from tests.workspaces.git_projects import Ground, make_project, settings_for

ROOT = Path(__file__).resolve().parents[2]
POINTS = int(os.environ.get("GANGER_GIT_KILLS", "0"))
# System call, which one of its thread, and whether the repository is there already. Ganger's threads and the git
# processes they start are all traced: any of them may be the one that dies.
Moment = tuple[str, int, bool]
FEW: list[Moment] = [
    ("mkdir", 3, False),
    ("rename", 1, False),
    ("rename", 1, True),
    ("mkdir", 8, True),
    ("unlinkat", 5, True),
    ("fsync", 1, True),
]
CALLS = ("rename", "mkdir", "openat", "fsync", "vfork", "unlinkat", "link", "unlink")
MOMENTS = [*FEW, *((name, n, n % 2 == 0) for name in CALLS for n in range(1, POINTS + 1))]


def _killed(tmp_path: Path, moment: Moment, *planted: str) -> tuple[bool, list[str]]:
    """Whether the round was cut off, and what is wrong after it was repeated."""
    name, number, opened = moment
    project = make_project(tmp_path / "project")
    with asyncio.Runner() as runner:
        ground = Ground(settings_for(project, tmp_path / "state"), runner)
        if opened:
            ground.open()
        inject = f"inject={name}:signal=KILL:when={number}"
        words = [sys.executable, "-m", git_rounds.__name__, str(project), str(tmp_path / "state"), *planted]
        trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject]
        made = subprocess.run([*trace, *words], cwd=ROOT, capture_output=True, check=False, timeout=stretched(60))
        assert made.stdout.decode().strip() == git_rounds.BEGUN or moment not in FEW, made.stderr.decode()
        cut = made.returncode != 0
        faults = git_rounds.faults_of(ground)
        runner.run(ground.repository.close())
    return cut, faults


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left a lock here is known to be dead."""
    monkeypatch.setattr("ganger.workspaces.git.bare_repo._LOCK_LOOKS", 1)


@pytest.mark.whole
@pytest.mark.needs("strace")
@pytest.mark.brief(2)
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda one: f"{one[0]}-{one[1]}-{'opened' if one[2] else 'new'}")
def test_a_round_that_was_killed_can_be_repeated(moment: Moment, tmp_path: Path) -> None:
    """G01 T19 G08: one merge, the right tree, a sound repository, nothing left over."""
    cut, faults = _killed(tmp_path, moment)
    assert faults == [] and (cut or moment not in FEW)


@pytest.mark.whole
@pytest.mark.needs("strace")
def test_a_workspace_made_under_its_final_name_is_caught(tmp_path: Path) -> None:
    """R4: the harness sees the bug it is for."""
    cut, faults = _killed(tmp_path, ("mkdir", 8, True), "planted")
    assert cut and faults
