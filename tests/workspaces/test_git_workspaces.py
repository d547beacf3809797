"""Folders made from the repository: whole or not there, each the agent's own, removed whatever is in them."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.errors import GangerError
from ganger.ports.changes import Rules
from ganger.ports.repository import Place
from ganger.workspaces.files.copying import fill
from ganger.workspaces.files.removal import Bin, discard
from ganger.workspaces.git.checkouts import Checkouts, Recipe, Template
from ganger.workspaces.git.git import Git
from ganger.workspaces.git.index import read_index, stamp_of
from ganger.workspaces.git.landing import KeptWork
from ganger.workspaces.git.objects import Who
from tests.workspaces.git_projects import Ground, files_in, git, ground_at, make_project


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with ground_at(tmp_path) as one:
        one.open()
        yield one


def test_a_workspace_is_the_head_with_a_git_of_its_own(ground: Ground) -> None:
    """W02: the agent may commit, branch and look at history; nothing of it reaches the store."""
    place = ground.place()
    assert files_in(place.folder) == ground.tree(place.base)
    assert git(place.folder, "status", "--porcelain") == "" and git(place.folder, "log", "--format=%s") == "start"
    (place.folder / "new.txt").write_text("x")
    git(place.folder, "add", "-A")
    git(place.folder, "commit", "-qm", "mine")
    git(place.folder, "checkout", "-qb", "own")
    git(place.folder, "gc", "-q")
    assert ground.head() == place.base and git(place.folder, "remote") == ""
    assert ground.take().files == ("new.txt",)


def test_asking_again_gives_the_same_workspace(ground: Ground) -> None:
    """W02 G01: place is harmless to repeat, also after the head has moved."""
    place = ground.place()
    (place.folder / "new.txt").write_text("x")
    other = ground.place("other")
    (other.folder / "o.txt").write_text("o")
    ground.merge(ground.take("other"))
    assert ground.place() == place and (place.folder / "new.txt").exists()
    assert ground.place("third").base == ground.head() != place.base


def test_a_power_cut_that_empties_the_ref_loses_no_workspace(ground: Ground) -> None:
    """G01 G08: the commit a workspace was made from is told by the name of its index too."""
    place = ground.place()
    (place.folder / "work.txt").write_text("x")
    (ground.settings.store / "refs/ganger/run-1/at/t/1").write_text("")
    assert ground.place() == place and ground.take().files == ("work.txt",)


@pytest.mark.whole
def test_sixteen_workspaces_at_once_never_meet_a_lock(ground: Ground) -> None:
    """W02 Z01: made, changed, taken and released side by side; every one works."""

    async def one(number: int) -> str:
        place = await ground.repository.place(f"t{number}", 1)
        (place.folder / f"{number}.txt").write_text("x")
        taken = await ground.repository.take(f"t{number}", 1, (), Rules(), "m")
        await ground.repository.release(f"t{number}", 1)
        return taken.commit

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(16)))

    assert len(set(ground.do(all_of_them()))) == 16
    assert ground.do(ground.repository.fsck()) == ""
    assert sorted(one.name for one in ground.settings.work.iterdir()) == [".index", ".new", ".trash"]


def test_the_same_workspace_asked_for_many_times_at_once_is_one(ground: Ground) -> None:
    """W02 W03: one folder and one base, whoever asks."""

    async def many() -> list[Place]:
        return await asyncio.gather(*(ground.repository.place("t", 1) for _ in range(6)))

    assert len(set(ground.do(many()))) == 1


def test_contents_are_byte_exact_whatever_attributes_say(tmp_path: Path) -> None:
    """W02: line ends, keywords, encodings and filters change nothing on the way out or back."""
    project = make_project(tmp_path / "project", {"a.txt": "one\n$Id$\n", "b.u16": "text\n"})
    attributes = "* text=auto eol=crlf ident filter=lfs\n*.u16 working-tree-encoding=UTF-16\n"
    (project / ".gitattributes").write_text(attributes)
    git(project, "add", ".gitattributes")
    git(project, "commit", "-qm", "attributes")
    with ground_at(tmp_path) as ground:
        ground.open()
        folder = ground.place().folder
        assert (folder / "a.txt").read_bytes() == b"one\n$Id$\n" and (folder / "b.u16").read_bytes() == b"text\n"
        (folder / "a.txt").write_bytes(b"one\r\n$Id: x$\r\n\n")
        taken = ground.take()
        assert ground.tree(taken.commit)["a.txt"] == ("100644", b"one\r\n$Id: x$\r\n\n")
        checked = ground.do(ground.repository.checkout("c", taken.commit))
        assert (checked / "a.txt").read_bytes() == b"one\r\n$Id: x$\r\n\n"


def test_a_check_folder_is_always_fresh(ground: Ground) -> None:
    """G09: a second checkout under one name holds nothing of what happened in the first."""
    head = ground.head()
    folder = ground.do(ground.repository.checkout("verify t/1", head))
    (folder / "planted.txt").write_text("x")
    (folder / "README.md").write_text("x")
    assert ground.do(ground.repository.checkout("verify t/1", head)) == folder
    assert files_in(folder) == ground.tree(head)
    ground.do(ground.repository.drop_checkout("verify t/1"))
    ground.do(ground.repository.drop_checkout("verify t/1"))
    assert not folder.exists()


def test_needed_folders_are_brought_and_never_taken(tmp_path: Path) -> None:
    """W02 G08: linked or copied if they are there; replacing one changes nothing outside and is no change."""
    project = make_project(tmp_path / "project")
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/python").write_text("real")
    (project / "src/node_modules/x").mkdir(parents=True)
    (project / "src/node_modules/x/i.js").write_text("js")
    linked, copied = (".venv", "absent"), ("src/node_modules", "src")
    with ground_at(tmp_path, lambda one: replace(one, linked=linked, copied=copied)) as ground:
        ground.open()
        folder = ground.place().folder
        assert (folder / ".venv").is_symlink() and not (folder / "src/node_modules").is_symlink()
        assert (folder / "src/node_modules/x/i.js").read_text() == "js" and not (folder / "absent").exists()
        (folder / ".venv").unlink()
        (folder / ".venv").mkdir()
        (folder / ".venv/mine.txt").write_text("x")
        (folder / "src/node_modules/x/i.js").write_text("changed")
        (folder / "src/two.py").write_text("two = 2\n")
        assert ground.take().files == ("src/two.py",)
        assert ground.save()[1] == ("src/two.py",)
        assert (project / "src/node_modules/x/i.js").read_text() == "js"
        ground.do(ground.repository.release("t", 1))
        assert (project / ".venv/bin/python").read_text() == "real"


@pytest.mark.needs("root")
def test_a_workspace_can_belong_to_another_user_and_is_still_taken_by_stat(tmp_path: Path) -> None:
    """G05: everything in it is theirs, links themselves included; nothing looks changed for it."""
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    project = make_project(tmp_path / "project")
    (project / "link").symlink_to(outside)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "link")
    with ground_at(tmp_path, lambda one: replace(one, owner=(12345, 12346))) as ground:
        ground.open()
        place = ground.place()
        owners = {(one.lstat().st_uid, one.lstat().st_gid) for one in [place.folder, *place.folder.rglob("*")]}
        assert owners == {(12345, 12346)} and outside.stat().st_uid == 0
        (index,) = (ground.settings.work / ".index").iterdir()
        entries = read_index(index) or {}
        assert all(entry.stamp == stamp_of((place.folder / path).lstat()) for path, entry in entries.items())
        assert ground.take().commit == place.base


def test_warm_folders_are_moved_to_the_head_and_used_once(tmp_path: Path) -> None:
    """W02: made ahead, brought to the newest commit when taken, refilled in the background."""
    with ground_at(tmp_path, lambda one: replace(one, warm=2)) as ground:
        ground.open()
        first = ground.place("a")
        ground.do(_filled(ground))
        (first.folder / "new.txt").write_text("x")
        (first.folder / "README.md").unlink()
        ground.merge(ground.take("a"))
        ready = {one.name for one in ground.settings.pool.iterdir()}
        warm = ground.place("b")
        assert warm.base == ground.head() and files_in(warm.folder) == ground.tree(warm.base)
        assert (
            git(warm.folder, "status", "--porcelain") == ""
            and git(warm.folder, "log", "-1", "--format=%H") == warm.base
        )
        ground.do(_filled(ground))
        assert len(ready) == 2 and len({one.name for one in ground.settings.pool.iterdir()} & ready) == 1
        assert ground.take("b").commit == warm.base


async def _filled(ground: Ground) -> None:
    filler = ground.repository._filler
    assert filler is not None
    await filler


def test_a_folder_copied_from_a_template_is_like_a_fresh_one(ground: Ground, tmp_path: Path) -> None:
    """W02: where blocks can be shared; here the copying is real and the sharing is not."""
    recipe = Recipe(ground.settings.store, ground.settings.project, Who("A", "a@b"))
    template = Template(Checkouts(recipe), tmp_path / "pool", fill)
    (ground.place().folder / "new.txt").write_text("x")
    for name, commit in (("one", ground.head()), ("two", ground.take().commit)):
        assert template.copy(tmp_path / "made" / name, commit)
        folder = tmp_path / "made" / name
        assert files_in(folder) == ground.tree(commit)
        assert git(folder, "status", "--porcelain") == ""
        entries = read_index(folder / ".git/index") or {}
        assert all(entry.stamp == stamp_of((folder / path).lstat()) for path, entry in entries.items())


def test_where_blocks_cannot_be_shared_no_template_is_used(ground: Ground, tmp_path: Path) -> None:
    """W02: tried once, then never again; making a folder goes on as always."""

    def cannot(source: int, target: int) -> None:
        raise OSError(95, "not supported")

    recipe = Recipe(ground.settings.store, ground.settings.project, Who("A", "a@b"))
    template = Template(Checkouts(recipe), tmp_path / "pool", cannot)
    assert not template.copy(tmp_path / "one", ground.head()) and not template.copy(tmp_path / "two", ground.head())
    assert not (tmp_path / "one").exists()


def _spoil(folder: Path) -> None:
    """Everything that makes a folder hard to remove."""
    deep = folder
    for number in range(150):
        deep = deep / f"d{number}"
    os.makedirs(deep)
    (folder / "new\nline").mkdir()
    (folder / os.fsdecode(b"\xff\xfe")).write_text("x")
    (folder / "closed").mkdir()
    (folder / "closed/file").write_text("x")
    (folder / "closed").chmod(0)
    (folder / "src").chmod(0o500)
    os.mkfifo(folder / "pipe")
    os.mknod(folder / "door", stat.S_IFSOCK | 0o600)
    folder.chmod(0o500)


def test_a_folder_goes_whatever_an_agent_did_to_it(ground: Ground, tmp_path: Path) -> None:
    """G08: closed and deep folders, odd names, pipes and links out of it; nothing outside is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    folder = ground.place().folder
    (folder / "out").symlink_to(outside)
    (folder / "src/up").symlink_to("../../../..")
    _spoil(folder)
    ground.do(ground.repository.release("t", 1))
    ground.do(ground.repository.release("t", 1))
    assert not folder.exists()
    ground.do(ground.repository.sweep())
    assert not list((ground.settings.work / ".trash").iterdir()) and (outside / "mine.txt").read_text() == "mine"


def test_thrown_away_folders_wait_until_they_are_many_or_the_repository_is_closed(tmp_path: Path) -> None:
    """G08: disk use is bounded, and nothing stays behind."""
    waiting = Bin(2, 0)
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
        waiting.add(folder)
    assert [folder.exists() for folder in folders] == [False, False, True, True]
    waiting.empty()
    assert not any(folder.exists() for folder in folders)
    full = Bin(2, 1 << 62)
    folders[0].mkdir()
    full.add(folders[0])
    assert not folders[0].exists()


def test_hundreds_of_levels_neither_break_the_stack_nor_the_descriptors(tmp_path: Path) -> None:
    """G08: a tree too deep for any path is moved up piece by piece."""
    top = tmp_path / "deep"
    top.mkdir()
    fd = os.open(top, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert discard(top) and not list(tmp_path.iterdir())


def test_sweeping_removes_what_a_killed_process_left_and_no_workspace(ground: Ground) -> None:
    """G08: half-made, thrown-away and check folders go; workspaces and their work stay."""
    place = ground.place()
    (place.folder / "work.txt").write_text("x")
    head = ground.head()
    settings = ground.settings
    for left in (settings.work / ".new/half", settings.work / ".trash/old", settings.checks / "c", settings.pool / "p"):
        left.mkdir(parents=True)
        (left / "file").write_text("x")
    (settings.work / ".index" / f"gone.1.{head}").write_text("x")
    ground.do(ground.repository.sweep())
    assert not list(settings.checks.iterdir()) and not list(settings.pool.iterdir())
    assert not list((settings.work / ".new").iterdir()) and not list((settings.work / ".trash").iterdir())
    assert [one.name for one in (settings.work / ".index").iterdir()] == [f"t.1.{head}"]
    assert ground.take().files == ("work.txt",)


def test_leftovers_say_whether_the_work_is_kept_elsewhere(ground: Ground) -> None:
    """G08: merged, saved or unsaved, decided by what is in the folder now and what the repository holds."""
    for name in ("merged", "saved", "unsaved", "again", "same", "strange"):
        folder = ground.place(name).folder
        if name not in ("same", "strange"):
            (folder / f"{name}.txt").write_text(name)
    taken = ground.do(ground.repository.take("merged", 1, (), Rules(), "m\n\nGanger-Task: merged\nGanger-Attempt: 1\n"))
    ground.merge(taken)
    ground.save("saved")
    ground.save("again")
    (ground.place("again").folder / "later.txt").write_text("later")
    (ground.settings.store / "refs/ganger/run-1/at/strange/1").unlink()
    next((ground.settings.work / ".index").glob("strange.*")).unlink()
    found = {one.task: one for one in ground.do(ground.repository.leftovers())}
    assert {name: one.state for name, one in found.items()} == {
        "merged": KeptWork.MERGED,
        "saved": KeptWork.SAVED,
        "same": KeptWork.SAVED,
        "unsaved": KeptWork.UNSAVED,
        "again": KeptWork.UNSAVED,
        "strange": KeptWork.UNSAVED,
    }
    assert all(one.bytes > 0 and one.attempt == 1 for one in found.values())
    assert ground.do(ground.repository.used_bytes()) > sum(one.bytes for one in found.values())


def test_a_stale_lock_of_this_run_does_not_stop_the_next_lead(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """G01: a git process that was killed leaves a lock; opening the run again removes it."""
    monkeypatch.setattr("ganger.workspaces.git.bare_repo._LOCK_LOOKS", 1)
    for ref in ("refs/heads/ganger/run-1.lock", "refs/ganger/run-1/base.lock"):
        (ground.settings.store / ref).write_text("")
    base = ground.open()
    (ground.place().folder / "new.txt").write_text("x")
    assert ground.do(ground.repository.move_head(base, ground.take().commit))


def test_what_the_system_refuses_is_told_with_the_place(ground: Ground) -> None:
    """G08: no bare operating-system error reaches the engine."""
    above = ground.settings.work.parent
    above.parent.mkdir(parents=True, exist_ok=True)
    above.write_text("in the way")
    with pytest.raises(GangerError, match=above.name) as caught:
        ground.place()
    assert caught.value.code == "IO_ERROR"


def test_a_failing_git_is_told_in_its_own_words(ground: Ground) -> None:
    """W02: what was tried, what git said, and a hint."""
    with pytest.raises(GangerError, match="git cat-file failed while testing: fatal: ") as caught:
        Git(ground.settings.store).ask("cat-file", "-p", "0" * 40, doing="testing")
    assert caught.value.code == "GIT_FAILED" and caught.value.hint
