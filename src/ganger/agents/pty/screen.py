"""A terminal's screen: bytes of a program in, the text a person would see out; cells, rows and lines."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(slots=True)
class ScreenRow:
    """One row of cells; the second half of a wide character is empty. `wrapped`: the text goes on in the next row."""

    cells: list[str]
    wrapped: bool = False

    def text(self) -> str:
        shown = "".join(self.cells)
        return shown if self.wrapped else shown.rstrip()


@dataclass(slots=True)
class Plane:
    """One of the two screens, with its cursor."""

    rows: list[ScreenRow]
    x: int = 0
    y: int = 0
    saved: tuple[int, int] = (0, 0)
    late: bool = False


def joined(rows: Iterable[ScreenRow]) -> Iterator[tuple[int, str]]:
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


_LONGEST_SEQUENCE = 256
_LONGEST_STRING = 64 * 1024
_TAB = 8
_FAR = 9999
_MOST_COMBINED = 16
_DRAWING = dict(zip("jklmnqtuvwxaf`~", "┘┐┌└┼─├┤┴┬│▒°◆·", strict=True))
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<marks>[<=>?]?)(?P<numbers>[\d;:]{0,128})(?P<middle>[ -/]{0,8})(?P<final>[@-~])"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?P<string>[^\x07\x1b\x9c]{0,65536})(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?P<shift>[()*+\-./#% ][ -~])"
    r"|\x1b(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c])"
)


class TerminalScreen:
    """`gone`: rows that left at the top, to be taken by `take_gone`. `replies`: answers to what the program asked.

    `first` counts the rows that left, so that `first + n` names the n-th visible row for good.
    """

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns, self.rows = max(2, columns), max(2, rows)
        self.pastes = False
        self.alternate = False
        self.first = 0
        self.replies = bytearray()
        self._gone: list[ScreenRow] = []
        self._rest = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._reset()

    def _reset(self) -> None:
        self._main, self._other = self._plane(), self._plane()
        self._now = self._main
        self.alternate = False
        self._top, self._bottom = 0, self.rows - 1
        self._wraps, self._inserts, self._origin, self._draws = True, False, False, False
        self._last = " "

    # --- what it shows ------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""
        return self._now.x, self._now.y

    def visible(self) -> list[ScreenRow]:
        """The visible rows, without the empty ones at the end."""
        rows = self._now.rows
        last = next((n for n in range(len(rows) - 1, -1, -1) if rows[n].text().strip()), -1)
        return rows[: last + 1]

    def text(self) -> str:
        return "\n".join(line for _, line in joined(self.visible()))

    def take_gone(self) -> list[ScreenRow]:
        gone, self._gone = self._gone, []
        return gone

    def take_replies(self) -> bytes:
        replies = bytes(self.replies)
        self.replies.clear()
        return replies

    # --- input --------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        text = self._rest + self._decode.decode(data)
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is not None:
                self._act(found)
                at = found.end()
            elif self._may_go_on(text, at):
                break
            else:
                # An unknown sequence: its first character is dropped and the rest is text again.
                at += 1
        self._rest = text[at:]

    def _may_go_on(self, text: str, at: int) -> bool:
        """Whether this may be the start of a sequence whose end has not arrived yet."""
        rest = len(text) - at
        if rest == 1:
            return True
        if (text[at] == "\x1b" and text[at + 1] in "]PX^_") or text[at] in "\x90\x98\x9d\x9e\x9f":
            end = text.find("\x1b", at + 2)
            return rest < _LONGEST_STRING and (end < 0 or end == len(text) - 1)
        body = text[at + 1 :].removeprefix("[")
        return rest < _LONGEST_SEQUENCE and all(" " <= one <= "?" for one in body)

    def _act(self, found: re.Match[str]) -> None:
        kind = found.lastgroup
        if kind == "text":
            self._print(found["text"])
        elif kind == "control":
            self._control(found["control"])
        elif kind == "final":
            self._sequence(found)
        elif kind == "escape":
            self._escape(found["escape"])
        elif kind == "shift":
            if found["shift"][0] == "(":
                self._draws = found["shift"][1] == "0"
        elif kind == "string":
            self._string(found["string"])

    # --- characters ---------------------------------------------------------------------------------------------------

    def _print(self, text: str) -> None:
        plane = self._now
        for one in text:
            one = _DRAWING.get(one, one) if self._draws else one
            width = width_of(one)
            if width == 0:
                self._combine(one)
                continue
            if plane.late:
                self._wrap(width)
            elif width == 2 and plane.x == self.columns - 1:
                plane.rows[plane.y].cells[-1] = ""
                self._wrap(width)
            self._place(one, width)
            self._last = one

    def _wrap(self, width: int) -> None:
        plane = self._now
        plane.late = False
        if not self._wraps:
            plane.x = self.columns - width
            return
        plane.rows[plane.y].wrapped = True
        plane.x = 0
        self._line_feed()

    def _place(self, one: str, width: int) -> None:
        plane = self._now
        row = plane.rows[plane.y]
        cells = row.cells
        if self._inserts:
            cells[plane.x : plane.x] = [" "] * width
            del cells[self.columns :]
        split(cells, plane.x)
        split(cells, plane.x + width)
        cells[plane.x] = one
        if width == 2:
            cells[plane.x + 1] = ""
        plane.x += width
        if plane.x >= self.columns:
            plane.x, plane.late, row.wrapped = self.columns - 1, True, False

    def _combine(self, one: str) -> None:
        plane = self._now
        cells = plane.rows[plane.y].cells
        at = plane.x if plane.late else plane.x - 1
        at -= 1 if at > 0 and cells[at] == "" else 0
        if at >= 0 and len(cells[at]) < _MOST_COMBINED:
            cells[at] += one

    # --- moving and erasing -------------------------------------------------------------------------------------------

    def _control(self, one: str) -> None:
        plane = self._now
        if one in "\n\v\f\x84\x85":
            self._line_feed()
            plane.x = 0 if one == "\x85" else plane.x
            plane.late = False
        elif one == "\r":
            self._to(0, None)
        elif one == "\b":
            self._to(plane.x - 1, None)
        elif one == "\t":
            self._to(min(self.columns - 1, (plane.x // _TAB + 1) * _TAB), None)
        elif one == "\x8d":
            self._reverse_feed()

    def _escape(self, one: str) -> None:
        plane = self._now
        if one == "7":
            plane.saved = (plane.x, plane.y)
        elif one == "8":
            self._to(*plane.saved)
        elif one == "D":
            self._line_feed()
        elif one == "E":
            self._line_feed()
            self._to(0, None)
        elif one == "M":
            self._reverse_feed()
        elif one == "c":
            self._reset()

    def _to(self, x: int | None, y: int | None) -> None:
        plane = self._now
        plane.late = False
        if x is not None:
            plane.x = min(max(0, x), self.columns - 1)
        if y is not None:
            plane.y = min(max(0, y), self.rows - 1)

    def _line_feed(self) -> None:
        plane = self._now
        if plane.y == self._bottom:
            self._scroll_up(1)
        elif plane.y < self.rows - 1:
            plane.y += 1

    def _reverse_feed(self) -> None:
        plane = self._now
        plane.late = False
        if plane.y == self._top:
            self._insert_rows(self._top, 1)
        elif plane.y > 0:
            plane.y -= 1

    def _scroll_up(self, count: int) -> None:
        for row in self._now.rows[self._top : self._top + min(count, self._bottom - self._top + 1)]:
            self._gone.append(row)
            # Numbers of visible rows hold only while the whole screen moves.
            self.first += 1 if self._top == 0 else 0
        self._delete_rows(self._top, count)

    def _insert_rows(self, at: int, count: int) -> None:
        rows = self._now.rows
        for _ in range(min(count, self._bottom - at + 1)):
            del rows[self._bottom]
            rows.insert(at, self._blank())

    def _delete_rows(self, at: int, count: int) -> None:
        rows = self._now.rows
        for _ in range(min(count, self._bottom - at + 1)):
            del rows[at]
            rows.insert(self._bottom, self._blank())

    def _erase(self, row: ScreenRow, first: int, last: int) -> None:
        """Erases from one column to before another."""
        last = min(last, self.columns)
        if first < last:
            split(row.cells, first)
            split(row.cells, last)
            row.cells[first:last] = [" "] * (last - first)
        if last == self.columns:
            row.wrapped = False

    def _erase_line(self, how: int) -> None:
        plane = self._now
        plane.late = False
        first, last = ((plane.x, self.columns), (0, plane.x + 1), (0, self.columns))[min(how, 2)]
        self._erase(plane.rows[plane.y], first, last)

    def _erase_screen(self, how: int) -> None:
        plane = self._now
        if how in (0, 1):
            self._erase_line(how)
        blank = {0: range(plane.y + 1, self.rows), 1: range(plane.y), 2: range(self.rows)}.get(how, range(0))
        for n in blank:
            plane.rows[n] = self._blank()

    # --- sequences ----------------------------------------------------------------------------------------------------

    def _sequence(self, found: re.Match[str]) -> None:
        numbers = [min(int(part[:9]), _FAR) if part else 0 for part in found["numbers"].replace(":", ";").split(";")]
        marks, final = found["marks"], found["middle"] + found["final"]
        if marks == "?" and final in "hl":
            self._mode(numbers, final == "h")
        elif final in ("n", "c", "$p", "q"):
            self._ask(marks, final, numbers)
        elif marks:
            return
        elif final in "hl" and 4 in numbers:
            self._inserts = final == "h"
        elif final in MOVES:
            x, y = MOVES[final](self._now, max(1, numbers[0]))
            self._to(x, y)
        elif final in "Hf":
            self._position(max(1, numbers[1]) if len(numbers) > 1 else 1, max(1, numbers[0]))
        else:
            self._change(final, numbers)

    def _position(self, column: int, row: int) -> None:
        self._to(column - 1, row - 1 + (self._top if self._origin else 0))

    def _change(self, final: str, numbers: list[int]) -> None:
        plane, count = self._now, max(1, numbers[0])
        row = plane.rows[plane.y]
        if final == "J":
            self._erase_screen(numbers[0])
        elif final == "K":
            self._erase_line(numbers[0])
        elif final == "X":
            self._erase(row, plane.x, plane.x + count)
        elif final in "@P":
            self._shift_cells(row, count, insert=final == "@")
        elif final in "LM" and self._top <= plane.y <= self._bottom:
            (self._insert_rows if final == "L" else self._delete_rows)(plane.y, count)
            self._to(0, None)
        elif final == "S":
            self._scroll_up(count)
        elif final == "T":
            self._insert_rows(self._top, count)
        elif final == "b":
            self._print(self._last * min(count, self.columns * self.rows))
        elif final == "r":
            self._region(numbers)
        elif final == "s":
            plane.saved = (plane.x, plane.y)
        elif final == "u":
            self._to(*plane.saved)

    def _shift_cells(self, row: ScreenRow, count: int, *, insert: bool) -> None:
        x, cells = self._now.x, row.cells
        count = min(count, self.columns - x)
        split(cells, x)
        if insert:
            cells[x:x] = [" "] * count
            split(cells, self.columns)
            del cells[self.columns :]
        else:
            split(cells, x + count)
            cells[x : x + count] = []
            cells += [" "] * count
        row.wrapped, self._now.late = False, False

    def _region(self, numbers: list[int]) -> None:
        top = max(1, numbers[0]) - 1
        bottom = (numbers[1] if len(numbers) > 1 and numbers[1] else self.rows) - 1
        if top < min(bottom, self.rows - 1):
            self._top, self._bottom = top, min(bottom, self.rows - 1)
            self._position(1, 1)

    def _mode(self, numbers: list[int], on: bool) -> None:
        for number in numbers:
            if number == 7:
                self._wraps = on
            elif number == 6:
                self._origin = on
                self._position(1, 1)
            elif number == 2004:
                self.pastes = on
            elif number in (47, 1047, 1049):
                self._switch(on)

    def _switch(self, alternate: bool) -> None:
        if alternate == self.alternate:
            return
        self.alternate = alternate
        if alternate:
            self._main.saved = (self._main.x, self._main.y)
            self._other = self._plane()
        self._now = self._other if alternate else self._main
        self._top, self._bottom = 0, self.rows - 1
        if not alternate:
            self._to(*self._main.saved)

    # --- what the program asks ----------------------------------------------------------------------------------------

    def _ask(self, marks: str, final: str, numbers: list[int]) -> None:
        """Answers like a plain terminal, because programs wait for these answers."""
        if final == "n" and not marks and numbers[0] == 5:
            self.replies += b"\x1b[0n"
        elif final == "n" and numbers[0] == 6:
            self.replies += f"\x1b[{marks}{self._now.y + 1};{self._now.x + 1}R".encode()
        elif final == "c" and numbers[0] == 0 and marks in ("", ">"):
            self.replies += b"\x1b[?62;22c" if not marks else b"\x1b[>1;10;0c"
        elif final == "$p":
            self.replies += f"\x1b[{marks}{numbers[0]};0$y".encode()

    def _string(self, text: str) -> None:
        if text.startswith(("10;?", "11;?")):
            value = "ffff/ffff/ffff" if text.startswith("10") else "0000/0000/0000"
            self.replies += f"\x1b]{text[:2]};rgb:{value}\x1b\\".encode()

    def _blank(self) -> ScreenRow:
        return ScreenRow([" "] * self.columns)

    def _plane(self) -> Plane:
        return Plane([self._blank() for _ in range(self.rows)])
