"""Whole lines from bytes that arrive in pieces."""

from __future__ import annotations

from collections.abc import Iterator

# A longer line is not an event of any known agent and is not kept in memory.
LONGEST_LINE = 32 * 1024 * 1024


class Lines:
    """Splits incoming bytes into lines without their ends; over-long lines are dropped."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skip = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        *whole, rest = data.split(b"\n")
        for part in whole:
            line = bytes(self._rest + part) if self._rest else part
            self._rest.clear()
            if not self._skip:
                yield line.rstrip(b"\r")
            self._skip = False
        if len(self._rest) + len(rest) > LONGEST_LINE:
            self._rest.clear()
            self._skip = True
        elif not self._skip:
            self._rest += rest

    def end(self) -> Iterator[bytes]:
        if self._rest:
            yield bytes(self._rest).rstrip(b"\r")
        self._rest.clear()
