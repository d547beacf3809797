"""Terminal codes: what they look like in a log, and how they are removed the same way wherever a log is cut.

No escape sequence contains a control character and none is longer than LONGEST_SEQUENCE. So a log may be cut before
any control character, after a line feed, or far enough behind the last control character, and cleaning the parts
gives the same bytes as cleaning the whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_SEQUENCE = 4104

_TEXT = rb"(?:[^\x00-\x1f\x7f\xc2]|\xc2(?![\x80-\x9f]))"
_ESCAPE = re.compile(
    rb"\x1b(?:"
    rb"\[[0-?]{0,256}+[ -/]{0,16}+[@-~]?"
    rb"|[]PX^_](?:" + _TEXT + rb"{0,4096}+(?:\x07|\x1b\\|(?=[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\Z)))?"
    rb"|[ -/]{0,16}+[0-~]"
    rb")?"
)
_C1_OR_BOM = re.compile(rb"\xc2[\x80-\x9f]|\xef\xbb\xbf")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_CONTINUATION = re.compile(rb"[\x80-\xbf]{0,3}+")
_FREQUENT = b"\x00\x07\x08"
_NEVER_IN_JSON = bytes(sorted(set(range(0x20)) - set(b"\t\n\r")))
_ALL = _NEVER_IN_JSON + b"\r\x7f"


@dataclass(frozen=True, slots=True)
class Wash:
    """How much is removed: escape sequences always, and `dropped` bytes; `wide` adds C1 and byte order marks.

    `probes` are bytes that are cheap to look for one by one; without them the dropped bytes are counted.
    """

    dropped: bytes
    probes: tuple[bytes, ...] = ()
    wide: bool = False

    def is_needed(self, data: bytes) -> bool:
        if self.probes:
            return any(probe in data for probe in self.probes)
        if len(data.translate(None, self.dropped)) != len(data):
            return True
        return self.wide and not data.isascii() and _C1_OR_BOM.search(data) is not None

    def apply(self, data: bytes) -> bytes:
        """The bytes without terminal codes; `data` must begin and end where a log may be cut."""
        if b"\x1b" in data:
            data = _ESCAPE.sub(b"", data)
        if self.wide and not data.isascii():
            data = _C1_OR_BOM.sub(b"", data)
        return data.translate(None, self.dropped)


QUICK = Wash(_FREQUENT, probes=(b"\x1b", b"\x00", b"\x07", b"\x08"))
NORMAL = Wash(_NEVER_IN_JSON)
FULL = Wash(_ALL, wide=True)


def safe_cut(data: bytes, within: int) -> int:
    """The first place in `data` where a log may be cut; `data` itself may begin anywhere.

    After a line feed among the first `within` bytes if there is one, since whole lines are easiest to judge.
    """
    line = data.find(b"\n", 0, within)
    if line >= 0:
        return line + 1
    control = _CONTROL.search(data, 0, LONGEST_SEQUENCE)
    if control:
        return control.start()
    return character_at(data, LONGEST_SEQUENCE)


def character_at(data: bytes, place: int) -> int:
    """The first place from `place` on that is not inside a UTF-8 character."""
    gap = _CONTINUATION.match(data, place)
    return gap.end() if gap else len(data)
