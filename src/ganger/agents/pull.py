"""The `pull` kind: no worker is started; sessions opened by the operator ask for tasks (`ganger worker next`, MCP)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ganger.agents.settings import AgentSettings
from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused, parse_heal, parse_result
from ganger.contracts.task_result import TaskResult
from ganger.core.signs import Heard
from ganger.errors import GangerError
from ganger.ports.agents import AgentHealth, AttemptContext, Capabilities, Reader
from ganger.ports.processes import Launch, Launcher, Running


class PullAgent:
    kind = "pull"
    model = ""

    def __init__(self, name: str, _given: AgentSettings, _root: Path, _environ: Mapping[str, str]) -> None:
        self.name = name
        self.capabilities = Capabilities(interactive=True)

    def furnish(self, _context: AttemptContext) -> Mapping[str, bytes]:
        return {}

    def prepare(self, context: AttemptContext) -> Launch:
        raise GangerError(
            f"agent {self.name}: no worker is started for {context.task_id}",
            hint="a session takes it with ganger worker next",
            code="NOT_STARTED",
        )

    async def execute(self, launch: Launch, launcher: Launcher) -> Running:
        return await launcher.start(launch)

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused:
        return parse_result(log, task_id=task_id)

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused:
        return parse_heal(log)

    def reader(self) -> Reader | None:
        return None

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        return Heard()

    def healthcheck(self) -> AgentHealth:
        return AgentHealth(True, details=("its tasks wait for sessions that ask: ganger worker next",))
