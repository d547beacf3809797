"""What a repository tells of the commits it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class History(Protocol):
    async def files_of(self, commit: str) -> Sequence[str]:
        """The paths that it changed, compared with its first parent."""

    async def is_straight(self, base: str, tip: str) -> bool:
        """Whether nothing that came after `base` up to `tip` is a merge."""

    async def fork_point(self, one: str, other: str) -> str:
        """The newest commit that both hold; empty where they have nothing in common."""

    async def message(self, commit: str) -> str: ...
