"""What no task may change in a folder that agents work in, as the engine needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Mark(Protocol):
    """The project's folder at one moment."""

    def moved(self) -> tuple[str, ...]:
        """Paths that were touched since, even if their content is the same."""

    def had(self, path: str) -> bool: ...


class FixedChange(Protocol):
    """Changes to things that no task may change.

    An agent is responsible for the `grave` paths; the others are what tools leave on their own. `refs` are the refs
    that moved, in words.
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

    Their baseline outlives the lead. Every call is safe to repeat.
    """

    @property
    def walled(self) -> bool:
        """Whether the sandbox prevents agents from writing them."""

    @property
    def exposed(self) -> bool:
        """Whether there are any that the sandbox does not protect."""

    def begin(self) -> tuple[str, ...]:
        """Takes the present state as the baseline; returns the refs that moved since this process last looked, in
        words."""

    def resume(self) -> None:
        """Loads the baseline of an earlier lead."""

    def folders(self) -> tuple[Path, ...]:
        """The paths for `Room.fixed`."""

    def look(self) -> FixedChange: ...

    def put_back(self, found: FixedChange, folder: Path) -> tuple[str, ...]:
        """Puts everything back, after saving the present state in `folder`; returns the paths that could not be put
        back."""

    def mark(self) -> Mark: ...
