"""Copies of the project's own folder, to try things out in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Copies(Protocol):
    """Copies of the project's own folder. `earlier` are files as they were before (None: they were not there)."""

    def identity(self, earlier: Mapping[str, bytes | None]) -> str | None:
        """The same for the same files with the same content; None where the project is too large to be copied."""

    def copy(self, folder: Path, earlier: Mapping[str, bytes | None]) -> tuple[Path, ...]:
        """Makes `folder`; the answer names folders outside it that it leads to."""
