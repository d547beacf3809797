"""Untrusted answers: a value that is missing, null or of another type is read as empty, never as an error."""

from __future__ import annotations

from collections.abc import Mapping

Row = Mapping[str, object]


def row(value: object) -> Row:
    return value if isinstance(value, dict) else {}


def rows(value: object, *path: str) -> list[Row]:
    """The objects of a list; `under` is the name it is stored under, if it has one."""
    for name in path:
        value = row(value).get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(found: Row, *path: str) -> str:
    """A string; a whole number is turned into one."""
    value: object = found
    for name in path:
        value = row(value).get(name)
    if isinstance(value, bool):
        return ""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def number(found: Row, name: str, default: int = 0) -> int:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def yes(found: Row, name: str) -> bool:
    return found.get(name) is True


def told(found: Row, name: str) -> bool | None:
    """True, false, or None if the answer does not tell."""
    value = found.get(name)
    return value if isinstance(value, bool) else None


def strings(found: Row, *path: str) -> tuple[str, ...]:
    value: object = found
    for name in path:
        value = row(value).get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
