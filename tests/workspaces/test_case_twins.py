"""Two names that many systems cannot tell apart: beside what the base has, and where two changes meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.contracts.task_result import Write
from ganger.errors import WriteRefused
from ganger.ports.changes import Change, Rules
from ganger.ports.repository import Conflict, Taken
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.writes import WriteRequest, WriteRules, check_changes
from ganger.workspaces.safeguards import ChangeLimits, require
from tests.workspaces.git_projects import Ground, ground_at, make_project
from tests.workspaces.judged_change import MadeChange, codes, link
from tests.workspaces.watch_harness import watched

BASE = {"README.md": "a", "tests/test_price.py": "a", "src/deep/x.py": "a", "stra\u00dfe.txt": "a", "caf\u00e9.md": "a"}


@pytest.mark.parametrize(
    "path",
    [
        "readme.md",
        "Tests/test_price.py",
        "Tests/test_other.py",
        "SRC/y.py",
        "src/Deep/y.py",
        "Src",
        "README.MD/x",
        "strasse.txt",
        "cafe\u0301.md",
        "Readme.md.",
    ],
    ids=ascii,
)
def test_a_new_name_that_is_an_existing_one_elsewhere_is_refused(path: str) -> None:
    """T18: files, folders, one for the other; by case, by accents in two pieces, by letters that fold into two."""
    assert (path, "CASE_TWIN") in codes(MadeChange(BASE, {**BASE, path: "b"}), Rules(may_change_gates=True))
    assert (path, "CASE_TWIN") in codes(MadeChange(BASE, {**BASE, path: link("src")}), Rules(may_change_gates=True))


def test_the_refusal_names_both_and_the_way_out() -> None:
    """T18: what is there, what would come."""
    with pytest.raises(WriteRefused, match=r"'Src' and 'src', which exists already.*use the name that exists"):
        require(MadeChange(BASE, {**BASE, "Src/new.py": "b"}), Rules(), ChangeLimits())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"README.md": "a"}, {"readme.md": "a"}),
        ({"Src/a.py": "a", "Src/b/c.py": "c"}, {"src/a.py": "a", "src/b/c.py": "c"}),
        ({"Src/a.py": "a", "other": "o"}, {"src": "a", "other": "o"}),
        ({"A.md": "a", "a.md": "b"}, {"A.md": "c", "a.md": "d"}),
        ({"Src/a": "a", "src/b": "b"}, {"Src/a": "a", "src/b": "b", "src/c": "c"}),
        ({"README.md": "a"}, {"README.md": "a", "docs/readme.md": "b", "readme.txt": "c"}),
    ],
    ids=["file-renamed", "folder-renamed", "folder-becomes-file", "twins-edited", "new-below-a-twin", "elsewhere"],
)
def test_what_goes_away_or_was_there_is_no_twin(before: dict[str, str], after: dict[str, str]) -> None:
    """T18: renaming by case alone is work, and a project that has twins can be worked on."""
    assert codes(MadeChange(before, after)) == []


def test_writes_to_twins_that_are_there_are_taken(tmp_path: Path) -> None:
    """T18: the planner of writes holds the same rule."""
    (tmp_path / "A.md").write_text("a")
    (tmp_path / "a.md").write_text("b")
    writes = [WriteRequest("A.md", "replace", "c"), WriteRequest("a.md", "replace", "d")]
    with Tree(tmp_path) as tree:
        assert check_changes(tree, writes, WriteRules()) == []
        more = [*writes, WriteRequest("B.md", "create", "c"), WriteRequest("b.md", "create", "d")]
        assert [one.code for one in check_changes(tree, more, WriteRules())] == ["CASE_TWIN"]


def test_a_folder_that_keeps_one_file_stays_a_twin() -> None:
    """T18: a rename that forgets something leaves both folders."""
    before = {"Src/a.py": "a", "Src/b.py": "b"}
    assert codes(MadeChange(before, {"src/a.py": "a", "Src/b.py": "b"})) == [("src/a.py", "CASE_TWIN")]


class JudgedGround(Ground):
    """With the safeguards of a run."""

    def _judge(self, change: Change, rules: Rules) -> None:
        require(change, rules, ChangeLimits())


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    make_project(tmp_path / "project", {"README.md": "a\n", "src/one.py": "one\n", "Old.md": "o\n"})
    with ground_at(tmp_path, kind=JudgedGround) as one:
        one.open()
        yield one


def _take(ground: Ground, task: str, **files: str) -> Taken:
    folder = ground.place(task).folder
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return ground.take(task)


def test_a_workspace_is_judged_beside_the_commit_it_was_made_from(ground: Ground) -> None:
    """T18: edited in place or handed in as a write; and a rename by case is taken."""
    (ground.place("a").folder / "readme.md").write_text("b\n")
    assert ground.refused("a") == "CASE_TWIN"
    ground.place("b")
    with pytest.raises(WriteRefused) as caught:
        ground.take("b", writes=[Write(path="SRC/y.py", op="create", encoding="utf8", content="x")])
    assert caught.value.code == "CASE_TWIN"
    folder = ground.place("c").folder
    (folder / "README.md").rename(folder / "Readme.md")
    assert set(ground.tree(ground.take("c").commit)) == {"Readme.md", "src/one.py", "Old.md"}


def test_two_changes_that_are_twins_only_together_conflict(ground: Ground) -> None:
    """T18 G03: each is fine alone; the second is told which names met."""
    first, second = _take(ground, "a", Notes__a="1\n"), _take(ground, "b", notes__b="2\n")
    ground.merge(first)
    put = ground.do(ground.repository.rebase(second.commit, second.base, first.commit))
    assert isinstance(put, Conflict)
    assert put.files == ("Notes", "notes") and "one name on many systems" in put.excerpt


def test_a_merge_with_what_others_pushed_has_no_twins_either(ground: Ground) -> None:
    """T18 G03: and what does not meet is merged as before."""
    first, second, third = (
        _take(ground, name, **{f"src__{path}": "1"}) for name, path in zip("abc", "XxY", strict=True)
    )
    put = ground.do(ground.repository.join(first.commit, second.commit, "both", 1.0))
    assert isinstance(put, Conflict) and put.files == ("src/X", "src/x")
    assert not isinstance(ground.do(ground.repository.join(first.commit, third.commit, "both", 1.0)), Conflict)


def test_twins_that_the_base_has_do_not_stop_a_merge(tmp_path: Path) -> None:
    """G03: they met before anybody worked here."""
    make_project(tmp_path / "project", {"A.md": "a\n", "a.md": "b\n", "src/one.py": "one\n"})
    with ground_at(tmp_path) as ground:
        ground.open()
        first, second = _take(ground, "a", **{"A.md": "c\n"}), _take(ground, "b", x="2\n")
        ground.merge(first)
        ground.merge(second)
        assert set(ground.tree(ground.head())) == {"A.md", "a.md", "src/one.py", "x"}


def test_an_edit_in_the_projects_own_folder_is_judged_beside_what_was_there(tmp_path: Path) -> None:
    """T18: direct mode."""
    here = watched(tmp_path)
    (here.root / "A.txt").write_text("b\n")
    (here.root / "SRC").mkdir()
    (here.root / "SRC" / "n.py").write_text("b\n")
    assert codes(here.seen()) == [("A.txt", "CASE_TWIN"), ("SRC/n.py", "CASE_TWIN")]
    (here.root / "a.txt").rename(here.root / "A.txt")
    assert codes(here.seen()) == [("SRC/n.py", "CASE_TWIN")]
