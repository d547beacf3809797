"""Which attempts work in the project's folder at the same time, and which changes belong to which."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import TaskStatus
from ganger.ports.changes import Change, Rules
from ganger.ports.fixed import Fixed, Mark
from ganger.ports.workspace import Restored, Watch


@dataclass(frozen=True, slots=True)
class Beside:
    """The attempts at work at one moment."""

    entries: int
    at_work: bool


class SharedFolder:
    """A change belongs to an attempt only if no other attempt was there from its start to its end.

    An agent is at work from when its attempt enters until its answer arrives; only then can it change files.
    """

    def __init__(self, watch: Watch | None, fixed: Fixed | None, state: RunState) -> None:
        self._watch, self._fixed, self._state = watch, fixed, state
        self._inside: set[str] = set()
        self._at_work: set[str] = set()
        self._entries = 0
        self._quiet_wanted = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._crowded: set[str] = set()
        self._written: dict[str, str] = {}
        self._any_done = False

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(sorted(self._inside))

    async def admitted(self) -> None:
        """Waits while an attempt needs the folder to be quiet."""
        await self._until(lambda: not self._quiet_wanted)

    @contextlib.asynccontextmanager
    async def quiet(self) -> AsyncIterator[None]:
        """No agent is at work, and none starts."""
        self._quiet_wanted += 1
        try:
            await self._until(lambda: not self._at_work)
            yield
        finally:
            self._quiet_wanted -= 1
            self._wake()

    def answered(self, task: str) -> None:
        """Its agent has ended."""
        self._at_work.discard(task)
        self._wake()

    def beside(self, task: str) -> Beside:
        return Beside(self._entries, bool(self._at_work - {task}))

    def had_others(self, before: Beside) -> bool:
        """Whether an agent was at work at any time since."""
        return before.at_work or self._entries != before.entries

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def enter(self, task: str, *, again: bool) -> tuple[str, ...]:
        """Returns the refs that moved while no attempt was here. `again`: its agent started under an earlier lead;
        what changed since may be a person's, unless the agent's role edits files."""
        self._entries += 1
        self._at_work.add(task)
        if self._watch is None:
            return ()
        moved: tuple[str, ...] = ()
        worker = self._state.tasks[task].worker
        edits = self._state.specs[task].role in self._state.files.in_place_roles or (
            worker is not None and worker.pulled
        )
        known = again and edits and len(self._state.index.running) == 1
        if not self._inside:
            self._written.clear()
            self._any_done = False
            if known:
                self._watch.resume()
            else:
                self._watch.begin()
            if self._fixed is not None and again:
                self._fixed.resume()
            elif self._fixed is not None:
                moved = self._fixed.begin()
        self._inside.add(task)
        if len(self._inside) > 1 or (again and not known):
            self._crowded |= self._inside
        return moved

    def mark(self) -> tuple[Mark, ...]:
        return tuple(place.mark() for place in (self._watch, self._fixed) if place is not None)

    def is_alone(self, task: str) -> bool:
        return self._watch is not None and task in self._inside and task not in self._crowded

    def wrote(self, digests: Mapping[str, str]) -> None:
        """Notes that Ganger itself wrote these."""
        self._written.update(digests)

    def unwrote(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._written.pop(path, None)

    def edits(self) -> Change | None:
        """Everything that changed since the baseline, except what Ganger wrote."""
        return None if self._watch is None else self._watch.changed(self._written)

    def restore_gates(self, rules: Rules, folder: Path) -> Restored:
        """For attempts that are not alone: who changed a gate is unknown, so it is restored before it runs."""
        return Restored() if self._watch is None else self._watch.restore_gates(self._written, rules, folder)

    @property
    def may_undo(self) -> bool:
        """Whether nothing in the folder belongs to a DONE task."""
        return not self._any_done

    def leave(self, task: str) -> Change | None:
        """What was changed by no attempt, found when the last of several has left."""
        self._any_done = self._any_done or self._state.tasks[task].status is TaskStatus.DONE
        self._inside.discard(task)
        self.answered(task)
        crowded = task in self._crowded
        self._crowded.discard(task)
        return self.edits() if crowded and not self._inside else None
