"""A change of files, and what one task may change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Side:
    """A path before or after a change. `mode` is git's: 0o100644, 0o100755, 0o120000 (link), 0o160000 (submodule)."""

    mode: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Touched:
    """One path of a change; a rename is a removed path and a new one, and the new one has the old path."""

    path: str
    before: Side | None
    after: Side | None
    renamed_from: str = ""

    @property
    def kind(self) -> str:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "deleted"
        if self.before.mode >> 12 != self.after.mode >> 12:
            return "retyped"
        return "modified" if self.before.digest != self.after.digest else "mode"


class Change(Protocol):
    """A change of files, whatever its author and source."""

    @property
    def touched(self) -> tuple[Touched, ...]: ...

    def before(self, path: str) -> bytes:
        """The old content; a link's is its target. Empty where there was none, or for a submodule."""

    def after(self, path: str) -> bytes: ...

    def names_before(self, folder: str) -> Collection[str]:
        """The old entries of a folder, files and folders; "" is the root. Empty where there was no such folder."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one task may do to files, in addition to the rules for all.

    `paths` are the globs of its role (None: all). `create`, `modify` and `read` are what it declared (None: nothing was
    declared). `verify` are the commands that judge it. Nothing may be removed from files that match the globs of
    `interface`.
    """

    allow_shrinkage: bool = False
    may_change_gates: bool = False
    paths: tuple[str, ...] | None = None
    create: tuple[str, ...] | None = None
    modify: tuple[str, ...] | None = None
    expected: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    interface: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleRules:
    """What a role sets: the paths its tasks may touch (None: all), and text for all their prompts."""

    paths: tuple[str, ...] | None = None
    may_change_gates: bool = False
    prompt: str = ""
