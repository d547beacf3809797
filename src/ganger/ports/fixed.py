"""What lies in a folder that agents work in and is no task's to change, as the engine needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Mark(Protocol):
    """The project's folder at one moment."""

    def moved(self) -> tuple[str, ...]:
        """Paths that were touched since, also if they hold what they held."""

    def had(self, path: str) -> bool: ...


class FixedChange(Protocol):
    """What became of things that are no task's to change.

    `grave` are the paths an agent answers for; the others are what tools leave by themselves. `refs` are the refs that
    moved, in words.
    """

    @property
    def is_nothing(self) -> bool: ...

    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def grave(self) -> tuple[str, ...]: ...

    @property
    def refs(self) -> tuple[str, ...]: ...


class Fixed(Protocol):
    """Git's settings, installed packages and linked folders in a folder that agents work in.

    What they began with outlives the lead. Everything is harmless to repeat.
    """

    @property
    def walled(self) -> bool:
        """Whether the sandbox keeps agents from writing them."""

    @property
    def exposed(self) -> bool:
        """Whether there are any, and the sandbox does not keep them."""

    def begin(self) -> tuple[str, ...]:
        """What is there now is how it shall be; the refs that moved since this process last looked, in words."""

    def resume(self) -> None:
        """As an earlier lead found it."""

    def folders(self) -> tuple[Path, ...]:
        """For `Room.fixed`."""

    def look(self) -> FixedChange: ...

    def put_back(self, found: FixedChange, folder: Path) -> tuple[str, ...]:
        """What was found is saved in `folder` first; the paths that could not be put back."""

    def mark(self) -> Mark: ...
