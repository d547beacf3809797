"""Runs on disk: which there are, and their state. Commands that only read need nothing else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ganger.app.run_places import place_of, runs_of
from ganger.config import Project
from ganger.core.events import Recorded
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.errors import NotFoundError
from ganger.local.procfs import is_there
from ganger.local.run_folder import RunFolder
from ganger.ports.store import BlockingStore, Leader
from ganger.stores.table import has_begun as begun, stores_of

_PACE_HOLDS_SEC = 120.0


def newest_run(project: Project, run_id: str | None) -> RunFolder:
    """The run a command is about: the named one, else the one started or continued last."""
    if run_id is not None:
        folder = place_of(project, run_id)
        for name in folder.store_files:
            _require_readable(folder.path / name)
        if not has_begun(folder):
            raise NotFoundError(
                f"no run {run_id!r} in {project.shown_path}", hint="ganger status without --run shows the newest"
            )
        return folder
    found = runs_of(project)
    if not found:
        _require_readable(project.shown_path)
        raise NotFoundError(f"there is no run in {project.shown_path} yet", hint="start one: ganger run")
    return found[0]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _require_readable(folder: Path) -> None:
    """Raises for a folder that cannot be read, so that it does not look empty."""
    while not _exists(folder) and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.R_OK | os.X_OK if folder.is_dir() else os.R_OK):
        owner = folder.stat().st_uid
        raise NotFoundError(
            f"{folder} cannot be read: it belongs to user {owner}, and this is user {os.geteuid()}",
            hint="run the command as the user that started the run",
        )


def has_begun(folder: RunFolder) -> bool:
    return begun(folder.path)


def open_store(folder: RunFolder, *, read_only: bool = False) -> BlockingStore:
    """A run's events, for a command."""
    return stores_of(folder.path).open(folder.path, read_only=read_only)


def leader_of(folder: RunFolder) -> Leader | None:
    """The living process that leads the run."""
    return stores_of(folder.path).leader(folder.path)


def is_led(folder: RunFolder) -> bool:
    return leader_of(folder) is not None


def read_state(folder: RunFolder) -> RunState:
    """A run's state, replayed from its events; changes nothing."""
    state = RunState()
    for recorded in read_events(folder, 0):
        apply(state, recorded)
    return state


def read_events(folder: RunFolder, since: int) -> Iterator[Recorded]:
    store = open_store(folder, read_only=True)
    try:
        yield from store.read(since)
    finally:
        store.close()


def keeper_pid(folder: RunFolder) -> int | None:
    """The keeper's process of this run, if it lives."""
    try:
        with open(folder.path / "keeper" / "lock", encoding="ascii") as file:
            pid = int(file.read().strip() or 0)
    except (OSError, ValueError):
        return None
    return pid if pid and is_there(pid) else None


def forge_pace(folder: RunFolder) -> dict[str, int]:
    """Requests in the last minute by forge, as last reported by the lead; empty without a recent report."""
    try:
        told = json.loads((folder.path / "forges.json").read_text(encoding="utf-8"))
        if time.time() - float(told["at"]) > _PACE_HOLDS_SEC:
            return {}
        return {str(name): int(counts["per_minute"]) for name, counts in told["forges"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def size_of(path: Path) -> int:
    """The disk space a folder uses."""
    total = 0
    for above, folders, files in os.walk(path, followlinks=False):
        for name in (*files, *folders):
            try:
                total += os.lstat(os.path.join(above, name)).st_blocks * 512  # noqa: PTH118
            except OSError:
                continue
    return total
