"""Copies of the project's own folder, for trials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Copies(Protocol):
    """Copies of the project's own folder. `earlier` are files with their old content (None: no such file)."""

    def identity(self, earlier: Mapping[str, bytes | None]) -> str | None:
        """A key that is equal for equal files and contents; None where the project is too large to copy."""

    def copy(self, folder: Path, earlier: Mapping[str, bytes | None]) -> tuple[Path, ...]:
        """Makes `folder`; returns the folders outside that it links to."""
