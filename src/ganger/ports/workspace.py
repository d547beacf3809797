"""The project's own folder, and the only way in which changes land in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ganger.ports.changes import Change, Rules
from ganger.ports.fixed import Mark

if TYPE_CHECKING:
    from ganger.contracts.task_result import Write


class Changes(Protocol):
    """A change set that passed every safeguard and has not touched anything yet."""

    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def digests(self) -> Mapping[str, str]:
        """Each path's SHA-256 after the change."""


class Workspace(Protocol):
    """Where agents work. `propose` only reads; `back_up` must be complete and recorded before `apply` starts."""

    @property
    def root(self) -> Path: ...

    def read_text(self, ref: str) -> str:
        """A file of the project by relative path; never one outside it."""

    def propose(self, writes: Sequence[Write], rules: Rules) -> Changes:
        """Checks every safeguard; raises WriteRefused."""

    def back_up(self, changes: Changes, folder: Path) -> None: ...

    def apply(self, changes: Changes, folder: Path) -> None:
        """Writes the whole change or nothing."""

    def originals(self, folder: Path) -> Mapping[str, bytes | None]:
        """The files of the backup with their old content; None: the file did not exist."""

    def landed(self, folder: Path) -> bool | None:
        """Compares hashes: True when all files of the backup are changed, False when none is, None: neither."""

    def roll_back(self, folder: Path) -> tuple[str, ...]:
        """Puts everything back from the backup alone; safe to repeat.

        Returns the paths that other programs have changed since; their content is saved beside the backup.
        """

    def discard(self, folder: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """Paths that were put back, and whether anything else differs."""

    paths: tuple[str, ...] = ()
    more: bool = False


class Watch(Protocol):
    """The project's own folder before and after an attempt worked in it.

    The baseline of a running attempt outlives the lead. Every call is safe to repeat.
    """

    def begin(self) -> None:
        """Takes the present state as the baseline."""

    def resume(self) -> None:
        """Loads the baseline an earlier lead took."""

    def changed(self, ignoring: Mapping[str, str]) -> Change:
        """What differs from the baseline, except Ganger's own writes, given as paths with their SHA-256."""

    def judge(self, change: Change, rules: Rules) -> None:
        """Applies the safeguards; raises WriteRefused."""

    def missing(self, rules: Rules) -> tuple[str, ...]:
        """Expected files that do not exist."""

    def undo(self, change: Change) -> tuple[str, ...]:
        """Puts everything back; returns the paths that could not be put back."""

    def save(self, change: Change, folder: Path, *, contents: bool = True) -> None:
        """Saves the change with a summary, or the summary only."""

    def restore_gates(self, ignoring: Mapping[str, str], rules: Rules, folder: Path) -> Restored:
        """Restores gate files and protected files from the baseline; their present content goes to `folder`."""

    def mark(self) -> Mark: ...
