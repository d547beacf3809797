"""Replaces values that were passed on purpose, recognised by content: plain, quoted, escaped, encoded or cut off.

Values are replaced if they have at least 8 characters (6 if their name says that they are secret), are not a single
word or number, and do not appear in anything public, such as the manifest. A shorter or more ordinary value would be
found in every text. The values live only in the memory of the process that received them.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeVar, cast

from ganger.core.verify.environment import is_secret_name

MASKED = "[masked]"
SHORTEST = 8
SHORTEST_BY_NAME = 6
_SHORTEST_LINE = 16
_LONGEST_WORD = 15
_LONGEST_NUMBER = 11
_ANCHOR = 8
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_Event = TypeVar("_Event")


class Hit(NamedTuple):
    """A range of a text that holds the value of a variable."""

    start: int
    end: int
    name: str


class Masker:
    """`secrets` are values by the names of their variables; what appears in one of the `clear` texts is not secret."""

    def __init__(self, secrets: Mapping[str, str] | None = None, *, clear: Iterable[str] = ()) -> None:
        known = "\0".join(clear)
        self._forms: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        for name, value in (secrets or {}).items():
            for piece in _pieces(name, value):
                if piece not in known:
                    self._whole.setdefault(piece, name)
                    self._forms.update((form, name) for form in forms_of(piece) if form not in self._forms)
        self._bytes = {form.encode("utf-8", "surrogatepass"): name for form, name in self._forms.items()}
        self._cut = {value: name for value, name in self._whole.items() if len(value) > _ANCHOR}

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(self._whole)

    @property
    def longest(self) -> int:
        """The length of the longest form, in bytes."""
        return max(map(len, self._bytes), default=0)

    def text(self, text: str) -> str:
        """Takes the time of one search for each form of each value."""
        if not self._forms or not text:
            return text
        return _without(text, sorted([*_whole(text, self._forms), *_parts(text, self._cut)]))

    def data(self, data: bytes) -> bytes:
        """The same for bytes, which otherwise stay as they are."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if self else data

    def hits(self, data: bytes) -> list[Hit]:
        """Where whole values occur in a file's content, in any of their forms."""
        return sorted(_whole(data, self._bytes)) if self._bytes else []

    def event(self, event: _Event) -> _Event:
        """An event without them; the same object if it holds none."""
        return cast("_Event", self.within(event)) if self._forms else event

    def within(self, value: Any) -> Any:
        """Every text in a value made of dataclasses, tuples, lists and tables; the same object if nothing changes."""
        if isinstance(value, str):
            return value if isinstance(value, Enum) else self.text(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        if isinstance(value, dict):
            made = {self.within(key): self.within(inner) for key, inner in value.items()}
            return value if _same(made.values(), value.values()) and _same(made, value) else made
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            inner = tuple(self.within(one) for one in value)
            return value if _same(inner, value) else inner
        if isinstance(value, list):
            found = [self.within(one) for one in value]
            return value if _same(found, value) else found
        return value

    def _record(self, value: Any) -> Any:
        changed = {}
        for field in dataclasses.fields(value):
            before = getattr(value, field.name)
            after = self.within(before)
            if after is not before:
                changed[field.name] = after
        return dataclasses.replace(value, **changed) if changed else value


NOTHING = Masker()


def is_worth_masking(name: str, value: str) -> bool:
    """Whether a value can be replaced without replacing ordinary words too."""
    if is_secret_name(name):
        return len(value) >= SHORTEST_BY_NAME
    if len(value) < SHORTEST or len(set(value)) == 1:
        return False
    if value.isalpha() and len(value) <= _LONGEST_WORD:
        return not (value.islower() or value.isupper() or value.istitle())
    return not (value.isdigit() and len(value) <= _LONGEST_NUMBER)


def forms_of(value: str) -> Iterator[str]:
    """Base64 gives three texts for one value, depending on what precedes it; their ends depend on their neighbours."""
    raw = value.encode("utf-8", "surrogatepass")
    yield value
    yield from dict.fromkeys((json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]))
    yield from dict.fromkeys((_quoted(raw, b""), _quoted(raw, b"/"), _quoted(raw, b" ").replace(" ", "+")))
    yield from (raw.hex(), raw.hex().upper())
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw).decode()
        inner = whole[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
        if len(inner) >= SHORTEST_BY_NAME:
            yield from dict.fromkeys((inner, inner.replace("+", "-").replace("/", "_")))


def _quoted(raw: bytes, safe: bytes) -> str:
    """As in a URL."""
    return "".join(chr(sign) if sign in _PLAIN or sign in safe else f"%{sign:02X}" for sign in raw)


def _pieces(name: str, value: str) -> Iterator[str]:
    """The value itself, and its parts that can appear alone: the lines of a key, a header's words, a URL's password."""
    whole = value.strip()
    if is_worth_masking(name, whole):
        yield whole
    lines = [line.strip() for line in whole.splitlines()]
    for line in lines if len(lines) > 1 else ():
        if len(line) >= _SHORTEST_LINE and not line.startswith("-----"):
            yield line
    for line in lines:
        word = line.partition(": ")[2].strip().rpartition(" ")[2]
        if is_worth_masking("", word):
            yield word
    rest = whole.partition("://")[2]
    user = rest.partition("/")[0].rpartition("@")[0]
    password = user.partition(":")[2] or user
    if len(password) >= SHORTEST_BY_NAME:
        yield password


def _whole(text: Any, forms: Mapping[Any, str]) -> Iterator[Hit]:
    for form, name in forms.items():
        at = text.find(form)
        while at >= 0:
            yield Hit(at, at + len(form), name)
            at = text.find(form, at + len(form))


def _parts(text: str, values: Mapping[str, str]) -> Iterator[Hit]:
    """Values that were cut off: at an end of the text even a short part counts, elsewhere only half of a value."""
    for value, name in values.items():
        half, size = max(_ANCHOR, (len(value) + 1) // 2), len(text)
        for at in _found(text, value[:half]):
            yield Hit(at, at + _agree(text[at : at + len(value)], value, half), name)
        for at in _found(text, value[-half:]):
            begin = max(0, at + half - len(value))
            yield Hit(at + half - _agree(text[begin : at + half][::-1], value[::-1], half), at + half, name)
        for at in _found(text, value[:_ANCHOR], max(0, size - len(value))):
            if value.startswith(text[at:]):
                yield Hit(at, size, name)
        for at in _found(text[: len(value)], value[-_ANCHOR:]):
            if value.endswith(text[: at + _ANCHOR]):
                yield Hit(0, at + _ANCHOR, name)


def _found(text: str, part: str, begin: int = 0) -> Iterator[int]:
    at = text.find(part, begin)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _agree(text: str, value: str, least: int) -> int:
    """How many leading characters are the same, of which `least` are already known to be."""
    return next(
        (n for n in range(least, min(len(text), len(value))) if text[n] != value[n]), min(len(text), len(value))
    )


def _without(text: str, hits: Iterable[Hit]) -> str:
    pieces: list[str] = []
    reached = 0
    for hit in hits:
        if hit.start >= reached:
            pieces += [text[reached : hit.start], MASKED]
        reached = max(reached, hit.end)
    return "".join([*pieces, text[reached:]]) if pieces else text


def _same(made: Iterable[Any], given: Iterable[Any]) -> bool:
    return all(one is two for one, two in zip(made, given, strict=True))
