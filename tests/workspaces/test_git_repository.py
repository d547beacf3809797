"""Ganger's repository: made from any project, shared by runs, its branch moved by compare and swap."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.errors import DiskFullError, GangerError
from ganger.ports.changes import Rules
from ganger.workspaces.git.git import git_program
from ganger.workspaces.git.settings import AttemptPlace, RunRefs, ref_part
from tests.workspaces.git_projects import Ground, git, ground_at, make_project, python, settings_for


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with ground_at(tmp_path) as one:
        yield one


def _commit(project: Path, name: str) -> str:
    (project / name).write_text(f"{name}\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", name)
    return git(project, "rev-parse", "HEAD")


def test_the_run_begins_at_the_users_commit_and_stays_there(ground: Ground) -> None:
    """W02 G03: the branch is made once at the project's HEAD and later commits of the user do not move it."""
    start = git(ground.settings.project, "rev-parse", "HEAD")
    assert ground.open() == start
    _commit(ground.settings.project, "later.txt")
    assert ground.open() == start == ground.head()


def test_the_next_run_shares_the_store_and_begins_at_the_new_commit(ground: Ground, tmp_path: Path) -> None:
    """W02: what is new in the project is fetched; the first run's branch stays."""
    first = ground.open()
    newer = _commit(ground.settings.project, "newer.txt")
    second = Ground(settings_for(ground.settings.project, tmp_path / "state", "run-2"), ground.runner)
    assert second.open() == newer
    assert ground.head() == first and second.place().base == newer


def _linked_worktree(root: Path) -> None:
    main = make_project(root / "main")
    git(main, "worktree", "add", "-q", "-b", "other", str(root / "project"))


def _detached(root: Path) -> None:
    git(make_project(root / "project"), "checkout", "-q", "--detach")


def _with_alternates(root: Path) -> None:
    git(make_project(root / "main"), "clone", "-q", "--shared", ".", str(root / "project"))


def _packed(root: Path) -> None:
    project = make_project(root / "project")
    git(project, "pack-refs", "--all")
    git(project, "gc", "-q")


def _shallow(root: Path) -> None:
    main = make_project(root / "main")
    _commit(main, "second.txt")
    git(root, "clone", "-q", "--depth=1", main.as_uri(), str(root / "project"))


def _with_a_branch_in_the_way(root: Path) -> None:
    git(make_project(root / "project"), "branch", "ganger")


def _sha256(root: Path) -> None:
    make_project(root / "project", None, "--object-format=sha256")


@pytest.mark.brief(3)
@pytest.mark.parametrize(
    "build", [_linked_worktree, _detached, _with_alternates, _packed, _shallow, _with_a_branch_in_the_way, _sha256]
)
def test_any_kind_of_checkout_can_be_the_project(build: object, tmp_path: Path) -> None:
    """W02: a linked worktree, a detached, shared, packed, shallow or SHA-256 repository, a branch in the way."""
    build(tmp_path)  # type: ignore[operator]
    with ground_at(tmp_path) as ground:
        head = ground.open()
        assert head == git(ground.settings.project, "rev-parse", "HEAD")
        (ground.place().folder / "new.txt").write_text("new\n")
        taken = ground.take()
        ground.merge(taken)
        assert ground.tree(ground.head())["new.txt"] == ("100644", b"new\n")
        assert ground.do(ground.repository.fsck()) == ""


def test_what_a_workspace_reads_besides_itself_is_named(tmp_path: Path) -> None:
    """G05: the store's objects, those the user's repository borrows, and linked folders that exist."""
    _with_alternates(tmp_path)
    (tmp_path / "project/.venv").mkdir()
    with ground_at(tmp_path, lambda one: replace(one, linked=(".venv", "absent"))) as ground:
        ground.open()
        folders = [ground.settings.store / "objects", tmp_path / "main/.git/objects", tmp_path / "project/.venv"]
        assert ground.repository.shared == tuple(folders)


def test_a_partial_clone_without_its_files_is_refused_in_plain_words(tmp_path: Path) -> None:
    """W02: nothing is fetched behind the user's back, and the message says what to do."""
    main = make_project(tmp_path / "main")
    git(main, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", main.as_uri(), str(tmp_path / "project"))
    with ground_at(tmp_path) as ground, pytest.raises(GangerError, match="partial clone") as caught:
        ground.open()
    assert caught.value.code == "PARTIAL_CLONE" and "refetch" in caught.value.hint


def test_a_project_without_a_commit_or_without_git_is_refused_with_the_next_step(tmp_path: Path) -> None:
    """W02: the two most likely mistakes have their own words."""
    (tmp_path / "a/project").mkdir(parents=True)
    with ground_at(tmp_path / "a") as ground, pytest.raises(GangerError) as caught:
        ground.open()
    assert caught.value.code == "NOT_A_REPOSITORY" and "git init" in caught.value.hint
    git(tmp_path / "a/project", "init", "-q")
    with ground_at(tmp_path / "a") as ground, pytest.raises(GangerError) as caught:
        ground.open()
    assert caught.value.code == "NO_COMMIT" and "commit" in caught.value.hint


@pytest.mark.needs("root")
def test_a_project_of_another_user_can_be_opened(tmp_path: Path) -> None:
    """W02: git's ownership check, which no setting of the caller reaches at the other end of a clone, is answered."""
    project = make_project(tmp_path / "project")
    for above, folders, names in os.walk(project):
        for name in [*folders, *names, "."]:
            os.chown(Path(above) / name, 12345, 12345, follow_symlinks=False)
    with ground_at(tmp_path) as ground:
        assert ground.open()
        _commit(project, "as-root.txt")
        other = Ground(settings_for(project, tmp_path / "state", "run-2"), ground.runner)
        assert other.open() != ground.head()


def test_the_head_moves_only_from_what_was_expected(ground: Ground) -> None:
    """G03: compare and swap; a repeated move is no failure, a move from an older head is."""
    base = ground.open()
    commits = []
    for number in (1, 2):
        (ground.place("t", number).folder / f"{number}.txt").write_text("x")
        commits.append(ground.take("t", number).commit)
    move = ground.repository.move_head
    assert ground.do(move(base, commits[0])) and ground.do(move(base, commits[0]))
    assert not ground.do(move(base, commits[1]))
    assert ground.head() == commits[0]


_RACER = """
import sys
from pathlib import Path
from tests.workspaces.git_projects import Ground, settings_for
import asyncio
project, state, old, new = sys.argv[1:]
with asyncio.Runner() as runner:
    ground = Ground(settings_for(Path(project), Path(state)), runner)
    print(ground.do(ground.repository.move_head(old, new)))
    ground.do(ground.repository.close())
"""


@pytest.mark.whole
def test_of_two_processes_that_move_the_head_one_wins(ground: Ground) -> None:
    """G03 W03: the fence is where the data is."""
    base = ground.open()
    commits = []
    for number in (1, 2):
        (ground.place("t", number).folder / f"{number}.txt").write_text("x")
        commits.append(ground.take("t", number).commit)
    words = [str(ground.settings.project), str(ground.settings.store.parent), base]
    racers = [python(_RACER, *words, commit) for commit in commits]
    said = [racer.communicate()[0].split() for racer in racers]
    assert sorted(said) == [[b"False"], [b"True"]]
    assert ground.head() == commits[said.index([b"True"])]


def test_the_users_checkout_is_never_touched(ground: Ground) -> None:
    """W02 G08: a whole round leaves files, index, refs and configuration of the project as they were."""
    project = ground.settings.project
    (project / "mine.txt").write_text("uncommitted\n")
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    ground.open()
    (ground.place().folder / "new.txt").write_text("x")
    ground.merge(ground.take())
    ground.do(ground.repository.uncommitted())
    ground.do(ground.repository.release("t", 1))
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_what_the_user_did_not_commit_is_named(ground: Ground) -> None:
    """W02: changed, staged, deleted and new files are not part of the run; ignored ones are no news."""
    project = ground.settings.project
    ground.open()
    assert ground.do(ground.repository.uncommitted()) == ()
    (project / "README.md").write_text("changed\n")
    (project / "staged.txt").write_text("staged\n")
    git(project, "add", "staged.txt")
    (project / "run.sh").unlink()
    (project / "new.txt").write_text("new\n")
    (project / "a.log").write_text("ignored\n")
    os.utime(project / "src/two.py", (1, 1))
    assert ground.do(ground.repository.uncommitted()) == ("README.md", "new.txt", "run.sh", "staged.txt")


def test_a_commit_is_exported_under_a_ref_and_no_branch_is_overwritten(ground: Ground) -> None:
    """G03: the user's repository gets the objects and one ref; what it has checked out stays."""
    project = ground.settings.project
    ground.open()
    (ground.place().folder / "new.txt").write_text("x")
    commit = ground.take().commit
    ground.do(ground.repository.export(commit, project, "refs/heads/landed"))
    assert git(project, "rev-parse", "landed") == commit
    with pytest.raises(GangerError, match="refusing"):
        ground.do(ground.repository.export(commit, project, "refs/heads/main"))
    _commit(project, "mine.txt")
    git(project, "branch", "elsewhere")
    with pytest.raises(GangerError, match="refs/heads/elsewhere"):
        ground.do(ground.repository.export(commit, project, "refs/heads/elsewhere"))


def test_merged_tasks_are_found_by_their_trailers(ground: Ground) -> None:
    """G03: one commit per task, told by its trailers, oldest first."""
    ground.open()
    for number in (1, 2):
        folder = ground.place(f"task {number}", 1).folder
        (folder / f"{number}.txt").write_text("x")
        message = f"subject\n\nbody: no trailer\n\nGanger-Task: task {number}\nGanger-Attempt: 1\n"
        ground.merge(ground.do(ground.repository.take(f"task {number}", 1, (), Rules(), message)))
    found = list(ground.do(ground.repository.merged_tasks()).values())
    assert found == [{"Ganger-Task": f"task {n}", "Ganger-Attempt": "1"} for n in (1, 2)]


def test_too_little_free_space_is_said_before_anything_is_made(tmp_path: Path) -> None:
    """G08: disk use is bounded; the error names the space and the way out."""
    with ground_at(tmp_path, lambda one: replace(one, min_free_bytes=1 << 60)) as ground:
        with pytest.raises(DiskFullError, match="kept free"):
            ground.open()
        assert not ground.settings.store.exists()


@pytest.mark.parametrize("name", ["a..b", "x.lock", "a.", "a@{b", "~", "a b", ".hidden", "-c", "ü" * 100, "a/b", "@"])
def test_any_run_and_task_name_is_a_ref(name: str, ground: Ground) -> None:
    """G03: names that git forbids are written so that they are allowed and stay different."""
    ground.open()
    refs = RunRefs(name)
    for ref in (refs.branch, refs.at(AttemptPlace.of(name, 1))):
        git(ground.settings.store, "check-ref-format", ref)
    assert len({ref_part(one) for one in (name, f"{name}%2E", f"{name}.", f"{name}~")}) == 4


def test_git_is_called_by_its_absolute_path() -> None:
    """W02: whatever PATH becomes later, the same git runs."""
    assert Path(git_program()).is_absolute()
