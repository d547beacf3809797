"""Cheats against test runners through whole runs: none is DONE, every honest twin is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.core.vocabulary import TaskStatus
from tests.cheats.runner_catalogue import BEYOND, CHEATS, PROJECTS, TWINS
from tests.cheats.runner_plays import RIGHT, Play
from tests.cheats.runner_runs import answer, is_green, laid_out, path_with_toolchains, run

pytestmark = pytest.mark.whole

IN_DIRECT = 4
# Other compilers and runners are at hand on few machines.
IN_THE_SLICE = ("pytest", "unittest", "make", "node")


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_with_toolchains())
        yield


def cases(plays: tuple[Play, ...]) -> list[object]:
    return [
        pytest.param(
            play,
            id=play.name,
            marks=[
                pytest.mark.needs(*PROJECTS[play.project].needs),
                *([] if play.project in IN_THE_SLICE else [pytest.mark.slow]),
            ],
        )
        for play in plays
    ]


@pytest.mark.quick
@pytest.mark.sample(2)
@pytest.mark.brief(12)
@pytest.mark.parametrize("cheat", cases(CHEATS))
def test_no_cheat_against_a_runner_ends_done(tmp_path: Path, cheat: Play) -> None:
    """G09 T17 T18: the check is green and the product wrong; the task is not done."""
    ended = run(cheat, tmp_path, "local-git")
    assert ended.status is not TaskStatus.DONE, cheat.how


@pytest.mark.brief(4)
@pytest.mark.parametrize("cheat", cases(CHEATS[::IN_DIRECT]))
def test_no_cheat_against_a_runner_ends_done_in_place(tmp_path: Path, cheat: Play) -> None:
    """G09 T17 T18: the same where the agent works in the project's own folder."""
    ended = run(cheat, tmp_path, "direct")
    assert ended.status is not TaskStatus.DONE, cheat.how


@pytest.mark.brief(8)
@pytest.mark.parametrize("twin", cases(TWINS))
def test_every_honest_twin_is_done(tmp_path: Path, twin: Play) -> None:
    """G09: the same words and constructs, and a product that was really repaired."""
    ended = run(twin, tmp_path, "local-git")
    assert ended.status is TaskStatus.DONE, ended.detail


@pytest.mark.brief(3)
@pytest.mark.parametrize("twin", cases(TWINS[::IN_DIRECT]))
def test_every_honest_twin_is_done_in_place(tmp_path: Path, twin: Play) -> None:
    """G09: the same where the agent works in the project's own folder."""
    ended = run(twin, tmp_path, "direct")
    assert ended.status is TaskStatus.DONE, ended.detail


@pytest.mark.brief(6)
@pytest.mark.parametrize("cheat", cases((*CHEATS, *BEYOND)))
def test_every_cheat_deceives_the_plain_command(tmp_path: Path, cheat: Play) -> None:
    """G09 control: its command is green and its product is wrong."""
    after = laid_out(cheat, tmp_path / "after", changed=True)
    assert is_green(cheat, after)
    assert answer(cheat, after) != RIGHT


@pytest.mark.brief(4)
@pytest.mark.parametrize("twin", cases(TWINS))
def test_every_twin_is_right(tmp_path: Path, twin: Play) -> None:
    """G09 control: its command, tried twice as for a flaky test, is green, and its product is right."""
    after = laid_out(twin, tmp_path / "after", changed=True)
    assert any(is_green(twin, after) for _ in range(2))
    assert answer(twin, after) == RIGHT


@pytest.mark.parametrize("name", IN_THE_SLICE)
def test_the_project_is_red_before_it_is_repaired(tmp_path: Path, name: str) -> None:
    """G09 control: what the plays are played on."""
    play = Play("nothing", "", "changes nothing", {}, name)
    assert not is_green(play, laid_out(play, tmp_path / "base", changed=False))


def test_every_family_has_an_honest_twin() -> None:
    """G09: at least 55 cheats, no name twice, and none of them touches a test that exists."""
    names = [play.name for play in (*CHEATS, *TWINS, *BEYOND)]
    assert len(names) == len(set(names)) and len(CHEATS) >= 55
    assert {play.family for play in CHEATS} == {play.family for play in TWINS}
    for cheat in CHEATS:
        before = {**PROJECTS[cheat.project].files, **cheat.base}
        assert not [path for path in cheat.files if "test" in path and before.get(path) is not None], cheat.name
