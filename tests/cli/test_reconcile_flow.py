"""A manifest or prompt that changed under a run: it stops, shows, and goes on only when told to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, manifest, task

pytestmark = pytest.mark.whole

DONE = {"result": {"status": "DONE", "summary": "x"}}
TASKS = (task("one"), task("two", prompt_ref="two.md", depends_on=["one"]), task("three"))
SCRIPT = {name: [[DONE], [DONE], [DONE]] for name in ("one", "two", "three", "four")}


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run is complete."""
    root = make_project(tmp_path_factory.mktemp("complete"), *TASKS, script=SCRIPT)
    (root / "two.md").write_text("Do the second thing.\n")
    assert ganger("run", cwd=root).code == 0
    return root


@pytest.fixture
def root(complete: Path, tmp_path: Path) -> Path:
    """The same for each test; a project may be moved between two leads."""
    return shutil.copytree(complete, tmp_path / "moved")


def give(root: Path, *tasks: dict[str, object]) -> None:
    (root / "manifest.json").write_text(json.dumps(manifest(*tasks)))


def attempts(root: Path) -> dict[str, int]:
    return {row["id"]: row["attempts"] for row in ganger("tasks", "--json", cwd=root).json["tasks"]}


@pytest.mark.quick
def test_a_changed_prompt_stops_the_run_and_names_the_task(root: Path) -> None:
    """T20: nothing is started, and the next step is named."""
    (root / "two.md").write_text("Do something else.\n")
    answer = ganger("run", "--json", cwd=root)
    error = answer.json["error"]
    assert answer.code == 1 and error["code"] == "MANIFEST_CHANGED" and "--reconcile" in error["hint"]
    assert "changed  two (DONE): content of two.md; runs again from the beginning" in error["message"]
    assert attempts(root) == {"one": 1, "two": 1, "three": 1}


def test_a_dry_run_shows_what_reconciling_would_do_and_does_nothing(root: Path) -> None:
    """T20: added, removed and changed tasks, each with its reason."""
    give(root, TASKS[0], task("two", prompt_ref="prompt.md", depends_on=["one"]), task("four"))
    answer = ganger("run", "--reconcile", "--dry-run", cwd=root)
    assert answer.code == 0
    for line in ("added    four: will run", "removed  three: leaves the run", "changed  two (DONE): prompt_ref;"):
        assert line in answer.out
    assert ganger("run", cwd=root).code == 1
    assert attempts(root) == {"one": 1, "two": 1, "three": 1}


def test_reconciling_says_what_it_does_then_runs_what_changed_and_nothing_else(root: Path) -> None:
    """T20: and afterwards the run goes on as any other."""
    give(root, TASKS[0], task("two", prompt_ref="prompt.md", depends_on=["one"]), task("four"))
    answer = ganger("run", "--reconcile", cwd=root)
    assert answer.code == 0, answer.err
    assert "removed  three: leaves the run" in answer.err
    assert attempts(root) == {"one": 1, "two": 2, "four": 1}
    assert "already COMPLETED" in ganger("run", cwd=root).err


@pytest.mark.slow
def test_dependencies_written_in_another_order_change_nothing(tmp_path: Path) -> None:
    """T20: what is DONE stays done while the digest matches."""
    last = task("last", depends_on=["one", "two"])
    make_project(tmp_path, task("one"), task("two"), last, script=SCRIPT | {"last": [[DONE]]})
    ganger("run", "--max-tasks", "1", cwd=tmp_path)
    give(tmp_path, task("one"), task("two"), task("last", depends_on=["two", "one"]))
    assert ganger("run", cwd=tmp_path).code == 0
