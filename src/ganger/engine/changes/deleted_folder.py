"""Notices soon when a project's folder is deleted during a run, so that no agent is paid for lost work."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ganger.errors import NotFoundError

_LOOK_SEC = 5.0


class FolderDeleted(NotFoundError):
    """The project's folder is gone: what agents do in it is lost."""


async def until_deleted(folder: Path) -> None:
    """Raises FolderDeleted once the folder is gone or replaced by another one."""
    try:
        known = folder.stat()
    except OSError:
        return
    while not _is_gone(folder, known):
        await asyncio.sleep(_LOOK_SEC)
    raise FolderDeleted(
        f"the folder {folder} was deleted while the run worked on it",
        hint="restore it and run the same command again, or start a new run in another folder",
    )


def _is_gone(folder: Path, known: os.stat_result) -> bool:
    """A disk that does not answer does not prove that the folder is gone."""
    try:
        return not os.path.samestat(folder.stat(), known)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
