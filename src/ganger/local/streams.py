"""Opens standard streams that the caller closed. Imported before anything else, so it imports nothing slow."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO


class OutputRefused(OSError):
    """A command's output could not be written: the disk is full, or it goes to a file that takes no writes."""


class SaidOutput:
    """Standard output whose errors can be told from others: they become OutputRefused."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, said: Any) -> Any:
        try:
            return self._stream.write(said)
        except OSError as error:
            raise _of_output(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise _of_output(error) from error


def _of_output(error: OSError) -> OSError:
    """The error as OutputRefused, unless the reader closed its end, which is normal."""
    return error if isinstance(error, BrokenPipeError) else OutputRefused(error.errno, error.strerror)


def open_closed_streams() -> None:
    """Opens the null device for streams that the caller closed (`>&-`). Otherwise the next file to be opened would get
    the stream's number, and messages would be written to that file."""
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
            # A character missing in the encoding must not end a run.
            stream.reconfigure(errors="replace" if stream.errors == "strict" else stream.errors)


def write_nowhere(stream: TextIO | SaidOutput) -> None:
    """Also discards what the stream still holds: the interpreter would complain about it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)
