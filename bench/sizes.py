"""How much each part measures: enough for a verdict, everything, or just enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sizes:
    fleet_tasks: int = 300
    fleet_rounds: int = 5
    side_tasks: int = 150
    side_rounds: int = 3
    concurrencies: tuple[int, ...] = (2, 16)
    plan_tasks: tuple[int, ...] = (1_000, 10_000, 100_000)
    plan_rounds: int = 3
    log_bytes: int = 256 * MIB
    log_rounds: int = 5
    start_rounds: int = 20
    resume_tasks: int = 10_000
    resume_rounds: int = 5
    event_tasks: tuple[int, int] = (1_000, 10_000)
    event_rounds: int = 10
    agents: tuple[str, ...] = ("claude", "codex", "gemini", "copilot")
    agent_rounds: int = 3


DEFAULT = Sizes()
FULL = Sizes(
    fleet_tasks=1000,
    side_tasks=300,
    log_bytes=1024 * MIB,
    start_rounds=40,
    agents=("claude", "codex", "gemini", "copilot", "opencode", "qwen"),
)
TINY = Sizes(
    fleet_tasks=4,
    fleet_rounds=1,
    side_tasks=3,
    side_rounds=1,
    concurrencies=(2,),
    plan_tasks=(20, 200),
    plan_rounds=1,
    log_bytes=MIB,
    log_rounds=1,
    start_rounds=1,
    resume_tasks=30,
    resume_rounds=1,
    event_tasks=(20, 40),
    event_rounds=2,
    agents=(),
    agent_rounds=1,
)
