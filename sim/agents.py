"""Simulated agents: how a worker or healer is called, and how its log is read with the real parser."""

from __future__ import annotations

import re
from pathlib import Path

from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused, parse_heal, parse_result
from ganger.contracts.task_result import TaskResult
from ganger.core.signs import Heard, Limited, Tokens
from ganger.ports.agents import AgentHealth, AttemptContext, Capabilities
from ganger.ports.processes import Launch, Launcher, Running

_LIMIT = re.compile(r"limit: reset=([\d.]+)")
_USAGE = re.compile(r"usage: usd=([\d.]+) input=(\d+) output=(\d+)")
_OUTPUT_LIMIT_BYTES = 200_000


class SimAgent:
    kind = "simulated"
    model = ""
    capabilities = Capabilities(stdin_prompt=True)

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, context: AttemptContext) -> Launch:
        return Launch(
            key=str(context.log_path),
            argv=(context.role, context.task_id, str(context.attempt)),
            cwd=context.workspace,
            env=dict(context.environment),
            stdin_path=context.prompt_file,
            log_path=context.log_path,
            timeout_sec=context.timeout_sec,
            output_limit_bytes=_OUTPUT_LIMIT_BYTES,
        )

    async def execute(self, launch: Launch, launcher: Launcher) -> Running:
        return await launcher.start(launch)

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused:
        return parse_result(log, task_id=task_id)

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused:
        return parse_heal(log)

    def furnish(self, context: AttemptContext) -> dict[str, bytes]:
        return {}

    def reader(self) -> None:
        """What it prints has no form of its own."""

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        text = log.read_text(encoding="utf-8")
        found, limit = _USAGE.search(text), _LIMIT.search(text)
        return Heard(
            tokens=Tokens(int(found[2]), int(found[3]), usd=float(found[1])) if found else None,
            limited=Limited("usage limit reached", float(limit[1])) if limit else None,
        )

    def healthcheck(self) -> AgentHealth:
        return AgentHealth(True)
