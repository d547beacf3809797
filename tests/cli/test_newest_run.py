"""Which run a command means that names none: the one begun or continued last, whatever was read or copied since."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.worker.find_run import runs
from tests.cli.cli_project import ganger, kept
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, task

pytestmark = pytest.mark.whole

STUCK = {"a": {"result": {"status": "BLOCKED", "summary": "needs a key"}}}


def two_runs(root: Path, kind: type[Project] = Project) -> Path:
    """`older` and `newer`, in this order; each has one task that is blocked."""
    project = kind(root, [task("a")], STUCK, run_id="older").make()
    project.ganger("run")
    begin(root, "newer")
    return root


def begin(root: Path, name: str) -> None:
    manifest = json.loads((root / "manifest.json").read_text())
    (root / "manifest.json").write_text(json.dumps({**manifest, "run_id": name}))
    ganger("run", cwd=root)


def newest(root: Path) -> str:
    """As commands take it, and as workers do."""
    said = str(ganger("status", "--json", cwd=root).json["run_id"])
    assert os.path.basename(runs(str(root), "", os.environ)[0]) == said
    return said


def set_times(root: Path) -> None:
    for path in kept(root, "older").rglob("*"):
        os.utime(path, (4e9, 4e9), follow_symlinks=False)


READERS: dict[str, Callable[[Path], object]] = {
    **{
        word: lambda root, word=word: ganger(*word.split(), cwd=root)  # type: ignore[misc]
        for word in (
            *("status --run older", "tasks --run older", "events --run older", "why a --run older", "doctor"),
            *("logs a --run older", "inbox --run older", "state export --run older", "replay older"),
            "clean --run older",
            *("pause --run older", "retry a --run older", "stop --run older", "skip a --run older"),
        )
    },
    "times that were set": set_times,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_runs(tmp_path_factory.mktemp("both"))


@pytest.mark.brief(5)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_looking_at_another_run_makes_it_none_the_newer(both: Path, read: Callable[[Path], object]) -> None:
    """G12 T26: only a lead makes a run the newest."""
    read(both)
    assert newest(both) == "newer"


def test_a_command_that_names_no_run_acts_on_the_newest(tmp_path: Path) -> None:
    """G12: after somebody has looked at another one."""
    root = two_runs(tmp_path)
    ganger("status", "--run", "older", cwd=root)
    assert ganger("skip", "a", "--json", cwd=root).json["run_id"] == "newer"


def test_a_run_that_is_continued_is_the_newest_again(tmp_path: Path) -> None:
    """T20 G12: also where the clock went back meanwhile."""
    root = two_runs(tmp_path)
    for path in kept(root, "newer").rglob("*"):
        os.utime(path, (4e9, 4e9), follow_symlinks=False)
    begin(root, "older")
    assert newest(root) == "older"
    begin(root, "newer")
    assert newest(root) == "newer"


def test_a_copy_of_a_runs_folder_is_not_taken_for_the_run(tmp_path: Path) -> None:
    """G12: neither that of the newest nor that of an older one."""
    root = two_runs(tmp_path, GitProject)
    for name in ("older", "newer"):
        shutil.copytree(kept(root, name), kept(root, name).with_name(f"{name}-zcopy"), symlinks=True)
    assert newest(root) == "newer"


def test_runs_that_are_kept_in_both_places_are_one_line(tmp_path: Path) -> None:
    """W02 G12: a run in the project's own folder, then one in the user's."""
    root = two_runs(tmp_path, GitProject)
    text = (root / "ganger.toml").read_text()
    (root / "ganger.toml").write_text(text.replace("local-git", "direct"))
    begin(root, "in-place")
    assert kept(root, "in-place").parent != kept(root, "newer").parent and newest(root) == "in-place"
    ganger("status", "--run", "newer", cwd=root)
    assert newest(root) == "in-place"


@pytest.mark.parametrize("damage", ["", "[1]", '{"number": "9"}', '{"number": true}', '{"number": -1}', "\x00"])
def test_what_an_earlier_version_or_a_power_cut_left_is_an_older_run(tmp_path: Path, damage: str) -> None:
    """G12: and the next lead mends it."""
    root = two_runs(tmp_path)
    (kept(root, "older") / "led.json").write_text(damage)
    assert newest(root) == "newer"
    begin(root, "older")
    assert newest(root) == "older"
