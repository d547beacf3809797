"""Changes put onto newer heads: clean ones fit, clashing ones are told, and the same question has one answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.errors import GangerError
from ganger.ports.repository import Conflict, Rebased, Taken
from tests.workspaces.git_projects import Ground, git, ground_at, make_project


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with ground_at(tmp_path) as one:
        one.open()
        yield one


def _change(ground: Ground, task: str, **files: str) -> Taken:
    folder = ground.place(task).folder
    for name, text in files.items():
        (folder / "src" / f"{name}.py").write_text(text)
    return ground.take(task)


def _lines(**changed: str) -> str:
    return "".join(f"{changed.get(f'n{n}', f'line {n}')}\n" for n in range(40))


def test_changes_that_do_not_meet_are_merged(ground: Ground) -> None:
    """G03: one commit on the new head, with the message and author of the change; both changes are in it."""
    first, second = _change(ground, "a", one=_lines(n2="A")), _change(ground, "b", one=_lines(n30="B"))
    ground.merge(first)
    put = ground.do(ground.repository.rebase(second.commit, second.base, first.commit))
    assert isinstance(put, Rebased)
    assert ground.tree(put.commit)["src/one.py"][1].decode() == _lines(n2="A", n30="B")
    assert git(ground.settings.store, "log", "-1", "--format=%s %P", put.commit) == f"b: done {first.commit}"
    assert ground.do(ground.repository.tree_of(put.commit)) == put.tree


def test_the_same_question_gets_the_same_commit(ground: Ground) -> None:
    """G01: after a kill the work is done again and ends at the same id."""
    first, second = _change(ground, "a", x="1\n"), _change(ground, "b", y="2\n")
    answers = {ground.do(ground.repository.rebase(second.commit, second.base, first.commit)) for _ in range(3)}
    assert len(answers) == 1


def test_a_change_on_the_head_itself_is_its_own_commit(ground: Ground) -> None:
    """G03: nothing is rewritten that fits as it is."""
    taken = _change(ground, "a", x="1\n")
    assert ground.do(ground.repository.rebase(taken.commit, taken.base, taken.base)).commit == taken.commit  # type: ignore[union-attr]


def test_a_change_that_is_there_already_gives_the_head(ground: Ground) -> None:
    """G03: a repeated merge and an equal change of another task add no commit."""
    first, twin = _change(ground, "a", x="1\n"), _change(ground, "b", x="1\n")
    ground.merge(first)
    for again in (first, twin):
        put = ground.do(ground.repository.rebase(again.commit, again.base, ground.head()))
        assert isinstance(put, Rebased) and put.commit == first.commit


def test_a_clash_names_its_files_and_shows_both_sides(ground: Ground) -> None:
    """G03: what the next attempt is told; the branch is as it was."""
    first, second = _change(ground, "a", one=_lines(n5="A"), two="x\n"), _change(ground, "b", one=_lines(n5="B"))
    ground.merge(first)
    clash = ground.do(ground.repository.rebase(second.commit, second.base, first.commit))
    assert isinstance(clash, Conflict) and clash.files == ("src/one.py",)
    for line in ("<<<<<<< the integration branch", "A", "=======", "B", ">>>>>>> this task", "line 4"):
        assert line in clash.excerpt.splitlines()
    assert "line 20" not in clash.excerpt and ground.head() == first.commit


def test_deletion_against_change_and_file_against_folder_are_clashes(ground: Ground) -> None:
    """G03: told in words where there are no marks to show."""
    gone = ground.place("a").folder
    (gone / "src/two.py").unlink()
    (gone / "README.md").unlink()
    (gone / "README.md").mkdir()
    (gone / "README.md/x").write_text("x")
    first = ground.take("a")
    folder = ground.place("b").folder
    (folder / "README.md").write_text("changed\n")
    second = _change(ground, "b", two="changed\n")
    ground.merge(first)
    clash = ground.do(ground.repository.rebase(second.commit, second.base, first.commit))
    assert isinstance(clash, Conflict) and "src/two.py" in clash.files
    assert "modify/delete" in clash.excerpt and "file/directory" in clash.excerpt


def test_an_excerpt_is_short_and_holds_no_control_characters(ground: Ground) -> None:
    """Huge and hostile conflicts become a bounded, plain text."""
    long = "\x1b[31m\u202e" + "x" * 3000 + "\n"
    first = _change(ground, "a", **{f"f{n}": "1" + long * 30 for n in range(20)})
    second = _change(ground, "b", **{f"f{n}": "2" + long * 30 for n in range(20)})
    ground.merge(first)
    clash = ground.do(ground.repository.rebase(second.commit, second.base, first.commit))
    assert isinstance(clash, Conflict) and len(clash.files) == 20
    assert len(clash.excerpt.encode()) < 8200 and clash.excerpt.count("\n") <= 201
    assert all(char in "\n\t…" or char.isprintable() for char in clash.excerpt)


def test_a_change_from_a_base_the_head_does_not_descend_from_is_merged_by_that_base(ground: Ground) -> None:
    """G03: the base is the one that is given, also where history says nothing of it."""
    first, second = _change(ground, "a", one=_lines(n2="A")), _change(ground, "b", one=_lines(n30="B"))
    onto_first = ground.do(ground.repository.rebase(second.commit, second.base, first.commit))
    assert isinstance(onto_first, Rebased)
    put = ground.do(ground.repository.rebase(onto_first.commit, first.commit, first.base))
    assert isinstance(put, Rebased)
    assert ground.tree(put.commit) == ground.tree(second.commit)


def test_the_projects_own_attributes_say_how_to_merge(tmp_path: Path) -> None:
    """G03: a change log merged as a union takes the lines of every task; a driver nobody knows is no program."""
    make_project(tmp_path / "project", {"CHANGES": "top\n", ".gitattributes": "CHANGES merge=union\n*.x merge=evil\n"})
    with ground_at(tmp_path) as ground:
        ground.open()
        taken = []
        for task in ("a", "b"):
            (ground.place(task).folder / "CHANGES").write_text(f"top\n{task}\n")
            taken.append(ground.take(task))
        for one in taken:
            ground.merge(one)
        assert ground.tree(ground.head())["CHANGES"][1] == b"top\na\nb\n"


def test_a_missing_commit_is_an_error_and_no_conflict(ground: Ground) -> None:
    """G03: exit code 1 alone says nothing."""
    taken = _change(ground, "a", x="1\n")
    with pytest.raises(GangerError, match="is not in"):
        ground.do(ground.repository.rebase(taken.commit, taken.base, "1" * 40))
    with pytest.raises(GangerError, match="not a commit id"):
        ground.do(ground.repository.rebase("--help", taken.base, taken.base))
    assert not ground.do(ground.repository.has("1" * 40)) and ground.do(ground.repository.has(taken.commit))
