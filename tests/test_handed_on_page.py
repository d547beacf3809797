"""The guide's tables of what is handed on are what the code hands on."""

from __future__ import annotations

from pathlib import Path

from ganger.agents.cli import CliAgent
from ganger.agents.programs.claude import ClaudeAgent
from ganger.agents.programs.codex import CodexAgent
from ganger.agents.programs.copilot import CopilotAgent
from ganger.agents.programs.cursor import CursorAgent
from ganger.agents.programs.gemini import GeminiAgent
from ganger.agents.programs.opencode import OpencodeAgent
from ganger.agents.programs.qwen import QwenAgent
from ganger.core.verify.environment import ORDINARY

PAGE = Path(__file__).resolve().parents[1] / "docs/guide/agents.md"
AGENTS: tuple[type[CliAgent], ...] = (
    *(ClaudeAgent, CodexAgent, OpencodeAgent, CursorAgent, GeminiAgent, QwenAgent, CopilotAgent),
)


def rows() -> list[str]:
    made = []
    for agent in AGENTS:
        settings = " ".join(f"`{name}`" for name in (*agent.variables, *agent.headers)) or "–"
        keys = " ".join(f"`{name}`" for name in agent.keys)
        made.append(f"| `{agent.kind}` | {settings} | {keys} | {'not known' if agent is CursorAgent else 'no'} |")
    return made


def ordinary_rows() -> list[str]:
    return [f"| {kind} | {' '.join(f'`{name}`' for name in names)} |" for kind, names in ORDINARY.items()]


def test_the_guide_names_every_variable_that_is_handed_on() -> None:
    """D19: and no other; what this prints belongs into the page."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in (*rows(), *ordinary_rows()) if row not in page] == []
    assert sum(line.endswith(("| no |", "| not known |")) for line in page) == len(AGENTS)
