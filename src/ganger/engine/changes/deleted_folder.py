"""A project's folder that is deleted while a run works on it: noticed soon, as nobody is paid for what is lost."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ganger.errors import NotFoundError

_LOOK_SEC = 5.0


class FolderDeleted(NotFoundError):
    """Whoever works for the run works for nobody."""


async def until_deleted(folder: Path) -> None:
    """Raises FolderDeleted once it is gone, or another one is in its place."""
    try:
        known = folder.stat()
    except OSError:
        return
    while not _is_gone(folder, known):
        await asyncio.sleep(_LOOK_SEC)
    raise FolderDeleted(
        f"the folder {folder} was deleted while the run worked on it",
        hint="bring it back and run the same command again, or begin anew in another folder",
    )


def _is_gone(folder: Path, known: os.stat_result) -> bool:
    """A disk that does not answer is not empty for that."""
    try:
        return not os.path.samestat(folder.stat(), known)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
