"""The road of one attempt's changes, from the agent's answer to a verdict: one for each way of working."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, Protocol

from ganger.contracts.task_result import TaskResult
from ganger.core.model.records import Ended
from ganger.ports import Room

# `whole`: as it was left. `there`: the folder was made anew and holds the change. `aside`: made anew, and the change
# does not fit. `undone`: the folder was put back to what it was before.
FoundWork = Literal["whole", "there", "aside", "undone"]
Reader = Callable[[Ended], Awaitable[TaskResult]]


class ChangeStrategy(Protocol):
    """Every step first looks whether it was done already."""

    @property
    def past_agent(self) -> bool:
        """Whether an earlier lead came further than the agent's answer."""

    @property
    def keeps_answer(self) -> bool:
        """Whether an attempt that is stopped now can be taken up by a later one without asking the agent again."""

    @property
    def keeps_work(self) -> bool:
        """Whether a later attempt finds the folder as this one leaves it, so that the agent's session can go on."""

    @property
    def found_work(self) -> FoundWork:
        """What a session that goes on after its change was turned down finds of that change in its folder."""

    @property
    def lost_changes(self) -> str:
        """Unverified changes that could not be put back."""

    @property
    def lost_work(self) -> bool:
        """Whether the folder in which somebody worked, or a session was to go on, is not there any more."""

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
        """What was changed and does not count is saved and put back. `keep_place`: a later attempt takes it up.
        `refused`: nobody shall take it over."""

    def leave_as_it_is(self, why: str) -> None:
        """It could not be undone; nothing more is touched, so that a person finds it."""

    async def leave(self) -> None:
        """The verdict is recorded; nothing of this attempt is needed any more."""
