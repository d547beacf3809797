"""Short hashes of prompts and context files: each file is read once and recognised by size and times."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ganger.core.control.reconcile import ContentDigest
from ganger.core.model.records import TaskSpec
from ganger.errors import GangerError
from ganger.local.run_folder import replace_file
from ganger.workspaces.files.tree import Tree

MISSING = "missing"
UNREADABLE = "unreadable"
_HEX_DIGITS = 16
_OF_THE_MACHINE = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_LARGEST_FILE = 64 * 1024 * 1024
_VERSION = 1
_SECOND = 1_000_000_000
# A file written a moment ago may be written again without a change of its times.
_TOO_YOUNG_NS = _SECOND // 10
_TOO_YOUNG_ON_COARSE_CLOCKS_NS = 2 * _SECOND


class Contents:
    """Hashes of a project's files, with a cache on disk that only saves time."""

    def __init__(self, root: Path, cache_file: Path | None = None, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._root, self._cache_file, self._now_ns = root, cache_file, now_ns
        # A string, not a Path: a manifest may name 100,000 prompts.
        self._above = f"{root}/"
        self._known = _read_cache(cache_file) if cache_file is not None else {}
        self._keep: dict[str, list[int | str]] = {}
        self._written_ns: dict[str, int] = {}

    def of(self, specs: Iterable[TaskSpec]) -> dict[str, ContentDigest]:
        """Every task's digest of the current files; each file is looked at once."""
        found: dict[str, str] = {}
        digests: dict[str, ContentDigest] = {}
        with Tree(self._root) as tree:
            for spec in specs:
                for ref in (spec.prompt_ref, *spec.context_refs):
                    if ref not in found:
                        found[ref] = self._look(tree, ref)
                context = tuple([found[ref] for ref in spec.context_refs])
                digests[spec.id] = ContentDigest(found[spec.prompt_ref], context)
        return digests

    def edited_after(self, moment: float) -> frozenset[str]:
        """Of the files looked at, those written after this time (seconds since the epoch)."""
        border = int(moment * _SECOND)
        return frozenset(ref for ref, written in self._written_ns.items() if written > border)

    def save(self) -> None:
        """Saves the cache if something is new; a failure to write it is ignored."""
        kept = {**self._known, **self._keep}
        if self._cache_file is None or kept == self._known:
            return
        with contextlib.suppress(GangerError, OSError):
            replace_file(self._cache_file, json.dumps({"version": _VERSION, "files": kept}))
            self._known = kept

    def _look(self, tree: Tree, ref: str) -> str:
        try:
            now = os.lstat(self._above + ref)
        except (FileNotFoundError, NotADirectoryError):
            return MISSING
        except (OSError, ValueError) as problem:
            _require_sound(ref, problem)
            return UNREADABLE
        self._written_ns[ref] = now.st_mtime_ns
        image = [now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino]
        known = self._known.get(ref)
        if known is not None and known[:4] == image and isinstance(known[-1], str):
            return known[-1]
        digest, whole = _read(tree, ref, now)
        if whole and _has_settled(now, self._now_ns()):
            self._keep[ref] = [*image, digest]
        return digest


def contents_of(specs: Iterable[TaskSpec], root: Path, cache_file: Path | None = None) -> dict[str, ContentDigest]:
    """Every task's digest; what had to be read is stored in `cache_file`."""
    contents = Contents(root, cache_file)
    found = contents.of(specs)
    contents.save()
    return found


def _read(tree: Tree, ref: str, seen: os.stat_result) -> tuple[str, bool]:
    """The hash of a regular file of the project, without following links; and whether the file stayed unchanged."""
    if not stat.S_ISREG(seen.st_mode):
        return UNREADABLE, False
    try:
        found = tree.read(ref, _LARGEST_FILE)
    except (GangerError, OSError) as problem:
        _require_sound(ref, problem)
        return UNREADABLE, False
    if found is None:
        return MISSING, False
    still = (found.image.size, found.image.mtime_ns) == (seen.st_size, seen.st_mtime_ns)
    return found.image.sha256[:_HEX_DIGITS], still


def _require_sound(ref: str, problem: Exception) -> None:
    """Raises for errors of the disk or the system: taken for content they would look like a change."""
    cause = problem if isinstance(problem, OSError) else problem.__cause__
    if isinstance(cause, OSError) and cause.errno in _OF_THE_MACHINE:
        raise GangerError(
            f"{ref} cannot be read: {cause.strerror}",
            hint="check the disk and the limits of this process, then run the same command again",
            code="IO_ERROR",
        ) from problem


def _has_settled(seen: os.stat_result, now_ns: int) -> bool:
    last = max(seen.st_mtime_ns, seen.st_ctime_ns)
    coarse = last % _SECOND == 0
    return now_ns - last > (_TOO_YOUNG_ON_COARSE_CLOCKS_NS if coarse else _TOO_YOUNG_NS)


def _read_cache(path: Path) -> dict[str, list[int | str]]:
    """The cache; empty if it is damaged or of another version."""
    try:
        data = json.loads(path.read_bytes())
        files = data["files"] if data["version"] == _VERSION else {}
        return files if all(type(entry) is list and len(entry) == 5 for entry in files.values()) else {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
