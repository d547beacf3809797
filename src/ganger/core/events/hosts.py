"""What can happen to the hosts of remotes and forges: they stop answering, refuse the token, and come back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostAway:
    """`kind` is `away` (it does not answer) or `denied` (it does not know the token). `way` is `git` or `api`.
    `next_at` is when it is asked again (Unix time); each try that fails is one more of these, `tries` counts them."""

    host: str
    way: str
    kind: str
    why: str
    next_at: float
    tries: int = 1


@dataclass(frozen=True, slots=True)
class HostAwaited:
    """This task can only go on when the host is back."""

    host: str
    task: str


@dataclass(frozen=True, slots=True)
class HostTried:
    """A person did something about it, so it is asked at once."""

    host: str
    why: str


@dataclass(frozen=True, slots=True)
class HostBack:
    """It answers again by this way."""

    host: str
    way: str
