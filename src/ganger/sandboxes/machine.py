"""Facts about the machine outside the sandbox, with which the program inside verifies that it is isolated."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ganger.sandboxes.paths import TEMPORARY

_WITHOUT_A_DISK = "0"


def orders(namespaces: Iterable[str]) -> Iterator[str]:
    """This process's namespaces of these kinds, and the mounted file systems without a disk.

    Unknown facts are left out, and the program inside refuses to continue without them.
    """
    for kind in namespaces:
        with contextlib.suppress(OSError):
            yield f"apart={kind}:{Path('/proc/self/ns', kind).stat().st_ino}"
    with contextlib.suppress(OSError):
        yield f"known={','.join(sorted({*_mounted(), *_standing()}))}"


def _mounted() -> Iterator[str]:
    """Device numbers as in `st_dev`."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        major, _, minor = line.split()[2].partition(":")
        if major == _WITHOUT_A_DISK:
            yield str(os.makedev(int(major), int(minor)))


def _standing() -> Iterator[str]:
    """In a changed root the list of mounts may lack the file systems of the root's own folders."""
    for place in ("/", *TEMPORARY, "/dev/shm"):  # noqa: S108
        with contextlib.suppress(OSError):
            yield str(Path(place).stat().st_dev)
