"""A branch that CI calls red before a run: told before anybody is paid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core import events as ev
from tests.engine.git_runs import GitProject
from tests.forges.loopback.script import GREEN
from tests.forges.loopback.server import FLAVOURS, TOKEN, serving
from tests.forges.scenario import Row, Scene

pytestmark = pytest.mark.whole

ALL = [pytest.param(one, marks=[] if one in ("forgejo-16", "github") else [pytest.mark.slow]) for one in FLAVOURS]


def checks(project: GitProject) -> dict[str, dict[str, str]]:
    found = json.loads(project.ganger("doctor", "--json").stdout)["checks"]
    return {row["name"]: row for row in found}


@pytest.mark.parametrize("flavour", ALL)
def test_a_red_branch_stops_the_run_before_anybody_is_paid(
    tmp_path: Path, flavour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D05 D12: host, commit, job, address and the next step; once it is green the same command goes on."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("stop", flavour=flavour), tmp_path)
    with serving(flavour, scene.world) as server:
        project = scene.project(server)
        scene.act("base red", server)
        made = project.ganger("run", "--json")
        error = json.loads(made.stdout)["error"]
        assert made.returncode == 1 and error["code"] == "BASE_RED" and not project.folder.path.exists()
        for word in (scene.ground.tip("main")[:12], "127.0.0.1", "test", "http://"):
            assert word in error["message"], error
        assert "delivery.base_red" in error["hint"] and checks(project)["ci"]["level"] == "error"
        scene.world.runs.clear()
        assert project.ganger("run", "--json").returncode == 0 and project.find(ev.Pushed)


def test_a_run_that_began_on_a_green_branch_never_stops_for_its_own_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D05 D18: only a run that begins looks at what was there before."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("own red", pushes=((), (GREEN,))), tmp_path)
    with serving("forgejo-16", scene.world) as server:
        project = scene.project(server)
        scene.act("base green", server)
        assert project.ganger("run", "--json").returncode == 3 + 1
        scene.act("base red", server)
        assert project.ganger("retry", "a").returncode == 0
        assert "BASE_RED" not in project.ganger("run", "--json").stdout


@pytest.mark.parametrize(("how", "level", "word"), [("green", "ok", "is green"), ("running", "ok", "not finished")])
def test_doctor_says_what_ci_says_of_the_branch(
    tmp_path: Path, how: str, level: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D05: what is not known yet stops nobody."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("any", more='mirror_job = ""', completion='["pushed", "ci"]'), tmp_path)
    with serving("forgejo-16", scene.world) as server:
        project = scene.project(server)
        scene.act(f"base {how}", server)
        found = checks(project)["ci"]
        assert found["level"] == level and word in found["text"]
