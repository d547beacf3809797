"""Changes to be judged: made from contents."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ganger.ports.changes import Change, Rules, Side, Touched
from ganger.workspaces.git.case_twins import Listing
from ganger.workspaces.safeguards import ChangeLimits, judge


@dataclass(frozen=True)
class Entry:
    """A path's content and git mode."""

    content: bytes
    mode: int = 0o100644


def entry(given: str | bytes | Entry) -> Entry:
    if isinstance(given, Entry):
        return given
    return Entry(given.encode() if isinstance(given, str) else given)


def link(target: str) -> Entry:
    return Entry(target.encode(), 0o120000)


SUBMODULE = Entry(b"", 0o160000)


class MadeChange:
    """From one set of files to another; `renamed` says where a path came from."""

    def __init__(
        self,
        before: Mapping[str, str | bytes | Entry],
        after: Mapping[str, str | bytes | Entry],
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self._before = {path: entry(given) for path, given in before.items()}
        self._after = {path: entry(given) for path, given in after.items()}
        self._renamed = renamed or {}

    @property
    def touched(self) -> tuple[Touched, ...]:
        paths = sorted({*self._before, *self._after})
        return tuple(self._touched(path) for path in paths if self._before.get(path) != self._after.get(path))

    def _touched(self, path: str) -> Touched:
        was, now = side(self._before.get(path)), side(self._after.get(path))
        return Touched(path, was, now, self._renamed.get(path, ""))

    def before(self, path: str) -> bytes:
        return self._before[path].content if path in self._before else b""

    def after(self, path: str) -> bytes:
        return self._after[path].content if path in self._after else b""

    def names_before(self, folder: str) -> Collection[str]:
        return Listing(self._before).names(folder)


def side(one: Entry | None) -> Side | None:
    return None if one is None else Side(one.mode, len(one.content), hashlib.sha256(one.content).hexdigest())


def codes(change: Change, rules: Rules | None = None, limits: ChangeLimits | None = None) -> list[tuple[str, str]]:
    """What the safeguards say: path and code, the gravest first."""
    return [(one.path, one.code) for one in judge(change, rules or Rules(), limits or ChangeLimits())]
