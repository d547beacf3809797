"""What happens when someone removes commits of this run from the remote branch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommitsRemoved:
    """Commits that this run had pushed are no longer in the remote branch, which was then at `tip` (empty: gone).
    `tasks` are those whose changes were among them, in the order of their merges."""

    repo: str
    tip: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemovalDecided:
    """`what` is `leave_out`, `put_back`, or `restored` (someone put the commits back by hand)."""

    repo: str
    what: str


@dataclass(frozen=True, slots=True)
class SetBackIntended:
    """Recorded before the run's branch moves from `head` back to `tip`, where the remote branch is. `gone` are the
    commits of tasks that it then no longer contains. Tasks in `left` are left out; undelivered merges of other tasks
    are made again."""

    repo: str
    head: str
    tip: str
    gone: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PushLost:
    """`commit` was pushed and is no longer in the remote branch: the task goes with the next push."""

    task: str
    attempt: int
    commit: str
