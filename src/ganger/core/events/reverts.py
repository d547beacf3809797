"""What can happen when a person wants a task's change out of the branch again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RevertChosen:
    """A person answered `question` so: the change is taken back. `how` is `ganger` (commits that revert it, without an
    agent) or `worker` (the task's own worker does it)."""

    task: str
    question: str
    how: str = "ganger"


@dataclass(frozen=True, slots=True)
class RevertFailed:
    """It was not brought to its end: it conflicts, or the checks or CI are red with it. A person is asked again."""

    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class Reverted:
    """The branch holds `commit`, which takes the change back, with everything proved that a completion asks for."""

    task: str
    attempt: int
    commit: str
