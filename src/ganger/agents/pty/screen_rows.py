"""The rows of a terminal's screen: cells, wide characters, and the lines they make."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(slots=True)
class Row:
    """One row of cells; the second half of a wide character is empty. `wrapped`: the text goes on in the next row."""

    cells: list[str]
    wrapped: bool = False

    def text(self) -> str:
        shown = "".join(self.cells)
        return shown if self.wrapped else shown.rstrip()


@dataclass(slots=True)
class Plane:
    """One of the two screens, with its cursor."""

    rows: list[Row]
    x: int = 0
    y: int = 0
    saved: tuple[int, int] = (0, 0)
    late: bool = False


def joined(rows: Iterable[Row]) -> Iterator[tuple[int, str]]:
    """Lines as they were written: wrapped rows are joined. Each with the number of its first row."""
    parts: list[str] = []
    begin = 0
    for n, row in enumerate(rows):
        begin = begin if parts else n
        parts.append(row.text())
        if not row.wrapped:
            yield begin, "".join(parts)
            parts = []
    if parts:
        yield begin, "".join(parts).rstrip()


@lru_cache(maxsize=4096)
def width_of(one: str) -> int:
    """How many columns a character takes."""
    if one.isascii():
        return 1
    if unicodedata.category(one) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in ("W", "F") else 1


def split(cells: list[str], at: int) -> None:
    """Removes a wide character of which only half would be left."""
    if 0 < at < len(cells) and cells[at] == "":
        cells[at] = " "
        cells[at - 1] = " "


# The target of a movement, by the letter that ends its sequence; None: unchanged.
MOVES: dict[str, Callable[[Plane, int], tuple[int | None, int | None]]] = {
    "A": lambda plane, count: (None, plane.y - count),
    "B": lambda plane, count: (None, plane.y + count),
    "e": lambda plane, count: (None, plane.y + count),
    "C": lambda plane, count: (plane.x + count, None),
    "a": lambda plane, count: (plane.x + count, None),
    "D": lambda plane, count: (plane.x - count, None),
    "E": lambda plane, count: (0, plane.y + count),
    "F": lambda plane, count: (0, plane.y - count),
    "G": lambda plane, count: (count - 1, None),
    "`": lambda plane, count: (count - 1, None),
    "d": lambda plane, count: (None, count - 1),
}
