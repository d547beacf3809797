"""How a run ends, in every mode: all that was said is recorded, nobody is told a stop that was none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.engine.lead import Lead
from ganger.errors import StaleToken
from tests.engine.delivery_runs import DeliveryProject
from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import Project, done, task, write

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


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
def test_after_a_run_that_ended_the_journal_is_sound_and_has_its_last_snapshot(tmp_path: Path, mode: object) -> None:
    """T19 T20: no event is refused or lost at the end, and the next start reads the snapshot."""
    project = mode(tmp_path / "p").make()  # type: ignore[operator]
    assert project.run() == 0 and project.state().log.refused == []
    assert {project.status(name) for name in "ab"} == {TaskStatus.DONE}
    assert not project.find(ev.AttemptInterrupted)


def as_the_branch_moves(then: Callable[[Lead], Awaitable[object]]) -> Callable[[Lead], None]:
    """Something happens after the branch has moved and before that is recorded."""

    def during(lead: Lead) -> None:
        repository = lead.tools.repositories[""]
        move = repository.move_head

        async def moved(old: str, new: str) -> bool:
            made = await move(old, new)
            await then(lead)
            return made

        repository.move_head = moved  # type: ignore[assignment,method-assign]

    return during


async def nobody_waits(lead: Lead) -> None:
    while lead.state.index.in_merge_queue:
        await lead.journal.changed()


@pytest.mark.parametrize("mode", [local_git, side_by_side, by_levels], ids=lambda mode: mode.__name__)
def test_a_run_that_is_stopped_as_its_branch_moves_is_sound_and_goes_on(tmp_path: Path, mode: object) -> None:
    """T19 T20 H10: whose change is in the branch is DONE, and is not told that it was stopped."""
    project = mode(tmp_path / "p").make()  # type: ignore[operator]

    async def stop(lead: Lead) -> None:
        lead.stop("asked to")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(nobody_waits(lead), 1)

    assert project.run(during=as_the_branch_moves(stop)) in (0, 130)
    merged = {event.task for event in project.find(ev.Merged)}
    assert merged and not merged & {event.task for event in project.find(ev.AttemptInterrupted)}
    assert project.run() == 0
    assert sum(event.task in merged for event in project.find(ev.AttemptLaunched)) == len(merged)


def test_a_branch_that_moved_for_an_attempt_that_was_ended_wedges_no_run(tmp_path: Path) -> None:
    """H10 T20: the next lead takes the branch as it stands, and nobody is paid again."""
    project = local_git(tmp_path / "p").make()

    async def interrupt(lead: Lead) -> None:
        name = next(iter(lead.state.index.in_merge_queue))
        task = lead.state.tasks[name]
        ended = ev.AttemptInterrupted(name, task.attempts, "the run was stopped", harvest=True)
        await lead.journal.report(name, task.attempt.token, ended)

    with pytest.raises(StaleToken):
        project.run(during=as_the_branch_moves(interrupt))
    assert project.run() == 0 and len(project.find(ev.AttemptLaunched)) == 2
    assert sorted(project.merged_files())[:2] == ["a.txt", "b.txt"]  # type: ignore[attr-defined]
