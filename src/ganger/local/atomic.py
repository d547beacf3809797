"""Files replaced as a whole: a reader finds the old content or the new, never a part."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Durable when it returns, also after a power cut: temporary file, fsync, rename, fsync of the folder."""
    put_file(path, data, mode, synced=True)
    sync_folder(path.parent)


def put_file(path: Path, data: bytes, mode: int = 0o600, *, synced: bool = False) -> None:
    """Whole at every instant. Without `synced` a power cut may bring back what was there before.

    The temporary file is made new and follows no link: another program may have put one there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        made = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with open(made, "wb") as file:
            file.write(data)
            file.flush()
            if synced:
                os.fsync(made)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """What was created, renamed or removed in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
