"""What happens to one attempt's changes, from the agent's answer to a verdict: one strategy per way of working."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, Protocol

from ganger.contracts.task_result import TaskResult
from ganger.core.model.records import Ended
from ganger.ports.sandbox import Room

# `whole`: as it was left. `there`: the folder is new and holds the change. `aside`: it is new, and the change
# does not fit. `undone`: the folder was restored to its state before the change.
FoundWork = Literal["whole", "there", "aside", "undone"]
Reader = Callable[[Ended], Awaitable[TaskResult]]


class ChangeStrategy(Protocol):
    """Every step first checks whether it was done already."""

    @property
    def past_agent(self) -> bool:
        """Whether an earlier lead got further than the agent's answer."""

    @property
    def keeps_answer(self) -> bool:
        """Whether an attempt that is stopped now can be continued by a later one without calling the agent again."""

    @property
    def keeps_work(self) -> bool:
        """Whether a later attempt finds the folder as this one leaves it, so that the agent's session can continue."""

    @property
    def found_work(self) -> FoundWork:
        """What a session that continues after its change was rejected finds of that change in its folder."""

    @property
    def lost_changes(self) -> str:
        """Unverified changes that could not be restored."""

    @property
    def lost_work(self) -> bool:
        """Whether the folder in which an agent worked, or a session was to continue, no longer exists."""

    async def enter(self) -> Path:
        """Where the agent works."""

    def room(self, folder: Path) -> Room: ...

    async def go_on(self, read: Reader) -> None:
        """Re-enters after the agent's answer."""

    def recall_verdict(self) -> None:
        """Raises a failure that was recorded already."""

    async def deliver(self, result: TaskResult) -> None:
        """From the agent's answer to DONE; raises Failed, Lost or Stopped."""

    async def undo(self, why: str, *, keep_place: bool = False, refused: bool = False) -> None:
        """Saves and undoes a change that does not count. `keep_place`: a later attempt continues it.
        `refused`: no attempt may take it over."""

    def leave_as_it_is(self, why: str) -> None:
        """It could not be undone; nothing more is touched, so that a person finds it."""

    async def leave(self) -> None:
        """The verdict is recorded; nothing of this attempt is needed any more."""
