"""What a repository knows about its commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class History(Protocol):
    async def files_of(self, commit: str) -> Sequence[str]:
        """The paths it changed, compared with its first parent."""

    async def files_between(self, base: str, tip: str) -> Sequence[str]:
        """The paths in which they differ; a renamed file counts by both of its names."""

    async def ci_texts(self, commit: str) -> Sequence[str]:
        """What the workflow files of this commit say."""

    async def is_straight(self, base: str, tip: str) -> bool:
        """Whether none of the commits after `base` up to `tip` is a merge."""

    async def fork_point(self, one: str, other: str) -> str:
        """The newest common commit; empty where there is none."""

    async def message(self, commit: str) -> str: ...
