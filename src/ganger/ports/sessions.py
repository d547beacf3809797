"""Agents that leave their session in a state from which it cannot continue without a repair."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable


@runtime_checkable
class SessionRepair(Protocol):
    def repaired(self, home: Path, session: str) -> Mapping[str, bytes]:
        """Files of the session in its home, by relative path, with the content they need for it to continue."""
