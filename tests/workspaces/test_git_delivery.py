"""What delivery asks of a repository: commits of its own making that are always the same, and changes as text."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from ganger.errors import GangerError
from ganger.ports.repository import Conflict, Rebased
from tests.workspaces.git_projects import Ground, git, ground_at

AT = 1_700_000_123.0


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with ground_at(tmp_path) as one:
        one.open()
        yield one


def _change(ground: Ground, task: str, path: str, text: str) -> str:
    folder = ground.place(task).folder
    (folder / path).write_text(text)
    return ground.take(task).commit


def test_an_empty_commit_is_always_the_same(ground: Ground) -> None:
    """D04: whoever dies between making it and recording it makes the very same one again."""
    head = ground.head()
    made = {ground.do(ground.repository.empty_commit(head, "again\n\nCause: x", AT)) for _ in range(3)}
    [one] = made
    assert ground.do(ground.repository.tree_of(head)) == one.tree
    shown = git(ground.settings.store, "log", "-1", "--format=%P %an %ae %ct %s", one.commit)
    assert shown == f"{head} Ganger ganger@localhost {int(AT)} again"
    assert ground.do(ground.repository.empty_commit(head, "again", AT)).commit != one.commit


def test_two_histories_are_joined_without_a_folder(ground: Ground) -> None:
    """G03: both changes are in it, ours comes first, and the same question gets the same commit."""
    ours, theirs = _change(ground, "a", "src/a.py", "a\n"), _change(ground, "b", "src/b.py", "b\n")
    answers = {ground.do(ground.repository.join(ours, theirs, "both", AT)) for _ in range(2)}
    [both] = answers
    assert isinstance(both, Rebased) and {"src/a.py", "src/b.py"} <= set(ground.tree(both.commit))
    assert git(ground.settings.store, "log", "-1", "--format=%P", both.commit) == f"{ours} {theirs}"


def test_histories_that_clash_are_told_and_nothing_is_made(ground: Ground) -> None:
    """G03: with the files and both sides."""
    ours, theirs = _change(ground, "a", "src/two.py", "a\n"), _change(ground, "b", "src/two.py", "b\n")
    clash = ground.do(ground.repository.join(ours, theirs, "both", AT))
    assert isinstance(clash, Conflict) and clash.files == ("src/two.py",)


YIELDS: list[tuple[str, dict[str, str | None], dict[str, str | None], dict[str, str | None]]] = [
    ("the same lines", {"f": "ours\nb\nc\nd\ne\n"}, {"f": "theirs\nb\nc\nd\ne\n"}, {"f": "theirs\nb\nc\nd\ne\n"}),
    ("other lines besides", {"f": "ours\nb\nc\nd\nE\n"}, {"f": "theirs\nb\nc\nd\ne\n"},
        {"f": "theirs\nb\nc\nd\nE\n"}),
    ("two new files", {"n": "ours\n"}, {"n": "theirs\n"}, {"n": "theirs\n"}),
    ("one deleted", {"f": None}, {"f": "a\nb\nc\nd\nE\n"}, {"f": "a\nb\nc\nd\nE\n"}),
    ("deleted by them", {"f": "A\nb\nc\nd\ne\n"}, {"f": None}, {"f": None}),
    ("no text", {"f": "ours\0\n"}, {"f": "theirs\0\n"}, {"f": "theirs\0\n"}),
    ("nothing in common", {"x": "1\n"}, {"y": "2\n"}, {"x": "1\n", "y": "2\n"}),
]  # fmt: skip


@pytest.mark.parametrize(("mine", "theirs", "both"), [one[1:] for one in YIELDS], ids=[one[0] for one in YIELDS])
def test_a_merge_that_yields_takes_their_side_where_both_changed_the_same(
    ground: Ground, mine: dict[str, str | None], theirs: dict[str, str | None], both: dict[str, str | None]
) -> None:
    """G03: line by line, and nothing else of ours is lost; the same question gets the same commit."""
    base = commit_of(ground, ground.head(), {"f": "a\nb\nc\nd\ne\n"})
    one, other = commit_of(ground, base, mine), commit_of(ground, base, theirs)
    [made] = {ground.do(ground.repository.join(one, other, "both", AT, yields=True)) for _ in range(2)}
    assert isinstance(made, Rebased)
    store = ground.settings.store
    found = {name: git(store, "show", f"{made.commit}:{name}", check=False) for name in both}
    assert found == {name: (text or "").strip() for name, text in both.items()}
    assert git(store, "log", "-1", "--format=%P", made.commit) == f"{one} {other}"


def commit_of(ground: Ground, parent: str, files: dict[str, str | None]) -> str:
    """A commit on `parent` with these files changed; None: taken away."""
    store = ground.settings.store
    rows = {row.partition("\t")[2]: row for row in git(store, "ls-tree", parent).splitlines()}
    for name, text in files.items():
        rows.pop(name, None)
        if text is not None:
            rows[name] = f"100644 blob {_given(store, text, 'hash-object', '-w', '--stdin')}\t{name}"
    tree = _given(store, "".join(f"{row}\n" for row in rows.values()), "mktree")
    return git(store, "commit-tree", tree, "-p", parent, "-m", "x")


def _given(store: Path, text: str, *words: str) -> str:
    done = subprocess.run(["git", f"--git-dir={store}", *words], input=text, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_what_ganger_made_itself_survives_a_collection(ground: Ground) -> None:
    """G01: a ref keeps it even if somebody collects the repository's garbage by hand."""
    head = ground.head()
    empty = ground.do(ground.repository.empty_commit(head, "again", AT)).commit
    both = ground.do(ground.repository.join(_change(ground, "a", "x", "1\n"), empty, "both", AT))
    git(ground.settings.store, "gc", "-q", "--prune=now")
    assert isinstance(both, Rebased)
    assert all(ground.do(ground.repository.has(one)) for one in (empty, both.commit))


def test_a_change_is_shown_with_its_files_first(ground: Ground) -> None:
    """W08: what a reviewer reads."""
    commit = _change(ground, "a", "src/two.py", "def two():\n    return 3\n")
    text = ground.do(ground.repository.diff_text(ground.head(), commit, 10_000))
    assert "src/two.py | 2 +-" in text and "-    return 2\n+    return 3" in text


@pytest.mark.parametrize("most", [100, 400, 100_000])
def test_a_change_of_any_size_is_shown_within_bounds(ground: Ground, most: int) -> None:
    """D15: a change of 2 MB costs no more than was asked for, and says that it goes on."""
    commit = _change(ground, "a", "big.txt", "".join(f"a line of text {n}\n" for n in range(100_000)))
    text = ground.do(ground.repository.diff_text(ground.head(), commit, most))
    assert len(text.encode()) <= most and text.endswith("[… the rest is not shown]\n")


def test_a_commits_message_is_read(ground: Ground) -> None:
    """W08: as it was given."""
    made = ground.do(ground.repository.empty_commit(ground.head(), "one ü\n\nTrailer: 2\n", AT)).commit
    assert ground.do(ground.repository.message(made)) == "one ü\n\nTrailer: 2\n"


@pytest.mark.parametrize("ask", ["empty_commit", "join", "diff_text", "message", "tree_of", "rebase"])
def test_a_recorded_commit_that_is_gone_is_damage(ground: Ground, ask: str) -> None:
    """D12: corrupted data halts; no attempt is made to go on without it."""
    gone, head, repository = "ab" * 20, ground.head(), ground.repository
    calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "empty_commit": lambda: repository.empty_commit(gone, "x", AT),
        "join": lambda: repository.join(head, gone, "x", AT),
        "diff_text": lambda: repository.diff_text(head, gone, 100),
        "message": lambda: repository.message(gone),
        "tree_of": lambda: repository.tree_of(gone),
        "rebase": lambda: repository.rebase(gone, head, head),
    }
    with pytest.raises(GangerError) as caught:
        ground.do(calls[ask]())
    assert caught.value.code == "REPO_DAMAGED" and caught.value.hint


def test_a_look_at_every_object_finds_planted_damage(ground: Ground) -> None:
    """D12: a sound repository passes, one flipped object does not."""
    ground.do(ground.repository.check())
    commit = _change(ground, "a", "src/two.py", "x = 1\n")
    loose = ground.settings.store / "objects" / commit[:2] / commit[2:]
    loose.chmod(0o644)
    loose.write_bytes(loose.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(GangerError) as caught:
        ground.do(ground.repository.check())
    assert caught.value.code == "REPO_DAMAGED" and str(ground.settings.store) in caught.value.message


def _between(ground: Ground, base: str, tip: str) -> list[str]:
    return sorted(ground.do(ground.repository.files_between(base, tip)))


def test_what_two_commits_differ_in_has_both_names_of_a_renamed_file_and_both_sides_of_a_merge(ground: Ground) -> None:
    """G03: nothing leaves a folder without a trace."""
    head, folder = ground.head(), ground.place("a").folder
    (folder / "docs").mkdir()
    (folder / "src/two.py").rename(folder / "docs/two.py")
    moved, theirs = ground.take("a").commit, _change(ground, "b", "src/b.py", "b\n")
    both = ground.do(ground.repository.join(moved, theirs, "both", AT))
    assert isinstance(both, Rebased)
    assert _between(ground, head, moved) == ["docs/two.py", "src/two.py"]
    assert _between(ground, head, both.commit) == ["docs/two.py", "src/b.py", "src/two.py"]
    assert _between(ground, theirs, both.commit) == ["docs/two.py", "src/two.py"]


def test_the_workflows_of_a_commit_are_read(ground: Ground) -> None:
    """G03: those that a push can start, as that commit has them."""
    head = ground.head()
    assert list(ground.do(ground.repository.ci_texts(head))) == []
