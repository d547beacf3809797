"""Remotes and forges are asked before a run starts anybody; what would stop every delivery is told at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.app.preflight import delivering_repos, meet
from ganger.config import load_project
from ganger.core import events as ev
from tests.engine.git_runs import GitProject
from tests.forges.loopback.server import TOKEN, LoopbackForge, serving
from tests.forges.scenario import Row, Scene, free_port

pytestmark = pytest.mark.whole


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(Row("any"), tmp_path)


@pytest.fixture
def server(scene: Scene) -> Iterator[LoopbackForge]:
    with serving("forgejo-16", scene.world) as server:
        yield server


@pytest.fixture
def project(scene: Scene, server: LoopbackForge, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    return scene.project(server)


def test_a_variable_that_is_not_set_is_told_before_anything_exists(
    project: GitProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D19: named with what to do; no run is begun."""
    monkeypatch.delenv("LOOPBACK_TOKEN")
    made = project.ganger("run", "--json")
    error = json.loads(made.stdout)["error"]
    assert made.returncode == 1 and error["code"] == "FORGE_DENIED" and "LOOPBACK_TOKEN" in error["message"]
    assert not project.folder.path.exists()


def test_a_token_that_the_forge_refuses_costs_no_agent_and_no_push(
    project: GitProject, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D12 D19: the forge is greeted first."""
    monkeypatch.setenv("LOOPBACK_TOKEN", "another-token")
    made = project.ganger("run")
    assert made.returncode == 1 and "FORGE_DENIED" in made.stderr and "another-token" not in made.stdout + made.stderr
    assert not project.folder.path.exists() and scene.ground.pushes() == []


def test_a_forge_that_does_not_answer_now_is_only_told(project: GitProject, server: LoopbackForge) -> None:
    """D05 D12: it may answer by the time there is something to deliver."""
    config = project.root / "ganger.toml"
    text = config.read_text().replace(server.url, f"http://127.0.0.1:{free_port()}")
    text = text.replace('"pushed", "ci", "mirrored"', '"pushed"')
    config.write_text(re.sub(r"required_jobs = .*", "", text))
    made = project.ganger("run")
    assert made.returncode == 0, made.stderr
    assert "note:" in made.stderr and project.find(ev.Pushed)


def test_doctor_says_who_answers_and_as_whom(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """D19: a line each for the remote and the forge, and an error that names the token's variable."""
    found = json.loads(project.ganger("doctor", "--json").stdout)["checks"]
    by_name = {row["name"]: row for row in found}
    assert "main is at" in by_name["remote"]["text"] and by_name["forge"]["level"] == "ok"
    monkeypatch.delenv("LOOPBACK_TOKEN")
    found = json.loads(project.ganger("doctor", "--json").stdout)["checks"]
    (told,) = [row for row in found if row["name"] == "token"]
    assert told["level"] == "error" and "LOOPBACK_TOKEN" in told["text"]


@pytest.mark.slow
def test_a_run_that_has_begun_goes_on_whatever_its_token(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """D18: what meets it then waits for a person; nothing else stops. How often the forge was asked is shown."""
    assert project.ganger("run").returncode == 0
    assert "requests in the last minute" in project.ganger("status").stdout
    monkeypatch.delenv("LOOPBACK_TOKEN")
    assert project.ganger("run").returncode == 0


ASKED = 'style = "request"\nauto_merge = true\n'


@pytest.mark.parametrize("flavour", ["forgejo-16", "gitea-1.27", "github", "gitlab"])
@pytest.mark.parametrize(
    ("rule", "more", "stops", "says"),
    [
        ("approvals=1", "", True, "may not push to it"),
        ("push approvals=2", ASKED, False, "needs 2 approvals on the forge"),
        ("push approvals=1", ASKED + 'review = "person"\n', False, ""),
        ("push", "", False, ""),
    ],
    ids=["protected", "approvals and nobody reviews", "approvals and a person reviews", "open"],
)
def test_what_a_branch_asks_for_is_told_before_anybody_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str, rule: str, more: str, stops: bool, says: str
) -> None:
    """D12 D19: no delivery could get past it, or each would wait there."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("any", flavour=flavour, over_http=True, more=more), tmp_path)
    with serving(flavour, scene.world) as server:
        project = scene.project(server)
        scene.act(f"protect main {rule}", server)
        found = load_project(project.root)
        told = [met for met in meet(found, delivering_repos(found)) if met.name == "branch" and met.trouble]
    assert ([met.warns for met in told], says in told[0].text if told else True) == ([not stops] if says else [], True)


def test_a_run_on_a_branch_that_takes_no_push_starts_no_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D12: said at once, with what to do."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("any", over_http=True), tmp_path)
    with serving("forgejo-16", scene.world) as server:
        project = scene.project(server)
        scene.act("protect main approvals=1", server)
        made = project.ganger("run", "--json")
    error = json.loads(made.stdout)["error"]
    assert (made.returncode, error["code"]) == (1, "BRANCH_RULES") and 'style = "request"' in error["hint"]
    assert not project.folder.path.exists()
