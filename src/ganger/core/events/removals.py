"""What happens when someone takes commits of this run out of the remote's branch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommitsRemoved:
    """Commits that this run had pushed are no longer in the remote's branch, which was at `tip` then (empty: it was
    gone). `tasks` are those whose changes were among them, in the order of their merges."""

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
    """Recorded before the run's branch moves from `head` back to `tip`, which the remote's branch is at. `gone` are the
    commits of tasks that it does not hold then. Tasks in `left` are left out; what others had merged and not delivered
    is merged again."""

    repo: str
    head: str
    tip: str
    gone: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PushLost:
    """`commit` was pushed and is no longer in the remote's branch: the task goes with the next push."""

    task: str
    attempt: int
    commit: str
