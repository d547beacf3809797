"""A run's output: a closed reader or a full disk does not end the run."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from ganger.local.streams import write_nowhere

# The reader or the terminal is gone, or the descriptor was closed.
_FOR_GOOD = (errno.EPIPE, errno.EIO, errno.EBADF, errno.ECONNRESET)


class _LastingOutput:
    """A stream whose reader may leave and whose disk may be full; neither ends the run that writes to it."""

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
            # What a full disk did not take is written with the next line.
            if error.errno in _FOR_GOOD:
                with contextlib.suppress(OSError, ValueError):
                    write_nowhere(self._stream)


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """Wraps stdout and stderr for as long as a run is led."""
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _LastingOutput(sys.stdout), _LastingOutput(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
