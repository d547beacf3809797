"""Runs a command on this machine as on one that lacks something; needs root, and changes nothing for anybody else.

`python scripts/without.py [bwrap] [landlock] -- COMMAND…`: no bubblewrap is found, the kernel has no Landlock. Tests
that need one are skipped then, also under CI=true.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import sys
from collections.abc import Callable

from ganger.sandboxes import kernel

_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 1 << 14, 1 << 18
_LANDLOCK_CREATE, _NO_SUCH_CALL, _ALLOW = 444, 0x00050000 | 38, 0x7FFF0000
_LIBC = ctypes.CDLL(None, use_errno=True)


def hide_bwrap() -> None:
    """Wherever it is: what lies there instead is no program."""
    _done(_LIBC.unshare(_CLONE_NEWNS))
    _done(_LIBC.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    while found := shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin:/usr/local/bin"):
        _done(_LIBC.mount(b"/dev/null", os.path.realpath(found).encode(), None, _MS_BIND, None))


def hide_landlock() -> None:
    """A filter of system calls, which all children inherit."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, _LANDLOCK_CREATE), (0x06, 0, 0, _NO_SUCH_CALL), (0x06, 0, 0, _ALLOW)]
    kernel.install_filter(b"".join(struct.pack("=HBBI", *step) for step in steps))


HIDE: dict[str, Callable[[], None]] = {"bwrap": hide_bwrap, "landlock": hide_landlock}


def _done(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def main(arguments: list[str]) -> None:
    names, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    for name in names:
        HIDE[name]()
    os.execvpe(command[0], command, {name: value for name, value in os.environ.items() if name != "CI"})


if __name__ == "__main__":
    main(sys.argv[1:])
