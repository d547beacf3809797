"""Planted bugs of delivery: told too early, done without a word, done again without a look."""

from __future__ import annotations

from collections.abc import Callable

BUGS: dict[str, object] = {}


def planter(name: str) -> Callable[[], None] | None:
    return None
