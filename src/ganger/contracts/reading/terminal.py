"""Terminal codes: how they look in a log, and their removal with the same result wherever a log is cut.

No escape sequence contains a control character (but a bell may end one) and none is longer than LONGEST_SEQUENCE. So
a log may be cut before any control character but a bell, after a line feed, or far enough after the last control
character, and cleaning the parts gives the same bytes as cleaning the whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_SEQUENCE = 4104

_SEQUENCE = (
    rb"\x1b++(?:"
    rb"\[[0-?]{0,256}+[ -/]{0,16}+[@-~]?"
    rb"|[]PX^_](?:[^\x00-\x1f\x7f]{0,4096}+(?:\x07|\x1b\\|(?=[\x00-\x1f\x7f]|\Z)))?"
    rb"|[ -/]{0,16}+[0-~]"
    rb")?"
)
_C1_OR_BOM = rb"\xc2[\x80-\x9f]|\xef\xbb\xbf"
BLANK_IN_LINE = rb"(?:[\x00-\x09\x0b\x0c\x0e-\x20\x7f]++|" + _C1_OR_BOM + rb")*+"
_BLANK = re.compile(rb"(?:[\x00-\x20\x7f]++|" + _C1_OR_BOM + rb")*+")
_SEQUENCES = re.compile(b"(?:" + _SEQUENCE + b")++")
_ALL_CODES = re.compile(b"(?:" + _SEQUENCE + b"|" + _C1_OR_BOM + b")++")
_CONTROL_BUT_BELL = re.compile(rb"[\x00-\x06\x08-\x1f\x7f]")
_CONTINUATION = re.compile(rb"[\x80-\xbf]{0,3}+")
_NEVER_IN_JSON = bytes(sorted(set(range(0x20)) - set(b"\t\n\r")))
_ALL = _NEVER_IN_JSON + b"\r\x7f"
_CONTROLS = _ALL + b"\t\n"


@dataclass(frozen=True, slots=True)
class Wash:
    """How much is removed: escape sequences always, and `dropped` bytes; `wide` adds C1 and byte order marks."""

    dropped: bytes
    wide: bool = False

    def is_needed(self, data: bytes | bytearray) -> bool:
        if b"\x1b" in data:
            return True
        if self.dropped and len(data.translate(None, self.dropped)) != len(data):
            return True
        return self.wide and not data.isascii() and _ALL_CODES.search(data) is not None

    def spread(self, text: bytes) -> re.Pattern[bytes]:
        """A pattern that finds `text` also with terminal codes between its characters."""
        dropped = b"|[" + re.escape(self.dropped) + b"]++" if self.dropped else b""
        wide = b"|" + _C1_OR_BOM if self.wide else b""
        between = b"(?:" + _SEQUENCE + wide + dropped + b")*+"
        return re.compile(between.join(re.escape(text[i : i + 1]) for i in range(len(text))))

    def apply(self, data: bytes | bytearray) -> bytes | bytearray:
        """The bytes without terminal codes; `data` must begin and end where a log may be cut."""
        if self.wide and not data.isascii():
            data = _ALL_CODES.sub(b"", data)
        elif b"\x1b" in data:
            data = _SEQUENCES.sub(b"", data)
        return data.translate(None, self.dropped) if self.dropped else data


QUICK = Wash(b"")
NORMAL = Wash(_NEVER_IN_JSON)
FULL = Wash(_ALL, wide=True)


def is_blank(data: bytes | bytearray) -> bool:
    """Whether data without escape sequences is blank on a screen."""
    return _BLANK.fullmatch(data) is not None


def safe_cut(data: bytes | bytearray, within: int) -> int:
    """The first place in `data` where a log may be cut; `data` itself may begin anywhere.

    After a line feed among the first `within` bytes if there is one, since whole lines are easiest to judge.
    """
    line = data.find(b"\n", 0, within)
    if line >= 0:
        return line + 1
    head = data[:LONGEST_SEQUENCE]
    # Counting is several times faster than searching, and long lines without control characters are common.
    control = _CONTROL_BUT_BELL.search(head) if len(head.translate(None, _CONTROLS)) != len(head) else None
    if control:
        return control.start()
    return character_at(data, LONGEST_SEQUENCE)


def character_at(data: bytes | bytearray, place: int) -> int:
    """The first place from `place` on that is not inside a UTF-8 character."""
    gap = _CONTINUATION.match(data, place)
    return gap.end() if gap else len(data)
