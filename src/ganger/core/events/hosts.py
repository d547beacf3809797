"""What can happen to the hosts of remotes and forges: they stop answering, refuse the token, and come back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostAway:
    """`kind` is `away` (it does not answer) or `denied` (it refuses the token). `way` is `git` or `api`.
    `next_at` is when it is tried again (Unix time); each failed try is another such event, `tries` counts them."""

    host: str
    way: str
    kind: str
    why: str
    next_at: float
    tries: int = 1


@dataclass(frozen=True, slots=True)
class HostAwaited:
    """This task can only continue when the host is back."""

    host: str
    task: str


@dataclass(frozen=True, slots=True)
class HostTried:
    """A person did something about it, so it is tried immediately."""

    host: str
    why: str


@dataclass(frozen=True, slots=True)
class HostBack:
    """It answers again over this way."""

    host: str
    way: str
