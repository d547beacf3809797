"""What agents report about themselves, as events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent, TaskEvent
from ganger.core.model.records import Totals


@dataclass(frozen=True, slots=True)
class AgentHeard(AttemptEvent):
    """What an agent's output shows while it works, at a modest rate."""

    task: str
    attempt: int
    session: str = ""
    model: str = ""
    doing: str = ""
    tools: int = 0
    denials: int = 0
    context_used: int = 0
    context_window: int = 0


@dataclass(frozen=True, slots=True)
class CostSettled(TaskEvent):
    """What an attempt really cost; its reservation ends. A healer's has no task and its round as the attempt.

    Where the money (`known`) or the tokens (`counted`) are not known, what was set aside stands for them. `totals` is
    what is counted of the agent's session so far. `doubted`: usage that its agent reported and that is implausible.
    """

    shown: ClassVar = True

    task: str
    attempt: int
    usd: float
    input_tokens: int = 0
    output_tokens: int = 0
    known: bool = True
    counted: bool = True
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    session: str = ""
    totals: Totals | None = None
    doubted: str = ""

    def sentence(self) -> str:
        if self.doubted:
            return f"{self.task or 'the healer'}: reported usage of {self.doubted} is implausible and counts as unknown"
        return ""
