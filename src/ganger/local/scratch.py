"""Temporary files whose names say which process made them, so that those of dead processes can be removed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ganger.local.procfs import boot_id, living_since, pid_namespace

_NAME = re.compile(r"ganger-[a-z]+-([0-9a-f]{8})-([0-9]+)-([0-9]+)-.+")


def prefix(what: str) -> str:
    """The start of the name of this process's temporary files and folders."""
    return f"ganger-{what}-{_machine()}-{os.getpid()}-{living_since(os.getpid()) or 0}-"


def scratch_folder(what: str, place: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """Removed at the end of its context; that of a killed process is removed by a later one."""
    return tempfile.TemporaryDirectory(prefix=prefix(what), dir=place, ignore_cleanup_errors=True)


def sweep(places: Iterable[Path] = (Path("/tmp"), Path("/var/tmp"))) -> list[Path]:  # noqa: S108
    """Removes what processes left that are certainly dead: known by machine, boot and process number."""
    swept = []
    for place in {Path(tempfile.gettempdir()), *places}:
        try:
            with os.scandir(place) as entries:
                left = [Path(entry.path) for entry in entries if _is_left(entry)]
        except OSError:
            continue
        for path in left:
            _remove(path)
            swept.append(path)
    return swept


def _is_left(entry: os.DirEntry[str]) -> bool:
    found = _NAME.fullmatch(entry.name)
    if found is None or found[1] != _machine() or living_since(int(found[2])) == int(found[3]):
        return False
    try:
        owner = entry.stat(follow_symlinks=False).st_uid
    except OSError:
        return False
    return os.geteuid() in (0, owner)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink()
    except OSError:
        return


@cache
def _machine() -> str:
    """The machine and its boot: other machines may share the folder, and their process numbers mean nothing here."""
    boot, namespace = boot_id(), pid_namespace()
    if not boot or not namespace:
        return "0" * 8
    return hashlib.sha256(f"{boot}:{namespace}".encode()).hexdigest()[:8]
