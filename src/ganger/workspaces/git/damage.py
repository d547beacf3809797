"""Damage to a git repository: how git reports it, and the error that stops all work that depends on it."""

from __future__ import annotations

import re
from pathlib import Path

from ganger.errors import GangerError

REPO_DAMAGED = "REPO_DAMAGED"
_DAMAGE = re.compile(
    r"(?:loose|packed) object .{0,300}(?:is corrupt|is garbage)|object file .{0,300} is empty|invalid sha1 pointer"
    r"|(?:unable to|could not|cannot) read (?:tree |object |sha1 file of |blob )?\(?[0-9a-f]{40}|bad tree object"
    r"|bad object [0-9a-f]{40}|missing (?:blob|tree|commit|object)|garbage at end of loose object|hash mismatch"
    r"|inflate: data stream error|(?:pack|file|index) .{0,300}(?:is far too short to be a packfile|is corrupt)",
    re.IGNORECASE,
)


def shows_damage(said: str) -> bool:
    """Whether git's message reports broken or missing objects, and not a bad request."""
    return _DAMAGE.search(said) is not None


def damaged(store: Path, found: str) -> GangerError:
    lines = [line.strip() for line in found.splitlines() if line.strip()]
    first = next(filter(shows_damage, lines), lines[0] if lines else "git gave no reason")[:300]
    return GangerError(
        f"the git repository {store}, or what it was read from, is damaged: {first}",
        hint="check the disk; `git fsck` in that folder lists the damage, and what the remote or another clone still "
        "holds can be fetched into it again",
        code=REPO_DAMAGED,
    )
