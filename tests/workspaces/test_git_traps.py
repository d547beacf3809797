"""No trap an agent or a repository lays for git goes off under Ganger, and the same traps catch plain git."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ganger.errors import WriteRefused
from ganger.ports.repository import Conflict
from tests.workspaces.git_projects import Ground, git, ground_at, make_project, settings_for
from tests.workspaces.git_traps import TRAPS, Trapper, embedded, filters_and_drivers, hooks, programs_in_config

pytestmark = pytest.mark.whole

SPRINGS_ON_PLAIN_GIT = set(TRAPS) - {"transports", "names_like_options", "embedded"}


def _edit(folder: Path, text: str) -> None:
    (folder / "src/two.py").write_text(text)
    (folder / "data.bin").write_text(text)


def _whole_round(ground: Ground, task: str) -> None:
    """Everything Ganger does with a workspace, an attempt and a change."""
    repository = ground.repository
    ground.place(task)
    try:
        taken = ground.take(task)
    except WriteRefused as refusal:
        assert refusal.code == "EMBEDDED_REPOSITORY"
    else:
        other = ground.place("other")
        _edit(other.folder, "other\n")
        mine = ground.take("other")
        put = ground.do(repository.rebase(taken.commit, taken.base, mine.commit))
        assert isinstance(put, Conflict)
        ground.do(repository.checkout("c", taken.commit))
        assert ground.do(repository.move_head(taken.base, taken.commit))
        ground.place("after")
    assert ground.save(task)[0]
    ground.do(repository.leftovers())
    assert ground.do(repository.fsck()) == ""
    ground.do(repository.release(task, 1))
    ground.do(repository.sweep())


@pytest.mark.parametrize("trap", TRAPS)
def test_no_trap_of_an_agent_goes_off(trap: str, tmp_path: Path) -> None:
    """W02 G03 R11: git is only run on a git folder Ganger owns; plain git in the same folder is caught."""
    trapper = Trapper(tmp_path / "marks", tmp_path / "programs")
    with ground_at(tmp_path) as ground:
        ground.open()
        folder = ground.place("t").folder
        _edit(folder, "mine\n")
        TRAPS[trap](folder, trapper)
        for mark in trapper.sprung():
            (trapper.marks / mark).unlink()
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy, symlinks=True)
        _whole_round(ground, "t")
        assert trapper.sprung() == set()
        _plain_git(copy)
        if trap in SPRINGS_ON_PLAIN_GIT:
            assert trapper.sprung(), "the control caught nothing, so the test proves nothing"


def _plain_git(folder: Path) -> None:
    for words in (
        ("status",),
        ("diff",),
        ("add", "-A"),
        ("commit", "-m", "x"),
        ("ls-files",),
        ("checkout", "-q", "HEAD~1"),
    ):
        git(folder, *words, check=False)


def test_all_traps_at_once_do_not_go_off_either(tmp_path: Path) -> None:
    """R11: together as well."""
    trapper = Trapper(tmp_path / "marks", tmp_path / "programs")
    with ground_at(tmp_path) as ground:
        ground.open()
        folder = ground.place("t").folder
        _edit(folder, "mine\n")
        for name, trap in TRAPS.items():
            if name != "hooks_path":
                trap(folder, trapper)
        for mark in trapper.sprung():
            (trapper.marks / mark).unlink()
        _whole_round(ground, "t")
        assert trapper.sprung() == set()


def test_nothing_of_the_users_own_repository_is_run(tmp_path: Path) -> None:
    """W02: opening, looking and exporting run no hook, filter or program of the project's configuration."""
    trapper = Trapper(tmp_path / "marks", tmp_path / "programs")
    project = make_project(tmp_path / "project")
    for trap in (hooks, programs_in_config, filters_and_drivers, embedded):
        trap(project, trapper)
    (project / "src/two.py").write_text("uncommitted\n")
    for mark in trapper.sprung():
        (trapper.marks / mark).unlink()
    with ground_at(tmp_path) as ground:
        ground.open()
        assert "src/two.py" in ground.do(ground.repository.uncommitted())
        (ground.place().folder / "new.txt").write_text("x")
        ground.do(ground.repository.export(ground.take().commit, project, "refs/heads/landed"))
        second = Ground(settings_for(project, tmp_path / "state", "run-2"), ground.runner)
        second.open()
        assert trapper.sprung() == set()
    git(project, "status", check=False)
    assert trapper.sprung(), "the control caught nothing, so the test proves nothing"


def test_the_caller_s_environment_does_not_reach_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R11: neither variables that redirect git nor a home with a configuration."""
    trapper = Trapper(tmp_path / "marks", tmp_path / "programs")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {trapper.program('home')}\n\thooksPath = {home}\n")
    with ground_at(tmp_path) as ground:
        for name, value in {
            "HOME": str(home),
            "GIT_DIR": "/nonexistent",
            "GIT_EXTERNAL_DIFF": trapper.program("environment"),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": trapper.program("count"),
            "GIT_INDEX_FILE": "/nonexistent",
            "GIT_OBJECT_DIRECTORY": "/nonexistent",
            "GIT_TRACE": str(trapper.marks / "trace"),
        }.items():
            monkeypatch.setenv(name, value)
        ground.open()
        _edit(ground.place("t").folder, "x\n")
        _whole_round(ground, "t")
    assert trapper.sprung() == set()
