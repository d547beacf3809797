"""Which parts of a multi-purpose file belong to the gate: TOML tables, INI sections, JSON keys, lines."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from ganger.workspaces.gates.packages import replaced_package
from ganger.workspaces.rules.line_counts import added_lines, changed_lines

_UNREADABLE = "cannot be read before or after the change"


def toml_tables(*tables: str) -> Callable[[bytes, bytes], str | None]:
    """Says which of these dotted tables differ."""

    def look(before: bytes, after: bytes) -> str | None:
        try:
            old, new = (tomllib.loads(content.decode("utf-8-sig")) for content in (before, after))
        except (ValueError, RecursionError):
            return _UNREADABLE
        return _first_difference(tables, old, new)

    return look


def json_keys(*keys: str) -> Callable[[bytes, bytes], str | None]:
    """Says which of these top-level keys differ, or which test program was replaced by another package."""

    def look(before: bytes, after: bytes) -> str | None:
        try:
            old, new = (json.loads(content.decode("utf-8-sig") or "{}") for content in (before, after))
        except (ValueError, RecursionError):
            return _UNREADABLE
        if not isinstance(old, dict) or not isinstance(new, dict):
            return _UNREADABLE
        return _first_difference(keys, old, new) or replaced_package(old, new)

    return look


def _first_difference(names: tuple[str, ...], old: Mapping[str, object], new: Mapping[str, object]) -> str | None:
    return next((f"changes {name}" for name in names if _at(old, name) != _at(new, name)), None)


def _at(tree: object, dotted: str) -> object:
    for name in dotted.split("."):
        if isinstance(tree, list):
            tree = [one.get(name) for one in tree if isinstance(one, dict)]
        else:
            tree = tree.get(name) if isinstance(tree, dict) else None
    return repr(tree)


def ini_sections(*globs: str) -> Callable[[bytes, bytes], str | None]:
    """Says which section under these names differs. Parsers disagree on details, so a changed header counts as well."""
    words = re.compile("|".join(re.escape(glob.split("*")[0].rstrip(":")) for glob in globs).encode())

    def look(before: bytes, after: bytes) -> str | None:
        try:
            old, new = _sections(before), _sections(after)
        except (ValueError, RecursionError, configparser.Error):
            return _UNREADABLE
        for name in sorted({*old, *new}):
            if any(fnmatchcase(name.lower(), glob) for glob in globs) and old.get(name) != new.get(name):
                return f"changes [{name}]"
        headers = (line for line in changed_lines(before, after) if b"[" in line and words.search(line.lower()))
        return next((f"changes {header.strip().decode(errors='replace')[:60]}" for header in headers), None)

    return look


def _sections(content: bytes) -> dict[str, list[tuple[str, str | None]]]:
    parser = configparser.RawConfigParser(allow_no_value=True)
    parser.read_string(content.decode("utf-8-sig"))
    return {name: list(parser.items(name)) for name in parser.sections()}


def lines_with(either: str, *, removed: str = "") -> Callable[[bytes, bytes], str | None]:
    """Says that a line with such a word was added or removed; lines with a word of `removed` may be added."""
    touchy = re.compile(either.encode())
    kept = re.compile((removed or r"(?!)").encode())

    def look(before: bytes, after: bytes) -> str | None:
        for line in changed_lines(before, after):
            if touchy.search(line):
                return "changes a line about " + _shown(touchy, line)
        for _, line in added_lines(after, before):
            if kept.search(line):
                return "removes a line about " + _shown(kept, line)
        return None

    return look


def _shown(pattern: re.Pattern[bytes], line: bytes) -> str:
    match = pattern.search(line)
    return repr(match.group().strip().decode(errors="replace")[:40]) if match else ""
