"""Patches of a run: where each came from, what it touches, whether it is still in effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ganger.core.events import PatchApplied, PatchUndone, Recorded


@dataclass(frozen=True, slots=True)
class PatchRow:
    id: str
    round: int
    at: str
    target: str
    operation: str
    path: str
    task_id: str
    tasks: tuple[str, ...]
    file: str
    settings: tuple[tuple[str, float], ...]
    undone: str = ""

    @property
    def active(self) -> bool:
        return not self.undone

    @property
    def where(self) -> str:
        """What it changes, in short."""
        if self.settings:
            return " ".join(f"{name}={value:g}" for name, value in self.settings)
        return self.path or self.task_id or "the healing scope"

    @property
    def touched(self) -> str:
        shown = ", ".join(self.tasks[:3])
        return f"{shown} and {len(self.tasks) - 3} more" if len(self.tasks) > 3 else shown

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "round": self.round,
            "at": self.at,
            "target": self.target,
            "operation": self.operation,
            "path": self.path or None,
            "task_id": self.task_id or None,
            "tasks": list(self.tasks),
            "settings": dict(self.settings) or None,
            "active": self.active,
            "undone": self.undone or None,
        }


def patch_rows(events: Iterable[Recorded]) -> list[PatchRow]:
    """Every patch of a run, in the order they were applied."""
    rows: dict[str, PatchRow] = {}
    for recorded in events:
        event = recorded.event
        if isinstance(event, PatchApplied):
            rows[event.patch] = _row(event, recorded.at)
        elif isinstance(event, PatchUndone) and event.patch in rows:
            rows[event.patch] = replace(rows[event.patch], undone=event.why or "undone")
    return list(rows.values())


def _row(event: PatchApplied, at: str) -> PatchRow:
    numbers = {
        "timeout_sec": event.timeout_sec,
        "concurrency": event.concurrency,
        "current_batch_size": event.current_batch_size,
    }
    settings = tuple((name, value) for name, value in numbers.items() if value is not None)
    return PatchRow(
        event.patch, event.round, at, event.target, event.operation, event.path, event.task_id, event.tasks, event.file,
        settings,
    )  # fmt: skip
