"""What a run leaves on the disk: workspaces, whether their work is stored elsewhere, and what is no longer needed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ganger.workspaces.files.removal import discard
from ganger.workspaces.git.git import Git
from ganger.workspaces.git.settings import Attempt

_OF_CI = re.compile(r"ci\.[0-9a-f]{7,64}\.")
_STALE_SEC = 86400.0
_FIELDS = "%H%x00%(trailers:only,unfold)%x00"


class Kept(StrEnum):
    """Where the work of a workspace is stored besides the folder itself."""

    MERGED = "merged"
    SAVED = "saved"
    UNSAVED = "unsaved"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A workspace that is still there. `task` is its id as a file name."""

    folder: Path
    task: str
    attempt: int
    bytes: int
    state: Kept


def workspaces_in(work: Path) -> Iterator[Attempt]:
    """Every attempt that has a workspace."""
    if not work.is_dir():
        return
    for folder in sorted(work.iterdir()):
        task, _, attempt = folder.name.rpartition(".")
        if (
            task
            and not folder.name.startswith(".")
            and attempt.isdigit()
            and folder.is_dir()
            and not folder.is_symlink()
        ):
            yield Attempt(task, int(attempt))


def sweep(above: Path, *, everything: bool = False) -> None:
    """Removes half-made and discarded folders, or all of them except those of CI jobs, which may still run in them."""
    for name in (".new", ".trash"):
        if (above / name).is_dir():
            for left in list((above / name).iterdir()):
                discard(left)
    if everything and above.is_dir():
        for folder in list(above.iterdir()):
            if not _OF_CI.match(folder.name):
                discard(folder)


def remove_indexes(work: Path, name: str) -> None:
    """The private index of one workspace, whatever its commit."""
    if (work / ".index").is_dir():
        for index in (work / ".index").iterdir():
            if index.name.rpartition(".")[0] == name:
                index.unlink(missing_ok=True)


def remove_stale_indexes(work: Path) -> None:
    """An index outlives its workspace when the process was killed between the two."""
    known = {one.name for one in workspaces_in(work)}
    if (work / ".index").is_dir():
        for index in list((work / ".index").iterdir()):
            if index.name.rpartition(".")[0] not in known:
                index.unlink(missing_ok=True)


def remove_stale_objects(store: Path, now: float) -> None:
    """Half-written objects of git processes that were killed long ago."""
    for pattern in ("pack/tmp_*", "??/tmp_obj_*", "tmp_objdir-*", "bulk-fsync-*"):
        for left in (store / "objects").glob(pattern):
            with suppress(OSError):
                if now - left.lstat().st_mtime > _STALE_SEC:
                    discard(left)


def trailers_between(git: Git, start: str, head: str) -> Mapping[str, Mapping[str, str]]:
    """The trailers of every commit after `start` up to `head`, oldest first."""
    words = ("log", "--reverse", "--first-parent", f"--format={_FIELDS}", f"{start}..{head}")
    pieces = os.fsdecode(git.ask(*words, doing="reading the branch").out).split("\0")
    found: dict[str, Mapping[str, str]] = {}
    for oid, text in zip(pieces[0::2], pieces[1::2], strict=False):
        lines = [line.partition(": ") for line in text.splitlines() if ": " in line]
        found[oid.strip()] = {name: value.strip() for name, _, value in lines}
    return found
