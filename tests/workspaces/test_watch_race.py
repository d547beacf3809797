"""A real process swaps a folder and a link for ever while the watch looks, keeps and undoes: nothing gets out."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ganger.errors import GangerError
from ganger.workspaces.direct.edits import FolderEdits
from tests.workspaces.test_write_race import SWAPPER
from tests.workspaces.watch_harness import Watched, watched
from tests.workspaces.write_harness import fast_folder, snapshot

CANARY = "somebody else's\n"
FILES = {"sub/inner/a": "a\n", "sub/inner/b": "b\n", "sub/c": "c\n", "top": "top\n"}


@contextmanager
def raced() -> Iterator[Watched]:
    """`ws/sub` is by turns the folder that was watched and a link to one outside with the same names in it."""
    with fast_folder() as top:
        here = watched(top, FILES)
        (here.place.outside / "inner").mkdir()
        for name in ("inner/a", "inner/b", "inner/new", "c"):
            (here.place.outside / name).write_text(CANARY)
        (here.root / "link").symlink_to(here.place.outside)
        here.watch.begin()
        argv = [sys.executable, "-c", SWAPPER, str(here.root / "sub"), str(here.root / "link")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as swapper:
            try:
                assert swapper.stdout is not None
                assert swapper.stdout.readline() == "swapping\n"
                yield here
            finally:
                swapper.kill()


def edit(root: Path) -> None:
    """As an agent would, wherever the path leads just now; never outside."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        folder = os.open(root / "sub", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    for name in ("inner/a", "inner/new"):
        try:
            file = os.open(name, flags, dir_fd=folder)
        except OSError:
            continue
        os.write(file, b"agent\n")
        os.close(file)
    os.close(folder)


def own_edit(here: Watched) -> FolderEdits:
    """A change of the agent's alone, looked at in a moment in which everything was in its place."""
    while True:
        edit(here.root)
        change = here.seen()
        if [one.path for one in change.touched] == ["sub/inner/a", "sub/inner/new"]:
            return change


def test_the_race_catches_an_undo_that_goes_by_names() -> None:
    """T18: the harness is proved before it is believed."""
    with raced() as here:
        outside = snapshot(here.place.outside)
        for _ in range(50_000):
            if not (here.root / "sub").is_symlink():
                try:
                    (here.root / "sub/inner/a").write_text("a\n")
                except OSError:
                    continue
            if snapshot(here.place.outside) != outside:
                return
    raise AssertionError("the naive undo never escaped: the race does not race")


@pytest.mark.whole
def test_no_raced_undo_changes_anything_outside() -> None:
    """T18 W02: 2,000 undos, many of them through and many hindered."""
    through = hindered = 0
    with raced() as here:
        outside = snapshot(here.place.outside)
        change = own_edit(here)
        for _ in range(2000):
            edit(here.root)
            lost = here.watch.undo(change)
            through, hindered = through + (not lost), hindered + bool(lost)
        assert snapshot(here.place.outside) == outside
    assert through > 20
    assert hindered > 20


def test_no_raced_look_reads_anything_from_outside() -> None:
    """T18 G05: neither the kept contents nor a saved edit ever hold a stranger's bytes."""
    canary = hashlib.sha256(CANARY.encode()).hexdigest()
    seen: set[str] = set()
    with raced() as here:
        for number in range(400):
            edit(here.root)
            change = here.seen()
            seen.update(one.path for one in change.touched)
            assert canary not in [one.after.digest for one in change.touched if one.after]
            try:
                here.watch.save(change, here.place.folder.parent / f"edit{number}")
                here.watch.accept(change)
                here.watch.begin()
            except GangerError:
                continue
        kept = [path.read_bytes() for path in here.place.folder.parent.rglob("*") if path.is_file()]
        assert not [data for data in kept if CANARY.encode() in data]
    assert len(seen) > 3
