"""Whether the files of a folder change while a worker uses it: each look covers part of a big tree.

An agent owns the folder and may put anything into it at any time: only folders are followed, opened or waited for, and
a time in the future is ignored. Only a difference from the look before counts as a change, so one touch is one sign of
life and not many.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 128
_MOST_FOLDERS = 200_000
# The largest share of one processor's time: there may be many workers to watch.
_SHARE = 0.02
_GIT = ".git"


class Newest:
    """`look` continues where the last one stopped; each folder is compared with its state one whole round before.

    Nothing named `.git` is entered: even a plain `git status` writes there. Paths for which `skip` holds are passed
    over, with everything below them. `budget` is how many entries one look reads, within a factor of two; of a larger
    folder the rest is known by its number of changes only.
    """

    def __init__(
        self,
        root: Path,
        *,
        skip: Callable[[str], bool] = lambda _path: False,
        budget: int = 5_000,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._root, self._skip, self._budget, self._wall = root, skip, budget, wall
        self._since = wall()
        self._changed_at = 0.0
        self._before: dict[str, int] | None = None
        self._seen: dict[str, int] = {}
        self._ahead = [""]
        self._rest_until = float("-inf")

    def look(self, now: float) -> float:
        """When a change was last seen, on the clock of `now`; 0 while there was none.

        Until the first round is finished there is nothing to compare with. Until then a file counts if its own time is
        later than the start of the watch.
        """
        if now < self._rest_until:
            return self._changed_at
        began = time.perf_counter()
        self._go_on(now)
        self._rest_until = now + (time.perf_counter() - began) / _SHARE
        return self._changed_at

    def _go_on(self, now: float) -> None:
        left, wall = self._budget, self._wall()
        while left > 0 and self._ahead:
            folder = self._ahead.pop()
            try:
                times = self._read(folder, now)
            except (OSError, ValueError):
                # Gone, unreadable, or something else by now: the folder above has changed then.
                left -= 1
                continue
            left -= len(times)
            if self._before is None:
                self._date(times, now, wall)
        if not self._ahead or len(self._seen) > _MOST_FOLDERS:
            self._before, self._seen, self._ahead = self._seen, {}, [""]

    def _read(self, folder: str, now: float) -> list[int]:
        """Compares a folder with its earlier state; returns when it and each of its files were last written."""
        with _opened(self._root, folder) as fd:
            times = [os.fstat(fd).st_mtime_ns]
            total = hash(("", times[0]))
            with os.scandir(fd) as listing:
                for entry in islice(listing, self._budget):
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.name != _GIT and not self._skip(path):
                        total += self._entry(entry, path, times)
        self._seen[folder] = total
        if self._before is not None and self._before.get(folder) != total:
            self._changed_at = now
        return times

    def _entry(self, entry: os.DirEntry[str], path: str, times: list[int]) -> int:
        try:
            if entry.is_dir(follow_symlinks=False):
                if path.count("/") < _DEEPEST and len(self._ahead) < _MOST_FOLDERS:
                    self._ahead.append(path)
                times.append(0)
                return hash(entry.name)
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return 0
        times.append(found.st_mtime_ns)
        return hash((entry.name, found.st_mtime_ns, found.st_size))

    def _date(self, times: list[int], now: float, wall: float) -> None:
        """A time in the future counts as none."""
        newest = max((at for at in times if at <= wall * 1e9), default=0) / 1e9
        if newest >= self._since:
            self._changed_at = max(self._changed_at, now - (wall - newest))


@contextmanager
def _opened(root: Path, folder: str) -> Iterator[int]:
    """Opens a folder step by step from the root, so that no link on the way leads elsewhere."""
    fd = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for name in folder.split("/") if folder else ():
            above, fd = fd, os.open(name, _FOLDER, dir_fd=fd)
            os.close(above)
        yield fd
    finally:
        os.close(fd)
