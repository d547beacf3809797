"""Deliveries under trouble that comes twice or at the wrong moment, judged by what the forge itself knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from loopback.script import GREEN, Fault, Run
from scenario import Row, play, require
from truth import Needs

PLAIN = '["verified", "committed", "pushed", "ci"]'
CI = Needs(mirror="", mirrored=False)
ALL = replace(CI, required=())
CANCELLED = {"check": "run cancel"}
BUILD = Run({"test": "run cancel"}, workflow="build.yml", again=({"test": "ok"},))
LINT = Run(CANCELLED, workflow="lint.yml", again=({"check": "ok"},))
STAYS = Run(CANCELLED, workflow="lint.yml", again=(CANCELLED,))
PASSED = Run({"check": "run ok"}, workflow="lint.yml")
LATE = Run({"test": "run ok"}, workflow="build.yml", after=3)

ROWS = [
    Row("a forge that says later has not said that there is no run", flavour="github", completion=PLAIN, needs=CI,
        faults=(Fault("runs", "limited", 1, 3),)),
    Row("two workflows that were cancelled are both run again", ((LINT, BUILD),), flavour="github", reruns=2,
        completion=PLAIN, needs=ALL, required=()),
    Row("one that is run again in no time says nothing of the other", ((STAYS, BUILD),), flavour="github", reruns=2,
        completion=PLAIN, needs=ALL, required=(), ends="BLOCKED(external)", says="check was cancelled"),
    Row("the one that need not run again still counts", ((PASSED, BUILD),), flavour="github", reruns=1,
        completion=PLAIN, needs=CI),
    Row("a workflow that appears late is no missing job", ((PASSED, LATE),), completion=PLAIN, needs=CI),
    Row("a job that is in no workflow is missed in the end", ((PASSED,), (GREEN,)), completion=PLAIN, needs=CI,
        pushed=2, fixes=1),
]  # fmt: skip


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_trouble_with_ci_is_never_a_verdict(tmp_path: Path, row: Row) -> None:
    """D02 D03 D04 D05: what a run said before it ran again, or has not said yet, counts for nothing."""
    require(row, play(row, tmp_path))
