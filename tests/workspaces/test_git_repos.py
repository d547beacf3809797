"""Several repositories in one run: each has its store, its branch and its folders, and no workspace sees another's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.view import VISIBLE, View, view
from ganger.workspaces.git.settings import settings_for
from tests.workspaces.git_projects import Ground, git, make_project, settings_for as project_settings


class Run:
    """The project and two more repositories, `lib` and one with a name as tasks have."""

    def __init__(self, root: Path, runner: asyncio.Runner) -> None:
        self.state = root / "state"
        base = project_settings(make_project(root / "project"), self.state)
        self.grounds = {"": Ground(base, runner)}
        for name in ("lib", "t.1"):
            path = make_project(root / f"far-{name}", {"who.txt": f"{name}\n"})
            mine = settings_for(base, name, path, state=self.state, run_folder=self.state / "run-1")
            self.grounds[name] = Ground(mine, runner)
        for ground in self.grounds.values():
            ground.open()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with asyncio.Runner() as runner:
        made = Run(tmp_path, runner)
        yield made
        for ground in made.grounds.values():
            runner.run(ground.repository.close())


def test_one_task_name_works_in_every_repository_side_by_side(run: Run) -> None:
    """W02: the same task and attempt, another folder, another history, another change."""
    heads = {}
    for name, ground in run.grounds.items():
        folder = ground.place().folder
        (folder / "new.txt").write_text(f"for {name}\n")
        ground.merge(ground.take())
        heads[name] = ground.head()
    for name, ground in run.grounds.items():
        assert ground.tree(heads[name])["new.txt"][1].decode() == f"for {name}\n"
        assert [ground.do(ground.repository.has(head)) for head in heads.values()].count(True) == 1


def test_no_folder_of_one_repository_lies_in_one_that_another_sweeps(run: Run) -> None:
    """G01: clearing up after a dead lead takes nothing from the others."""
    kept = [ground.place().folder for ground in run.grounds.values()]
    kept += [
        ground.do(ground.repository.checkout("ci.0123456789ab.test", ground.head())) for ground in run.grounds.values()
    ]
    for ground in run.grounds.values():
        ground.do(ground.repository.sweep())
        ground.do(ground.repository.clear([("t", 1)]))
        assert all(folder.is_dir() for folder in kept)
        assert [left.task for left in ground.do(ground.repository.leftovers())] == ["t"]


def _seen(run: Run, name: str) -> View:
    """What an agent in the workspace of one repository sees."""
    ground, root = run.grounds[name], run.state.parent
    settings = SandboxSettings(
        project=run.grounds[""].settings.project,
        state_dir=run.state,
        home=root / "home",
        path="/usr/bin:/bin",
        readable=(root,),
        repos=tuple(one.settings.project for key, one in run.grounds.items() if key),
    )
    folder = ground.place().folder
    launch = Launch("k", ("/bin/true",), folder, {}, None, root / "log", None)
    return view(settings, Room(writable=(folder,), readable=ground.repository.shared), launch, "/bin/true")


@pytest.mark.parametrize("name", ["", "lib", "t.1"])
def test_a_workspace_sees_its_own_objects_and_no_others(run: Run, name: str) -> None:
    """G05: neither the other stores, nor their workspaces, nor anybody's checkout, even where all around is open."""
    seen = _seen(run, name)
    for key, ground in run.grounds.items():
        objects, work = ground.settings.store / "objects", ground.place().folder
        for place in (objects, work):
            spot = seen.around(str(place))
            assert (spot is not None and spot.access in VISIBLE) is (key == name), place
        checkout = seen.around(str(ground.settings.project / "who.txt"))
        assert checkout is None or checkout.access not in VISIBLE


def test_a_workspace_works_with_its_own_objects_alone(run: Run) -> None:
    """W02: git in it needs nothing but its own store."""
    folder = run.grounds["lib"].place().folder
    assert git(folder, "log", "--format=%s") == "start"
    alternates = (folder / ".git" / "objects" / "info" / "alternates").read_text().split()
    assert alternates == [str(run.grounds["lib"].settings.store / "objects")]
