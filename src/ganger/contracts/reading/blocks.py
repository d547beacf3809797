"""Finding the last fenced block of an agent's answer in a log of any size, read backwards in chunks.

A block is the last start that an end follows, up to the first end after it. A start without an end, an end without a
start, and an empty block (no content, or only comments) are ignored. After an empty block the search continues as
though the log ended before it.

Two searches run side by side. The anchored one accepts only sentinels that begin or end their line: a JSON string
holds no raw line break, so a sentinel quoted inside file content is never anchored. The inline one takes sentinels
anywhere and counts only if the whole log has no complete anchored block.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ganger.contracts.reading import terminal
from ganger.contracts.reading.repair import repair
from ganger.contracts.reading.terminal import BLANK_IN_LINE, LONGEST_SEQUENCE, Wash
from ganger.errors import GangerError, NotFoundError

CHUNK = 512 * 1024
LARGEST_BODY = 8 * 1024 * 1024
THOROUGH_WITHIN = 8 * 1024 * 1024

_SMALLEST_CHUNK = 4 * LONGEST_SEQUENCE
_AHEAD = 64
_GLANCE = 4096
_BLANKS = re.compile(BLANK_IN_LINE)
_BREAKS = b"\r\n"


@dataclass(frozen=True, slots=True)
class Fence:
    """The two sentinels of one kind of block."""

    start: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class Body:
    """The text between the sentinels, without escape sequences; None when it is larger than LARGEST_BODY."""

    data: bytes | None


TASK_RESULT = Fence(b"<<<TASK_RESULT_V2>>>", b"<<<END_TASK_RESULT_V2>>>")
HEAL_DECISION = Fence(b"<<<HEAL_DECISION_V2>>>", b"<<<END_HEAL_DECISION_V2>>>")

Data = bytes | bytearray
Read = Callable[[int, int], Data]


def find_bodies(source: Path | bytes, fence: Fence, *, chunk: int = CHUNK) -> tuple[Body, ...]:
    """The body of the last complete block; empty where there is none. Memory stays bounded for any log size.

    Where its end is ambiguous, every possible body, the likeliest first; all of them begin at the same start.
    """
    with _opened(source) as (read, size):
        small = size <= THOROUGH_WITHIN
        found = _Search(read, fence, terminal.NORMAL if small else terminal.QUICK, chunk).run(0, size)
        if found:
            return found
        first = 0 if small else _tail_begin(read, size)
        return _Search(read, fence, terminal.FULL, chunk).run(first, size)


def _tail_begin(read: Read, size: int) -> int:
    """Where the last part of a large log begins; decided by content only, so the chunk size does not matter."""
    first = size - THOROUGH_WITHIN
    return first + terminal.safe_cut(read(first, first + CHUNK), CHUNK // 2)


@contextmanager
def _opened(source: Path | bytes) -> Iterator[tuple[Read, int]]:
    if isinstance(source, bytes):
        yield (lambda first, last: source[first:last]), len(source)
        return
    try:
        handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NotFoundError(f"{str(source)!r}: no such log", hint="check the path") from None
    except OSError as error:
        raise GangerError(f"{source}: the log cannot be opened: {error.strerror}", code="FILE_UNREADABLE") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise GangerError(f"{source}: not a regular file", hint="name the log file itself", code="NOT_A_FILE")
        yield _reader(handle), found.st_size
    except OSError as error:
        raise GangerError(f"{source}: the log cannot be read: {error.strerror}", code="FILE_UNREADABLE") from None
    finally:
        os.close(handle)


def _reader(handle: int) -> Read:
    """Chunks of one size share a buffer: allocating memory for each costs as much as reading it."""
    shared = bytearray(CHUNK)

    def read(first: int, last: int) -> Data:
        if last - first == CHUNK and os.preadv(handle, [shared], first) == CHUNK:
            return shared
        return os.pread(handle, last - first, first)

    return read


@dataclass(frozen=True, slots=True)
class _Segment:
    """A cleaned part of the log: `text` is `size` bytes of its own, then a little of the following text."""

    number: int
    text: Data
    size: int
    begins_line: bool
    ends_blank: bool


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in the cleaned log: an offset into one segment."""

    segment: int
    offset: int


IsEmpty = Callable[[_Segment, int, _Spot], bool]


class _Inline:
    """The last start anywhere that an end follows, the first end after it, and the last end of all."""

    def __init__(self, fence: Fence, is_empty: IsEmpty) -> None:
        self.fence, self.is_empty = fence, is_empty
        self.start: _Spot | None = None
        self.end: _Spot | None = None
        self.last_end: _Spot | None = None

    def feed(self, segment: _Segment) -> None:
        before = len(segment.text)
        while self.start is None and before > 0:
            before = self._seek(segment, before)

    def _seek(self, segment: _Segment, before: int) -> int:
        """Searches the text before that place; returns the place of an empty block, before which the search continues,
        or 0."""
        text, fence, number = segment.text, self.fence, segment.number
        reach = min(before, segment.size + len(fence.end) - 1)
        limit = before
        if self.end is None:
            limit = text.rfind(fence.end, 0, reach)
            if limit < 0:
                return 0
            self.end = self.last_end = _Spot(number, limit)
        place = text.rfind(fence.start, 0, min(limit, segment.size + len(fence.start) - 1))
        first = text.find(fence.end, place + len(fence.start) if place >= 0 else 0, reach)
        self.end = _Spot(number, first) if first >= 0 else self.end
        if place < 0:
            return 0
        if self.is_empty(segment, place, self.end):
            self.end = self.last_end = None
            return place
        self.start = _Spot(number, place)
        return 0


class _Anchored:
    """The last start that opens its line and is followed by an end that closes its line; and the first such end."""

    def __init__(self, fence: Fence, is_empty: IsEmpty) -> None:
        self.is_empty = is_empty
        self.start: _Spot | None = None
        self.end: _Spot | None = None
        self.undecided: _Segment | None = None
        self.place = 0
        self._end = re.compile(b"(" + re.escape(fence.end) + b")" + BLANK_IN_LINE + rb"(?:[\r\n]|\Z)")
        self._start = re.compile(rb"[\r\n]" + BLANK_IN_LINE + b"(" + re.escape(fence.start) + b")")
        self._opening = re.compile(BLANK_IN_LINE + b"(" + re.escape(fence.start) + b")")

    def feed(self, segment: _Segment) -> None:
        if self.undecided:
            self._decide(segment)
        if self.start is not None or self.undecided is not None:
            return
        ends = self._ends(segment)
        if not ends and self.end is None:
            return
        for place in reversed(self._starts(segment)):
            after = bisect_right(ends, place)
            self.end = _Spot(segment.number, ends[after]) if after < len(ends) else self.end
            del ends[after:]
            if self.end is not None and self._begin(segment, place):
                return
        self.end = _Spot(segment.number, ends[0]) if ends else self.end

    def _ends(self, segment: _Segment) -> list[int]:
        return [
            found.start()
            for found in self._end.finditer(segment.text)
            if found.start() < segment.size and (segment.ends_blank or found.group()[-1] in _BREAKS)
        ]

    def _starts(self, segment: _Segment) -> list[int]:
        opening = self._opening.match(segment.text)
        found = [opening] if opening else []
        found += self._start.finditer(segment.text)
        return [one.start(1) for one in found if one.start(1) < segment.size]

    def _begin(self, segment: _Segment, place: int) -> bool:
        """False for an empty block, which is skipped with its end."""
        if not segment.begins_line and _BLANKS.fullmatch(segment.text, 0, place):
            self.undecided, self.place = segment, place
            return True
        self._settle(segment, place)
        return self.start is not None

    def _settle(self, segment: _Segment, place: int) -> None:
        assert self.end is not None
        if self.is_empty(segment, place, self.end):
            self.end = None
        else:
            self.start = _Spot(segment.number, place)

    def _decide(self, segment: _Segment) -> None:
        """A start with only blanks before it in its segment: the segment before says whether it opens its line."""
        own = segment.text[: segment.size]
        line = max(own.rfind(b"\n"), own.rfind(b"\r")) + 1
        blank = _BLANKS.fullmatch(own, line) is not None
        if blank and not line and not segment.begins_line:
            return
        undecided, self.undecided = self.undecided, None
        if blank and undecided:
            self._settle(undecided, self.place)


def says_nothing(body: Data) -> bool:
    """Whether a body is blank, or has only what the repair removes: comments, and an empty fence."""
    if terminal.is_blank(body):
        return True
    plain = body.lstrip()
    return plain[:1] in (b"/", b"`", b"~") and not repair(bytes(plain).decode("utf-8", "replace")).strip()


def _holds(sentinel: bytes, data: Data, border: Data) -> bool:
    # On long plain data rfind takes half the time of `in`.
    return data.rfind(sentinel) >= 0 or border.rfind(sentinel) >= 0


@dataclass
class _Search:
    """One pass over the log, from its end to its beginning."""

    read: Read
    fence: Fence
    wash: Wash
    chunk: int
    bounds: list[int] = field(default_factory=list)
    ahead: Data = b""
    ahead_blank: bool = True
    _opening: re.Pattern[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.chunk = max(self.chunk, _SMALLEST_CHUNK)
        self._opening = self.wash.spread(b"<<<")

    def run(self, first: int, last: int) -> tuple[Body, ...]:
        self.bounds = [last]
        inline, anchored = _Inline(self.fence, self._is_empty), _Anchored(self.fence, self._is_empty)
        while self.bounds[-1] > first and anchored.start is None:
            segment = self._step(first, inline, anchored)
            if segment:
                inline.feed(segment)
                anchored.feed(segment)
        start = anchored.start or inline.start
        ends = [anchored.end] if anchored.start else []
        if inline.start == start:
            ends += [inline.end, inline.last_end]
        return tuple(self._body(start, end) for end in dict.fromkeys(ends) if start and end)

    def _step(self, first: int, inline: _Inline, anchored: _Anchored) -> _Segment | None:
        """Reads the next chunk backwards; None when it is plain and cannot hold a sentinel."""
        last = self.bounds[-1]
        begin = max(first, last - self.chunk)
        data = self.read(begin, last)
        cut = terminal.safe_cut(data, len(data) // 2) if begin > first else 0
        begins_line = begin + cut == first or data[cut - 1 : cut] == b"\n"
        number = len(self.bounds) - 1
        self.bounds.append(begin + cut)
        if not self._is_interesting(data, begins_line and not self.ahead, inline, anchored):
            self._remember(data, cut, len(data) - cut, begins_line)
            return None
        own = self.wash.apply(data[cut:])
        segment = _Segment(number, own + self.ahead, len(own), begins_line, self.ahead_blank)
        self._remember(segment.text, 0, len(own), begins_line)
        return segment

    def _is_interesting(self, data: Data, whole_lines: bool, inline: _Inline, anchored: _Anchored) -> bool:
        if anchored.undecided:
            return True
        if self.wash.is_needed(data):
            return not whole_lines or self._opening.search(data) is not None
        border = data[-_AHEAD:] + self.ahead if self.ahead else b""
        # Without an end after it, no start is of any use.
        return _holds(self.fence.end, data, border) or (
            (inline.end or anchored.end) is not None and _holds(self.fence.start, data, border)
        )

    def _remember(self, text: Data, cut: int, size: int, begins_line: bool) -> None:
        """What the segment before this one sees of the text that follows it."""
        if begins_line:
            self.ahead, self.ahead_blank = b"", True
            return
        text = self._beginning(text, cut, size)
        stop = terminal.character_at(text, _AHEAD)
        blanks = _BLANKS.match(text, stop)
        rest = blanks.end() if blanks else stop
        self.ahead_blank = self.ahead_blank if rest >= len(text) else text[rest] in _BREAKS
        self.ahead = text[:stop]

    def _beginning(self, text: Data, cut: int, size: int) -> Data:
        """Enough of the text to show its first non-blank character; copying all of it would be slow."""
        if size > _GLANCE:
            head = text[cut : cut + _GLANCE]
            blanks = _BLANKS.match(head, _AHEAD + 4)
            if blanks and blanks.end() < _GLANCE:
                return head
        return text[cut : cut + size] + self.ahead

    def _is_empty(self, segment: _Segment, place: int, end: _Spot) -> bool:
        """Blocks do not overlap, so reading each of them is still one pass."""
        if end.segment == segment.number:
            body: Data | None = segment.text[place + len(self.fence.start) : end.offset]
        else:
            body = self._body(_Spot(segment.number, place), end).data
        return body is not None and says_nothing(body)

    def _body(self, start: _Spot, end: _Spot) -> Body:
        pieces: list[Data] = []
        total = 0
        skip = start.offset + len(self.fence.start)
        for number in range(start.segment, end.segment - 1, -1):
            piece = self.wash.apply(self.read(self.bounds[number + 1], self.bounds[number]))
            stop = end.offset if number == end.segment else len(piece)
            pieces.append(piece[min(skip, stop) : stop])
            skip = max(0, skip - len(piece))
            total += len(pieces[-1])
            if total > LARGEST_BODY:
                return Body(None)
        return Body(b"".join(pieces))
