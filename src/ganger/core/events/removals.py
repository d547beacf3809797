"""What happens when someone removes commits of this run from the remote branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent, RunEvent
from ganger.core.events.wording import SHORT

_DECIDED = {
    "leave_out": "stay out",
    "put_back": "will be pushed again",
    "restored": "are back in the branch",
}


@dataclass(frozen=True, slots=True)
class CommitsRemoved(RunEvent):
    """Commits that this run had pushed are no longer in the remote branch, which was then at `tip` (empty: gone).
    `tasks` are those whose changes were among them, in the order of their merges."""

    told_in_notices: ClassVar = True

    repo: str
    tip: str
    tasks: tuple[str, ...]

    def sentence(self) -> str:
        whose = f" of {', '.join(self.tasks)}" if self.tasks else ""
        return f"{self.repo or 'the project'}: commits{whose} were removed from the remote branch"


@dataclass(frozen=True, slots=True)
class RemovalDecided(RunEvent):
    """`what` is `leave_out`, `put_back`, or `restored` (someone put the commits back by hand)."""

    told_in_notices: ClassVar = True

    repo: str
    what: str

    def sentence(self) -> str:
        return (
            f"{self.repo or 'the project'}: commits removed from the remote branch {_DECIDED.get(self.what, self.what)}"
        )


@dataclass(frozen=True, slots=True)
class SetBackIntended(RunEvent):
    """Recorded before the run's branch moves from `head` back to `tip`, where the remote branch is. `gone` are the
    commits of tasks that it then no longer contains. Tasks in `left` are left out; undelivered merges of other tasks
    are made again."""

    told_in_notices: ClassVar = True

    repo: str
    head: str
    tip: str
    gone: tuple[str, ...]
    left: tuple[str, ...]

    def sentence(self) -> str:
        return f"{self.repo or 'the project'}: resetting the run's branch to {self.tip[:SHORT]}"


@dataclass(frozen=True, slots=True)
class PushLost(AttemptEvent):
    """`commit` was pushed and is no longer in the remote branch: the task goes with the next push."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    commit: str

    def sentence(self) -> str:
        return f"{self.task}: {self.commit[:SHORT]} is no longer in the remote branch"
