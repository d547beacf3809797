"""What can happen to the hosts of remotes and forges: they stop answering, refuse the token, and come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import RunEvent

# Kinds of trouble with a host.
AWAY, DENIED = "away", "denied"


@dataclass(frozen=True, slots=True)
class HostAway(RunEvent):
    """`kind` is `away` (it does not answer) or `denied` (it refuses the token). `way` is `git` or `api`.
    `next_at` is when it is tried again (Unix time); each failed try is another such event, `tries` counts them."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    host: str
    way: str
    kind: str
    why: str
    next_at: float
    tries: int = 1

    def sentence(self) -> str:
        if self.tries > 1:
            # The first event already reported it.
            return ""
        what = "refuses the token" if self.kind == DENIED else "does not answer"
        return f"{self.host} {what}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True, slots=True)
class HostAwaited(RunEvent):
    """This task can only continue when the host is back."""

    told_in_notices: ClassVar = True

    host: str
    task: str

    def sentence(self) -> str:
        return f"{self.task}: waiting for {self.host}"


@dataclass(frozen=True, slots=True)
class HostTried(RunEvent):
    """A person did something about it, so it is tried immediately."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    host: str
    why: str

    def sentence(self) -> str:
        return f"{self.host} is tried now: {self.why}"


@dataclass(frozen=True, slots=True)
class HostBack(RunEvent):
    """It answers again over this way."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    host: str
    way: str

    def sentence(self) -> str:
        return f"{self.host} answers again ({self.way})"
