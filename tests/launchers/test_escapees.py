"""Whatever a program leaves behind, however it hides, is gone when its end is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.launchers.escapees import KINDS, sweep
from tests.launchers.keeper_bench import Run

ROUNDS = int(os.environ.get("GANGER_TEST_ROUNDS", "3"))


@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "no-cgroup"])
def test_no_kind_of_escapee_survives_the_end_of_its_program(tmp_path: Path, cgroup: bool) -> None:
    """H08 T23: ended by itself or by the keeper; GANGER_TEST_ROUNDS sets how often each kind tries."""
    run = Run(tmp_path, cgroup=cgroup)
    assert run.play(lambda launcher: sweep(run, launcher, ROUNDS)) == dict.fromkeys(KINDS, 0)
    run.clear()


def test_a_keeper_that_ends_only_process_groups_is_caught(tmp_path: Path) -> None:
    """H08 T23: planted bug; every kind that leaves its session is found alive."""
    run = Run(tmp_path, broken="KillsOnlyGroups")
    kinds = ["setsid child", "daemon", "emptied environment", "renamed"]
    left = run.play(lambda launcher: sweep(run, launcher, 1, kinds))
    run.clear()
    assert all(left.values()), left
