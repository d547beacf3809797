"""The ways of keeping runs. New runs are kept by the first; a run that has begun stays where it is."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from ganger.ports.store import RunStores

KINDS = ("ganger.stores.sqlite:SqliteStores",)


@cache
def _made(kind: str) -> RunStores:
    module, _, name = kind.partition(":")
    made: RunStores = getattr(import_module(module), name)()
    return made


def stores() -> list[RunStores]:
    return [_made(kind) for kind in KINDS]


def stores_of(run: Path) -> RunStores:
    """Where this run is kept, or would be kept if it began now."""
    return next((kind for kind in stores() if kind.exists(run)), stores()[0])


def has_begun(run: Path) -> bool:
    return any(kind.exists(run) for kind in stores())


def runs_in(above: Path) -> list[Path]:
    """Every run whose folder is in `above`."""
    return sorted({run for kind in stores() for run in kind.runs(above)})
