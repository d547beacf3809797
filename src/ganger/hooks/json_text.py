"""A JSON text with the positions of its values, so that a part can be added or removed and all other bytes stay."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class NotJson(ValueError):
    """`place` says where."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")


@dataclass(frozen=True, slots=True)
class Child:
    """A member or an item: `at` is where it begins, with its key; `start` to `end` is its value."""

    key: str
    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """An object or a list: from its opening bracket to just after its closing one."""

    start: int
    end: int
    children: tuple[Child, ...]

    def named(self, key: str) -> Child | None:
        found = [child for child in self.children if child.key == key]
        if len(found) > 1:
            raise NotJson(repr(key), "the key is given twice, and only one of them counts")
        return found[0] if found else None


def value_of(text: str) -> Any:
    """The whole text as a value; raises NotJson with line and column."""
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno} column {error.colno}", error.msg) from error
    except RecursionError as error:
        raise NotJson("line 1", "it is nested too deeply") from error


def _no_constant(name: str) -> Any:
    raise NotJson("a number", f"{name} is not JSON")


def container_at(text: str, start: int) -> Container:
    """The children inside the brackets that open at `start`, in a valid text."""
    is_object = text[start] == "{"
    at, children = _after_space(text, start + 1), []
    while text[at] not in "}]":
        key, value_at = "", at
        if is_object:
            key, after = _DECODER.raw_decode(text, at)
            value_at = _after_space(text, _after_space(text, after) + 1)
        _, end = _DECODER.raw_decode(text, value_at)
        children.append(Child(key, at, value_at, end))
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return Container(start, at + 1, tuple(children))


def root_of(text: str) -> Container:
    return container_at(text, _after_space(text, 1 if text.startswith("\ufeff") else 0))


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


# --- adding and removing a part -------------------------------------------------------------------------------------


def added(text: str, inside: Container, value: object, key: str = "") -> str:
    """Adds a child at the end, formatted like its neighbours."""
    opening = inside.start + 1
    if inside.children:
        last = inside.children[-1]
        before = text.index(",", inside.children[-2].end) + 1 if len(inside.children) > 1 else opening
        gap = text[before : last.at] or " "
        return f"{text[: last.end]},{gap}{_written(text, value, key, _depth(gap))}{text[last.end :]}"
    around = _line_indent(text, inside.start)
    blank = text[opening : inside.end - 1]
    if _is_compact(text) or blank not in ("", _newline(text) + around):
        return f"{text[:opening]}{_written(text, value, key, None)}{text[opening:]}"
    depth = around + _indent(text)
    lines = _newline(text) + depth + _written(text, value, key, depth) + _newline(text) + around
    return f"{text[:opening]}{lines}{text[inside.end - 1 :]}"


def removed(text: str, inside: Container, index: int) -> str:
    """Removes that child, with its comma and space."""
    children, child = inside.children, inside.children[index]
    if index:
        return text[: children[index - 1].end] + text[child.end :]
    if len(children) > 1:
        return text[: child.at] + text[children[1].at :]
    tail = text[child.end : inside.end - 1]
    alone = tail == _newline(text) + _line_indent(text, inside.start)
    return text[: inside.start + 1] + text[inside.end - 1 if alone else child.end :]


def _depth(gap: str) -> str | None:
    """The indentation of a child on its own line; None: it shares a line with others."""
    return gap.rpartition("\n")[2] if "\n" in gap else None


def _written(text: str, value: object, key: str, depth: str | None) -> str:
    name = f"{json.dumps(key, ensure_ascii=False)}: " if key else ""
    if depth is None:
        return name + json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_indent(text)).split("\n")
    return name + (_newline(text) + depth).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _is_compact(text: str) -> bool:
    """Adds to an object or list that is on one line."""
    root = root_of(text)
    return bool(root.children) and "\n" not in text[root.start : root.end]


def _indent(text: str) -> str:
    root = root_of(text)
    first = text[root.start + 1 : root.children[0].at] if root.children else ""
    return first.rpartition("\n")[2] or "  " if "\n" in first else "  "


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
