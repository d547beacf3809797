"""Deliveries under trouble that comes twice or at the wrong moment, judged by what the forge itself knows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.git_runs import GitProject
from tests.forges.loopback.script import GREEN, MIRROR, Fault, Run, ci
from tests.forges.loopback.server import LoopbackForge
from tests.forges.scenario import Row, Scene, play, require
from tests.forges.truth import Needs

pytestmark = pytest.mark.whole

REQUEST = 'style = "request"'
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


@pytest.mark.brief(2)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_trouble_with_ci_is_never_a_verdict(tmp_path: Path, row: Row) -> None:
    """D02 D03 D04 D05: what a run said before it ran again, or has not said yet, counts for nothing."""
    require(row, play(row, tmp_path))


SKIPPED = ci({MIRROR: "block skip"})
RETRIED = [
    Row(
        "CI that was off is begun with a commit of nothing",
        ((), (GREEN,)),
        retry="allow",
        pushed=2,
        empty=1,
        before=("base green",),
    ),
    Row("a mirror is asked again", ((SKIPPED,), (SKIPPED,), (GREEN,)), retry="allow", pushed=3, empty=2),
]


@pytest.mark.brief(2)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in RETRIED])
def test_a_person_s_retry_tries_again_what_was_tried(tmp_path: Path, row: Row) -> None:
    """D04 D05 G12: what Ganger does once by itself it does once more for whoever saw to the cause."""
    require(row, play(row, tmp_path))


class Behind(Scene):
    """Task `a` finds nothing to do after `t1`, which it needs."""

    def project(self, server: LoopbackForge) -> GitProject:
        project = super().project(server)
        manifest = project.root / "manifest.json"
        tasks = json.loads(manifest.read_text())
        tasks["tasks"][0]["depends_on"] = ["t1"]
        manifest.write_text(json.dumps(tasks))
        return project


def test_who_changes_nothing_brings_no_changes_of_others_to_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W02: a change reaches the target by its own change request or not at all."""
    monkeypatch.setattr("tests.forges.scenario.Scene", Behind)
    row = Row("nothing to do", more=REQUEST, tasks=2, attempts=({},))
    outcome = play(row, tmp_path)
    assert (outcome.code, len(outcome.scene.world.asked)) == (0, 1), outcome.detail()
    assert "t1.txt" not in outcome.scene.ground.git("ls-tree", "--name-only", "main")


def test_a_request_that_somebody_merged_is_not_missed(tmp_path: Path) -> None:
    """W02 D01: its branch is gone because it is merged, with exactly the commit that was proved."""
    meanwhile = ((3, "merge and delete"),)
    row = Row("merged by hand", more=REQUEST, requests=1, meanwhile=meanwhile, completion=PLAIN, needs=CI)
    outcome = play(row, tmp_path)
    now = outcome.project.state().tasks["a"]
    assert outcome.ended() == "DONE", outcome.detail()
    assert now.delivery is not None and now.delivery.request is not None and now.delivery.request.merged
