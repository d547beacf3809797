"""Patterns of paths, as the settings have them: `*` and `?` inside one name, `**` for any number of folders."""

from __future__ import annotations

from collections.abc import Iterable


def covers_path(patterns: Iterable[str], path: str) -> bool:
    """Without a slash a pattern matches any part of the path, with one it begins at the root; both cover everything
    below."""
    parts = tuple(path.split("/"))
    return any(part_match(one, parts) for one in patterns)


def part_match(pattern: str, parts: tuple[str, ...]) -> bool:
    bare = pattern.strip("/")
    if "/" in pattern.rstrip("/"):
        return path_match(tuple(bare.split("/")), parts, below=True)
    return any(bare == "**" or glob_match(bare, part) for part in parts)


def pattern_fault(pattern: str) -> str:
    """Why it would match nothing, or something else than it seems to; empty where it is sound."""
    segments = pattern.rstrip("/").removeprefix("/").split("/")
    if any(part in ("", ".", "..") for part in segments):
        return f"{pattern!r} names no path of the repository; write it like 'docs/**' or '*.md'"
    if pattern.startswith("!"):
        return f"{pattern!r} begins with '!', and there are no exceptions here; name what is covered"
    if any(sign in pattern for sign in "[]\\"):
        return f"{pattern!r} uses a bracket or backslash; only '*', '**' and '?' (one character) have a meaning"
    if any("**" in part and part != "**" for part in segments):
        return f"{pattern!r} has '**' inside a name; it must stand alone between slashes"
    return ""


def glob_match(pattern: str, name: str) -> bool:
    """`*` and `?` inside one component. Only the last star is retried, so the time is bounded by the product of the
    lengths."""
    at = star = mark = 0
    starred = False
    position = 0
    while position < len(name):
        if at < len(pattern) and pattern[at] == "*":
            starred, star, mark = True, at, position
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[position]):
            at += 1
            position += 1
        elif starred:
            mark += 1
            at, position = star + 1, mark
        else:
            return False
    return all(sign == "*" for sign in pattern[at:])


def path_match(segments: tuple[str, ...], parts: tuple[str, ...], *, below: bool) -> bool:
    """A rooted pattern against a path; `**` is any number of parts, and `below` counts what lies under a match."""
    reached = {0}
    for segment in segments:
        if segment == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {i + 1 for i in reached if i < len(parts) and glob_match(segment, parts[i])}
        if not reached:
            return False
    if segments[-1] == "**":
        reached.discard(min(reached))
    return bool(reached) if below else len(parts) in reached
