"""How a run ends, in every mode: all that was said is recorded, nobody is told a stop that was none."""

from __future__ import annotations

from pathlib import Path

import pytest
from delivery_runs import DeliveryProject
from git_runs import GitProject, edits
from run_projects import Project, done, task, write

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus

TWO = [task("a"), task("b")]
EDITED = {name: edits({f"{name}.txt": "x\n"}) for name in "ab"}
WRITTEN = {name: done(write(f"{name}.txt", "x\n")) for name in "ab"}


def direct(root: Path) -> Project:
    return Project(root, TWO, WRITTEN)


def local_git(root: Path) -> Project:
    return GitProject(root, TWO, EDITED)


def side_by_side(root: Path) -> Project:
    return GitProject(root, TWO, EDITED, policy="concurrency = 2")


def by_levels(root: Path) -> Project:
    return GitProject(root, TWO, EDITED, workspace='merging = "level"')


def no_change(root: Path) -> Project:
    return GitProject(root, TWO)


def delivered(root: Path) -> Project:
    return DeliveryProject(root, TWO, EDITED)


def delivered_by_request(root: Path) -> Project:
    return DeliveryProject(root, TWO, EDITED, settings='style = "request"')


MODES = (direct, local_git, side_by_side, by_levels, no_change, delivered)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
def test_after_a_run_that_ended_the_journal_is_sound_and_has_its_last_snapshot(tmp_path: Path, mode: object) -> None:
    """T19 T20: no event is refused or lost at the end, and the next start reads the snapshot."""
    project = mode(tmp_path / "p").make()  # type: ignore[operator]
    assert project.run() == 0 and project.state().refused == []
    assert {project.status(name) for name in "ab"} == {TaskStatus.DONE}
    assert not project.find(ev.AttemptInterrupted)
