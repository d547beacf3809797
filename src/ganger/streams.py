"""Standard streams: there whatever the caller closed, and for a run's output no matter who still reads it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

# The reader is gone, the terminal is gone, the descriptor was closed.
_FOR_GOOD = (errno.EPIPE, errno.EIO, errno.EBADF, errno.ECONNRESET)


def open_closed_streams() -> None:
    """What the caller closed (`>&-`) is nothing to read and nowhere to write; left closed, the next file that is opened
    would get its number, and words for a person would end up in it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and hasattr(stream, "reconfigure"):
            # An encoding that lacks a sign must not end a run.
            stream.reconfigure(errors="replace" if stream.errors == "strict" else stream.errors)


def write_nowhere(stream: TextIO) -> None:
    """Also what the stream still holds: the interpreter would complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


class _LastingOutput:
    """A stream whose reader may leave and whose disk may be full; neither ends the work that tells of itself there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._unharmed():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._unharmed():
            self._stream.flush()

    @contextlib.contextmanager
    def _unharmed(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What a full disk did not take now comes with the next line.
            if error.errno in _FOR_GOOD:
                with contextlib.suppress(OSError, ValueError):
                    write_nowhere(self._stream)


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """For as long as a run is led."""
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _LastingOutput(sys.stdout), _LastingOutput(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
