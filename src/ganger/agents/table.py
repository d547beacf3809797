"""All agent kinds, one line each, and the settings they read. A kind is imported when it is used; other packages add
kinds by entry points."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

from ganger.agents.settings import AgentSettings
from ganger.errors import Fault, InputError
from ganger.ports.agents import Agent

Maker = Callable[[str, AgentSettings, Path, Mapping[str, str]], Agent]

GROUP = "ganger.agents"
KINDS: dict[str, str] = {
    "command": "ganger.agents.command:make",
    "scripted": "ganger.agents.scripted.agent:make",
    "claude": "ganger.agents.programs.claude:ClaudeAgent",
    "codex": "ganger.agents.programs.codex:CodexAgent",
    "opencode": "ganger.agents.programs.opencode:OpencodeAgent",
    "agent": "ganger.agents.programs.cursor:CursorAgent",
    "gemini": "ganger.agents.programs.gemini:GeminiAgent",
    "qwen": "ganger.agents.programs.qwen:QwenAgent",
    "copilot": "ganger.agents.programs.copilot:CopilotAgent",
    "acp": "ganger.agents.acp.agent:AcpAgent",
    "pty": "ganger.agents.pty.agent:PtyAgent",
    "pull": "ganger.agents.pull:PullAgent",
}
# Programs looked up on PATH, in the order they are offered.
PROGRAMS = ("claude", "codex", "opencode", "agent", "gemini", "qwen", "copilot")

_PROGRAM = frozenset({"argv", "args", "env", "key_env", "home_files"})
_MODEL = _PROGRAM | {"model", "permissions"}
# The settings of [agents.NAME] that each kind reads, besides those that Ganger reads for all: kind, account,
# context_tokens, in_place. A kind of another package may read any.
TAKES: dict[str, frozenset[str]] = {
    "command": frozenset({"argv", "env", "prompt"}),
    "scripted": frozenset({"env", "script"}),
    "claude": _MODEL | {"base_url", "effort", "max_turns", "answer_schema", "retries"},
    "codex": _MODEL | {"base_url", "effort", "answer_schema", "retries"},
    "opencode": _MODEL | {"base_url", "effort", "max_turns"},
    "agent": _MODEL | {"base_url"},
    "gemini": _MODEL | {"base_url", "max_turns", "retries"},
    "qwen": _MODEL | {"base_url", "effort", "max_turns"},
    "copilot": _MODEL | {"base_url", "effort"},
    # What the agent behind it reads, unless that is an argument.
    "acp": _MODEL | {"base_url", "effort", "max_turns", "retries", "profile"},
    "pty": _PROGRAM | {"terminal"},
    "pull": frozenset(),
}
# Read only without Ganger's sandbox: inside it codex edits through its shell alone.
WITHOUT_SANDBOX: dict[str, frozenset[str]] = {"codex": frozenset({"permissions"})}


def kinds() -> list[str]:
    """Every known kind, those of other packages last."""
    return list(dict.fromkeys([*KINDS, *_foreign()]))


def make_agent(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> Agent:
    return _maker(name, given.kind)(name, given, root, environ)


def require_kind(name: str, kind: str) -> None:
    """Raises for an unknown kind, whether or not a role uses it; creates nothing."""
    _maker(name, kind)


def _maker(name: str, kind: str) -> Maker:
    if kind in KINDS:
        module, _, attribute = KINDS[kind].partition(":")
        return cast(Maker, getattr(importlib.import_module(module), attribute))
    found = _foreign().get(kind)
    if found is None:
        message = f"there is no agent kind {kind!r}; known: {', '.join(kinds())}"
        raise InputError("ganger.toml", [Fault(f"agents.{name}.kind", "UNKNOWN_AGENT_KIND", message)])
    try:
        return cast(Maker, found.load())
    except Exception as error:
        message = f"the agent kind {kind!r} of package {_package(found)} cannot be loaded: {error}"
        raise InputError("ganger.toml", [Fault(f"agents.{name}.kind", "UNKNOWN_AGENT_KIND", message)]) from error


def _foreign() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in KINDS}


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
