"""Agents that fight the undo: links, swaps, special files, locked folders, odd names. Nothing outside is touched."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workspaces.watch_harness import NOBODY, Watched, as_ordinary_user, make_levels, same_size_and_time, watched
from tests.workspaces.write_harness import fast_folder, snapshot


def folder_to_outside_link(here: Watched) -> None:
    shutil.rmtree(here.root / "src")
    (here.root / "src").symlink_to(here.place.outside)
    (here.place.outside / "app.py").write_text("outside\n")


def planted_links(here: Watched) -> None:
    (here.root / "abs").symlink_to("/etc/passwd")
    (here.root / "up").symlink_to("../ws-evil/secret.txt")
    (here.root / "loop").symlink_to("loop")
    (here.root / "a.txt").unlink()
    (here.root / "a.txt").symlink_to(here.place.outside / "secret.txt")


def special_files(here: Watched) -> None:
    os.mkfifo(here.root / "fifo")
    (here.root / "a.txt").unlink()
    os.mkfifo(here.root / "a.txt")


def shut_files(here: Watched) -> None:
    (here.root / "a.txt").chmod(0)
    (here.root / "new.txt").write_text("x")
    (here.root / "new.txt").chmod(0)
    (here.root / "src").chmod(0)


def setuid(here: Watched) -> None:
    (here.root / "run.sh").chmod(0o4755)
    (here.root / "evil").write_text("#!/bin/sh\n")
    (here.root / "evil").chmod(0o6755)


def file_and_folder_swapped(here: Watched) -> None:
    (here.root / "a.txt").unlink()
    (here.root / "a.txt/x/y").mkdir(parents=True)
    (here.root / "a.txt/x/y/z").write_text("z")
    shutil.rmtree(here.root / "src")
    (here.root / "src").write_text("a file")


def everything_away(here: Watched) -> None:
    for name in os.listdir(here.root):
        path = here.root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def odd_names(here: Watched) -> None:
    for name in (b"line\nbreak", b"\xff\xfe.py", b"-rf", b" ", b".ganger-undo-0.tmp", b"x" * 255):
        (here.root / os.fsdecode(name)).write_text("x")
        (here.root / "src" / os.fsdecode(name)).mkdir()
        (here.root / "src" / os.fsdecode(name) / "f").write_text("x")


def hidden_edit(here: Watched) -> None:
    same_size_and_time(here.root / "src/app.py", b"print('evl')\n")
    same_size_and_time(here.root / "tests/test_app.py", b"def test(): 0;;\n")


def hard_links(here: Watched) -> None:
    (here.root / "a.txt").unlink()
    os.link(here.place.outside / "secret.txt", here.root / "a.txt")
    os.link(here.place.outside / "secret.txt", here.root / "hard")


def same_content_hard_link(here: Watched) -> None:
    """Only the mode differs, and it belongs to a file outside as well."""
    shutil.copy(here.root / "a.txt", here.place.outside / "twin")
    (here.place.outside / "twin").chmod(0o600)
    (here.root / "a.txt").unlink()
    os.link(here.place.outside / "twin", here.root / "a.txt")


def own_repository(here: Watched) -> None:
    (here.root / "src/.git/hooks").mkdir(parents=True)
    (here.root / "src/.git/hooks/pre-commit").write_text("#!/bin/sh\n")


def deep_tree(here: Watched) -> None:
    make_levels(here.root, 1500)
    (here.root / "d/d/d/file").write_text("x")


def inside_a_read_only_folder(here: Watched) -> None:
    (here.root / "src/deep").chmod(0o755)
    (here.root / "src/deep/new").write_text("x")
    shutil.rmtree(here.root / "src/deep/er")
    (here.root / "src/deep").chmod(0o555)


AGENTS = [
    folder_to_outside_link,
    planted_links,
    special_files,
    shut_files,
    setuid,
    file_and_folder_swapped,
    everything_away,
    odd_names,
    hidden_edit,
    hard_links,
    same_content_hard_link,
    own_repository,
    deep_tree,
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
def test_whatever_the_agent_did_is_seen_saved_and_undone_and_nothing_outside_changes(
    agent: Callable[[Watched], None],
) -> None:
    """T18 W02 G08: hostile edits end where they began."""
    with fast_folder() as above:
        here = watched(above)
        agent(here)
        outside = snapshot(here.place.outside)
        change = here.seen()
        assert not change.is_nothing
        here.watch.save(change, above / "edit")
        assert here.watch.undo(change) == ()
        assert here.is_as_before()
        assert snapshot(here.place.outside) == outside
        assert here.seen().is_nothing
        subprocess.run(["rm", "-rf", str(above / "state")], check=True)


@pytest.mark.needs("root")
@pytest.mark.parametrize(
    "agent", [shut_files, setuid, inside_a_read_only_folder, deep_tree], ids=lambda one: one.__name__
)
def test_an_ordinary_user_can_undo_what_an_agent_locked(agent: Callable[[Watched], None]) -> None:
    """T18 W02: no privilege is needed to put back what belongs to the same user."""
    with fast_folder() as above:
        os.chown(above, NOBODY, NOBODY)

        def undo() -> None:
            here = watched(above)
            (here.root / "src/deep").chmod(0o555)
            here.watch.begin()
            before = snapshot(here.root)
            agent(here)
            assert here.undone() == ()
            assert snapshot(here.root) == before

        assert as_ordinary_user(undo) == ""
        subprocess.run(["rm", "-rf", str(above / "state")], check=True)


@pytest.mark.needs("root")
def test_locked_folders_with_work_in_them_are_moved_away_not_destroyed() -> None:
    """G08 T18: what nobody could look into is kept beside the snapshots."""
    with fast_folder() as above:
        os.chown(above, NOBODY, NOBODY)

        def undo() -> None:
            here = watched(above)
            (here.root / "locked").mkdir()
            (here.root / "locked/work.txt").write_text("hours of work")
            (here.root / "locked").chmod(0)
            assert here.kinds() == {"locked": "added"}
            assert here.undone() == ()
            assert here.is_as_before()
            (saved,) = (above / "state/watch/aside").glob("*/work.txt")
            assert saved.read_text() == "hours of work"

        assert as_ordinary_user(undo) == ""


@pytest.mark.needs("root")
def test_what_could_not_be_saved_is_moved_away_not_destroyed() -> None:
    """G08: a file that nobody could read is kept beside the snapshots as it is."""
    with fast_folder() as above:
        os.chown(above, NOBODY, NOBODY)

        def undo() -> None:
            here = watched(above)
            shut_files(here)
            change = here.seen()
            unsaved = here.watch.save(change, above / "edit")
            assert unsaved == ("a.txt", "new.txt")
            assert here.watch.undo(change) == ()
            assert here.is_as_before()
            assert sorted(path.name[9:] for path in (above / "state/watch/aside").iterdir()) == ["a.txt", "new.txt"]

        assert as_ordinary_user(undo) == ""


def test_modes_of_special_files_and_setuid_bits_show_in_the_change(tmp_path: Path) -> None:
    """W02: a judge needs no second look to refuse them."""
    here = watched(tmp_path)
    setuid(here)
    os.mkfifo(here.root / "fifo")
    modes = {one.path: one.after.mode for one in here.seen().touched if one.after}
    assert modes == {"run.sh": 0o104755, "evil": 0o106755, "fifo": stat.S_IFIFO}


def test_a_change_and_its_undo_keep_nothing_from_outside(tmp_path: Path) -> None:
    """T18 G05: links and swapped folders never bring a stranger's bytes into the kept contents."""
    here = watched(tmp_path)
    (here.place.outside / "app.py").write_text("CANARY")
    (here.place.outside / "secret.txt").write_text("CANARY")
    folder_to_outside_link(here)
    (here.place.outside / "app.py").write_text("CANARY")
    planted_links(here)
    here.watch.save(here.seen(), tmp_path / "edit")
    here.watch.accept(here.seen())
    here.watch.begin()
    kept = [
        path.read_bytes() for place in ("state", "edit") for path in (tmp_path / place).rglob("*") if path.is_file()
    ]
    assert not [data for data in kept if b"CANARY" in data]


def test_a_folder_left_out_that_stands_in_the_way_is_moved_away(tmp_path: Path) -> None:
    """G08: generated files in the place of a file are neither lost nor an obstacle."""
    here = watched(tmp_path)
    (here.root / "a.txt").unlink()
    (here.root / "a.txt/node_modules").mkdir(parents=True)
    (here.root / "a.txt/node_modules/left.js").write_text("x")
    assert here.undone() == ()
    assert here.is_as_before()
    assert list((tmp_path / "state/watch/aside").glob("*/node_modules/left.js"))


def test_a_pipe_that_was_there_before_cannot_be_put_back_and_is_named(tmp_path: Path) -> None:
    """T18: what is not possible is said."""
    here = watched(tmp_path)
    os.mkfifo(here.root / "pipe")
    here.watch.begin()
    (here.root / "pipe").unlink()
    (here.root / "a.txt").write_text("x")
    assert here.undone() == ("pipe",)
    assert here.kinds() == {"pipe": "deleted"}
