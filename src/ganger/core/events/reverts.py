"""What can happen when a person wants a task's change reverted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RevertChosen:
    """With the answer to `question`, a person decided to revert the change. `how` is `ganger` (by commits of its own,
    without an agent) or `worker` (by the task's worker)."""

    task: str
    question: str
    how: str = "ganger"


@dataclass(frozen=True, slots=True)
class RevertFailed:
    """The revert failed: it conflicts, or the checks or CI are red with it. A person is asked again."""

    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class Reverted:
    """The branch contains `commit`, which reverts the change, with everything proved that a completion requires."""

    task: str
    attempt: int
    commit: str
