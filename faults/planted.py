"""Planted bugs: one wrong line each, put into a lead before it runs, and the harness that must notice."""

from __future__ import annotations

from collections.abc import Callable


def planter(name: str) -> Callable[[], None] | None:
    return None
