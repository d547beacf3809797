"""What can happen when a person wants a task's change reverted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent, B, E, F, TaskEvent
from ganger.core.events.wording import SHORT


@dataclass(frozen=True, slots=True)
class RevertChosen(TaskEvent):
    """With the answer to `question`, a person decided to revert the change. `how` is `ganger` (by commits of its own,
    without an agent) or `worker` (by the task's worker)."""

    fits: ClassVar = {B: B, F: F, E: E}
    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    question: str
    how: str = "ganger"

    def sentence(self) -> str:
        by = " by its worker" if self.how == "worker" else ""
        return f"{self.task}: will be reverted{by} (answer to {self.question})"


@dataclass(frozen=True, slots=True)
class RevertFailed(AttemptEvent):
    """The revert failed: it conflicts, or the checks or CI are red with it. A person is asked again."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    why: str

    def sentence(self) -> str:
        return f"{self.task}: was not reverted: {self.why}"


@dataclass(frozen=True, slots=True)
class Reverted(AttemptEvent):
    """The branch contains `commit`, which reverts the change, with everything proved that a completion requires."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    commit: str

    def sentence(self) -> str:
        return f"{self.task}: reverted; proved at {self.commit[:SHORT]}"
