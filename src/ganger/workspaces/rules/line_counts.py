"""Which lines a change added and removed, counted rather than aligned, so that the time is linear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """One line of the present file; `number` counts from 1."""

    number: int
    text: bytes


def added_lines(before: bytes, after: bytes) -> list[Line]:
    """The lines that `after` has more often than `before`; moved lines do not count."""
    if not before:
        return [Line(number, text) for number, text in enumerate(after.split(b"\n"), 1)]
    known = Counter(_bare(before))
    new: list[Line] = []
    for number, text in enumerate(_bare(after), 1):
        if known[text] > 0:
            known[text] -= 1
        else:
            new.append(Line(number, text))
    return new


def changed_lines(before: bytes, after: bytes) -> list[bytes]:
    """The lines added and the lines removed."""
    return [line.text for line in (*added_lines(before, after), *added_lines(after, before))]


def _bare(content: bytes) -> Sequence[bytes]:
    return [line.rstrip(b"\r") for line in content.split(b"\n")]


def listed(text: str) -> frozenset[str]:
    """The words of a table row."""
    return frozenset(text.split())
