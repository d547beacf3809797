"""What adapter and launcher add to an agent program's own time: one tiny answer, beside the same call made bare."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.processes import BenchError, clean_environment, scratch
from bench.sizes import Sizes
from ganger.agents.settings import AgentSettings
from ganger.agents.table import make_agent
from ganger.contracts.parser import Parsed
from ganger.core.model.records import TaskSpec
from ganger.dev.server import ModelServer
from ganger.engine.prompts.assemble import assemble
from ganger.launchers.launcher import KeptLauncher
from ganger.ports.agents import Agent, AttemptContext
from tests.agents.installed import fetch, pins

_TASK = "T1"
_KEY = "sk-bench-5d1f0c7be2a94f6380aa41d7e6b3c958"
_RESULT = json.dumps({"contract_version": "2.0", "task_id": _TASK, "status": "DONE", "summary": "did it"})
_PRINTS = f"cat > /dev/null; printf '%s\\n' '<<<TASK_RESULT_V2>>>' '{_RESULT}' '<<<END_TASK_RESULT_V2>>>'"
_MOST_SEC = 120.0
_SHOWN = 1500


@dataclass(frozen=True, slots=True)
class _Program:
    """`key` is the variable with its key, `path` what its model's address ends with."""

    key: str
    model: str
    path: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


_PROGRAMS = {
    "claude": _Program("ANTHROPIC_API_KEY", "claude-opus-5-5"),
    "codex": _Program("OPENAI_API_KEY", "gpt-6-codex", "/v1"),
    "gemini": _Program("GEMINI_API_KEY", "gemini-2.5-pro"),
    "copilot": _Program("COPILOT_PROVIDER_API_KEY", "m1", "/v1"),
    "opencode": _Program("LOCAL_API_KEY", "local/m1", "/v1", {"key_env": "LOCAL_API_KEY"}),
    "qwen": _Program("OPENAI_API_KEY", "m1", "/v1"),
}


def measure(sizes: Sizes) -> Iterator[Figure]:
    """Medians of paired rounds after one that is not counted. What is not installed is told and left out."""
    shell = AgentSettings("command", argv=("/bin/sh", "-c", _PRINTS))
    yield _figure("command", shell, clean_environment(), max(5, sizes.agent_rounds))
    with ModelServer([{"result": {}}]) as server:
        for name in sizes.agents:
            if not pins()[name].folder.is_dir():
                hint = f"python tests/agents/installed.py {name}"
                print(f"agents: {name} is not installed and not measured; `{hint}` fetches it", file=sys.stderr)
                continue
            program, found = _PROGRAMS[name], fetch(name)
            address = f"{server.url}{program.path}"
            given = AgentSettings(name, argv=found.argv, model=program.model, base_url=address, **program.more)
            yield _figure(name, given, {"PATH": found.path, "LANG": "C.UTF-8", program.key: _KEY}, sizes.agent_rounds)


def _figure(name: str, given: AgentSettings, environ: Mapping[str, str], rounds: int) -> Figure:
    place = _Place(scratch(), given, environ)
    bare, through = asyncio.run(place.rounds(rounds))
    middle, floor = statistics.median(through), statistics.median(bare)
    note = f"{middle * 1000:.0f} ms to {floor * 1000:.0f} ms"
    return Figure(
        "agents", f"{name}: through Ganger's adapter and launcher, to a bare call", middle / floor, "x", None, note
    )


class _Place:
    """One agent's folder: its workspace, its home, its prompts and logs."""

    def __init__(self, root: Path, given: AgentSettings, environ: Mapping[str, str]) -> None:
        self.root, self.number = root, 0
        for folder in ("work", "home", "shared", "person"):
            (root / folder).mkdir()
        subprocess.run(["git", "init", "-q", str(root / "work")], check=True)
        self.agent: Agent = make_agent("bench", given, root, {**environ, "HOME": str(root / "person")})

    async def rounds(self, count: int) -> tuple[list[float], list[float]]:
        launcher = KeptLauncher(self.root, grace_sec=2)
        await launcher.prepare()
        try:
            pairs = [(self._bare(), await self._through(launcher)) for _ in range(count + 1)][1:]
        finally:
            await launcher.stop_all(2)
            await launcher.close()
        return [bare for bare, _ in pairs], [through for _, through in pairs]

    def _bare(self) -> float:
        context = self._context()
        self._furnish(context)
        launch = self.agent.prepare(context)
        with open(context.prompt_file, "rb") as prompt, open(context.log_path, "wb") as log:
            began = time.perf_counter()
            subprocess.run(
                launch.argv,
                stdin=prompt,
                stdout=log,
                stderr=log,
                cwd=launch.cwd,
                env=dict(launch.env),
                timeout=_MOST_SEC,
                check=False,
            )
            taken = time.perf_counter() - began
        self._believe(context)
        return taken

    async def _through(self, launcher: KeptLauncher) -> float:
        context = self._context()
        began = time.perf_counter()
        self._furnish(context)
        running = await self.agent.execute(self.agent.prepare(context), launcher)
        await running.wait()
        self._believe(context)
        return time.perf_counter() - began

    def _furnish(self, context: AttemptContext) -> None:
        for name, data in self.agent.furnish(context).items():
            place = self.root / "home" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    def _believe(self, context: AttemptContext) -> None:
        if not isinstance(self.agent.extract_result(context.log_path, _TASK), Parsed):
            text = context.log_path.read_text(encoding="utf-8", errors="replace")
            raise BenchError(f"{self.agent.kind} gave no answer:\n{text[-_SHOWN:]}")

    def _context(self) -> AttemptContext:
        self.number += 1
        prompt = self.root / f"{self.number}.prompt"
        prompt.write_text(assemble(TaskSpec(_TASK, prompt_ref="p"), _Text(), ""), encoding="utf-8")
        return AttemptContext(
            run_id="bench",
            task_id=_TASK,
            attempt=self.number,
            role="worker",
            workspace=self.root / "work",
            prompt_file=prompt,
            log_path=self.root / f"{self.number}.log",
            timeout_sec=_MOST_SEC,
            home=self.root / "home",
            shared=self.root / "shared",
        )


class _Text:
    def read_text(self, ref: str) -> str:
        return "Say that it is done."
