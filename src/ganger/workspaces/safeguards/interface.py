"""Files that other repositories depend on: what a change removes from them."""

from __future__ import annotations

import stat

from ganger.ports import Change, Side, Touched
from ganger.workspaces.rules.line_counts import added_lines
from ganger.workspaces.rules.protected import folded_parts, glob_match, path_match

_BINARY_HEAD = 8000


class Interface:
    """`patterns` work like those of protected paths: without a slash they match any part, with one from the root."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._patterns = tuple(pattern.lower() for pattern in patterns)

    def covers(self, path: str) -> bool:
        parts = folded_parts(path)
        return any(_matches(pattern, parts) for pattern in self._patterns)

    def broken_by(self, touched: Touched, change: Change, *, comparable: bool) -> tuple[str, str] | None:
        """The path and what was removed from it; None when it only grew. `comparable`: both sides can be read."""
        if touched.renamed_from and self.covers(touched.renamed_from):
            return touched.renamed_from, f"it was moved to {touched.path!r}"
        if touched.before is None or not self.covers(touched.path):
            return None
        if touched.after is None:
            return touched.path, "it was deleted"
        if not _same_kind(touched.before, touched.after):
            return touched.path, "something else was put in its place"
        if touched.kind == "mode":
            return None
        if not comparable:
            return touched.path, "it is too large to see whether something was removed"
        lost = _lost(change.before(touched.path), change.after(touched.path))
        return (touched.path, lost) if lost else None


def _matches(pattern: str, parts: tuple[str, ...]) -> bool:
    bare = pattern.strip("/")
    if "/" in pattern.rstrip("/"):
        return path_match(tuple(bare.split("/")), parts, below=True)
    return any(bare == "**" or glob_match(bare, part) for part in parts)


def _same_kind(before: Side, after: Side) -> bool:
    return stat.S_IFMT(before.mode) == stat.S_IFMT(after.mode)


def _lost(before: bytes, after: bytes) -> str:
    """The lines that are gone. Moved and empty lines do not count."""
    if b"\0" in before[:_BINARY_HEAD] or b"\0" in after[:_BINARY_HEAD]:
        return "it is not text, and it was changed"
    gone = [line for line in added_lines(after, before) if line.text.strip()]
    if not gone:
        return ""
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return f"line {gone[0].number}{more} of it was changed or removed"
