"""Standard streams that are there whatever the caller closed. Read before anything else, so it imports nothing slow."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO


class OutputRefused(OSError):
    """What a command has to say could not be written: the full disk or the wrong file is where its output goes."""


class SaidOutput:
    """Standard output whose errors say that they are its own; no other error names no file."""

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
    """A reader that went away refuses nothing: it has seen enough."""
    return error if isinstance(error, BrokenPipeError) else OutputRefused(error.errno, error.strerror)


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


def write_nowhere(stream: TextIO | SaidOutput) -> None:
    """Also what the stream still holds: the interpreter would complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)
