"""Disks to lose or to fill: small file systems mounted where only this process and its children see them."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_EXT4_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2
_MEGABYTES = 48


class NoDisk(Exception):
    """This machine cannot mount; the message says why."""


@cache
def _own_mounts() -> None:
    """Once per process: from here on nobody else sees what it mounts."""
    if os.geteuid() != 0:
        raise NoDisk("mounting needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) != 0:
        raise NoDisk(f"no mount namespace of one's own: {os.strerror(ctypes.get_errno())}")
    _call("mount", "--make-rprivate", "/")


def _call(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoDisk(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")


class Disk:
    """An ext4 file system in one file, at one folder."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.image, self.folder = image, folder

    def make(self) -> None:
        if shutil.which("mkfs.ext4") is None:
            raise NoDisk("mkfs.ext4 is not installed")
        with open(self.image, "wb") as file:
            file.truncate(_MEGABYTES << 20)
        _call("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,nodiscard", str(self.image))

    def mount(self) -> None:
        # Without this option ext4 itself writes a file's data before a rename, and so hides a missing fsync.
        _call("mount", "-o", "loop,noauto_da_alloc", str(self.image), str(self.folder))

    def cut_power(self) -> None:
        """What was not synced by now is lost; every later write fails."""
        fd = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, _EXT4_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def unmount(self) -> None:
        end = time.monotonic() + 20
        while True:
            try:
                return _call("umount", str(self.folder))
            except NoDisk:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)


@contextlib.contextmanager
def disk(image: Path, folder: Path) -> Iterator[Disk]:
    """A mounted disk; afterwards it is gone."""
    _own_mounts()
    made = Disk(image, folder)
    made.make()
    made.mount()
    try:
        yield made
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A file system in memory that is soon full."""
    _own_mounts()
    _call("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
