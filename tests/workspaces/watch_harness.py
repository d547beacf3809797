"""What the watch tests share: a place that is watched, and what became of it after an agent was there."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ganger.workspaces.direct.edits import FolderEdits
from ganger.workspaces.direct.watch import FolderWatch
from ganger.workspaces.rules.artifacts import is_generated
from tests.workspaces.write_harness import Entry, Place, make_place, snapshot

NOBODY = 65534
FILES = {
    "a.txt": "alpha\n" * 30,
    "run.sh": "#!/bin/sh\n",
    "src/app.py": "print('app')\n",
    "src/deep/er/x.py": "x = 1\n",
    "tests/test_app.py": "def test(): ...\n",
    "empty.txt": "",
}


@dataclass
class Watched:
    """A project with a snapshot, and how it was."""

    place: Place
    watch: FolderWatch
    before: dict[str, Entry]

    @property
    def root(self) -> Path:
        return self.place.root

    def seen(self) -> FolderEdits:
        return self.watch.changed()

    def kinds(self) -> dict[str, str]:
        return {one.path: one.kind for one in self.seen().touched}

    def undone(self) -> tuple[str, ...]:
        return self.watch.undo(self.watch.changed())

    def is_as_before(self) -> bool:
        return snapshot(self.root) == self.before


def watch_of(place: Place, limit_bytes: int = 256 << 20) -> FolderWatch:
    return FolderWatch(place.root, place.folder.parent / "watch", is_generated, limit_bytes)


def watched(above: Path, files: dict[str, str] | None = None, limit_bytes: int = 256 << 20) -> Watched:
    place = make_place(above, FILES if files is None else files)
    if files is None:
        (place.root / "run.sh").chmod(0o755)
        (place.root / "link").symlink_to("src/app.py")
    watch = watch_of(place, limit_bytes)
    watch.begin()
    return Watched(place, watch, snapshot(place.root))


def same_size_and_time(path: Path, data: bytes) -> None:
    """An edit that neither size nor modification time shows."""
    found = path.stat()
    assert len(data) == found.st_size
    path.write_bytes(data)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def make_levels(folder: Path, count: int) -> None:
    """Folders in folders, far deeper than a path can be spelt."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d", dir_fd=fd)
        above, fd = fd, os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(above)
    os.close(fd)


def busy_agent(root: Path) -> None:
    """Something of every kind of change."""
    (root / "a.txt").write_text("beta\n")
    (root / "run.sh").chmod(0o644)
    (root / "src/deep/er/x.py").unlink()
    (root / "src/deep/er").rmdir()
    (root / "link").unlink()
    (root / "link").symlink_to("a.txt")
    (root / "new/dir").mkdir(parents=True)
    (root / "new/dir/n.txt").write_text("new\n")
    os.rename(root / "src/app.py", root / "moved.py")
    os.mkfifo(root / "pipe")


def as_ordinary_user(act: Callable[[], object]) -> str:
    """What went wrong when somebody without any privilege did this; "" when nothing did. Only root can ask."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        trouble = "it ended without a word"
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            # Whoever changed its user may not look into its own /proc otherwise; an ordinary process may.
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
            act()
            trouble = ""
        except BaseException:  # noqa: BLE001 - whatever it is, the parent reports it
            trouble = traceback.format_exc()
        finally:
            os.write(writing, trouble.encode()[-60_000:])
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return found
