"""Who works in the project's own folder at the same time, and which changes there are whose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ganger.core.records import RunState
from ganger.core.vocabulary import TaskStatus
from ganger.ports import Change, Rules, Watch


class Company:
    """A change is an attempt's own only if nobody else was there from its start to its end."""

    def __init__(self, watch: Watch | None, state: RunState) -> None:
        self._watch, self._state = watch, state
        self._inside: set[str] = set()
        self._crowded: set[str] = set()
        self._written: dict[str, str] = {}
        self._any_done = False

    def enter(self, task: str, *, again: bool) -> None:
        """`again`: its agent began under an earlier lead. What changed since may be a person's, unless it is known to
        edit files itself."""
        if self._watch is None:
            return
        worker = self._state.tasks[task].worker
        edits = self._state.specs[task].role in self._state.in_place_roles or (worker is not None and worker.pulled)
        known = again and edits and len(self._state.running) == 1
        if not self._inside:
            self._written.clear()
            self._any_done = False
            if known:
                self._watch.resume()
            else:
                self._watch.begin()
        self._inside.add(task)
        if len(self._inside) > 1 or (again and not known):
            self._crowded |= self._inside

    def is_alone(self, task: str) -> bool:
        return self._watch is not None and task in self._inside and task not in self._crowded

    def wrote(self, digests: Mapping[str, str]) -> None:
        """Ganger itself wrote these."""
        self._written.update(digests)

    def unwrote(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._written.pop(path, None)

    def edits(self) -> Change | None:
        """Everything that changed since the baseline, but for what Ganger wrote."""
        return None if self._watch is None else self._watch.changed(self._written)

    def restore_gates(self, rules: Rules, folder: Path) -> tuple[str, ...]:
        """For those who are not alone: nobody can tell who changed a gate, so it is put back before it judges."""
        return () if self._watch is None else self._watch.restore_gates(self._written, rules, folder)

    @property
    def may_undo(self) -> bool:
        """Whether nothing in the folder is part of something that is DONE."""
        return not self._any_done

    def leave(self, task: str) -> Change | None:
        """What was changed behind everybody's back, when the last of a crowd has left."""
        self._any_done = self._any_done or self._state.tasks[task].status is TaskStatus.DONE
        self._inside.discard(task)
        crowded = task in self._crowded
        self._crowded.discard(task)
        return self.edits() if crowded and not self._inside else None
