"""One run at a time changes a folder in place."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ganger.errors import RunLockedError
from ganger.local.locks import locked
from ganger.local.run_folder import named_os_errors


@contextlib.contextmanager
def alone_in(state_dir: Path, run: str) -> Iterator[None]:
    """Holds a folder for this run: otherwise one run would change what the other verifies."""
    path = state_dir / "direct.lock"
    with named_os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not locked(fd):
            other = os.pread(fd, 256, 0).decode("utf-8", "replace").strip() or "another run"
            raise RunLockedError(
                f"run {other} works in this folder; in direct mode one run at a time may change it",
                hint="wait for it, or end it: ganger stop --run " + other,
            )
        with named_os_errors(path):
            os.ftruncate(fd, 0)
            os.pwrite(fd, run.encode()[:256], 0)
        yield
    finally:
        os.close(fd)
