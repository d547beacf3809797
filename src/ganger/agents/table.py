"""Which agent kinds there are: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ganger.agents.command import CommandAgent
from ganger.agents.scripted import ScriptedAgent
from ganger.agents.settings import AgentSettings
from ganger.errors import Fault, InputError, NotBuiltYet
from ganger.ports import Agent

Maker = Callable[[str, AgentSettings, Path, Mapping[str, str]], Agent]


def _command(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> Agent:
    if not given.argv:
        raise InputError(
            "ganger.toml", [Fault(f"agents.{name}.argv", "MISSING_REQUIRED_FIELD", "name the program to run")]
        )
    return CommandAgent(name, argv=given.argv, prompt=given.prompt, passed=given.env, environ=environ, root=root)


def _scripted(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> Agent:
    if not given.script:
        raise InputError(
            "ganger.toml", [Fault(f"agents.{name}.script", "MISSING_REQUIRED_FIELD", "name the script file")]
        )
    return ScriptedAgent(name, script=root / given.script, environ=environ, root=root)


KINDS: dict[str, Maker] = {
    "command": _command,
    "scripted": _scripted,
}
ANNOUNCED = ("claude", "codex", "opencode", "agent", "gemini")


def make_agent(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> Agent:
    if given.kind in ANNOUNCED:
        raise NotBuiltYet(
            f"agents.{name}: kind {given.kind!r} is not there yet",
            hint=f'until then, call it through kind = "command" with argv = ["{given.kind}", …]',
        )
    if given.kind not in KINDS:
        known = ", ".join([*KINDS, *ANNOUNCED])
        message = f"there is no agent kind {given.kind!r}; known: {known}"
        raise InputError("ganger.toml", [Fault(f"agents.{name}.kind", "UNKNOWN_AGENT_KIND", message)])
    return KINDS[given.kind](name, given, root, environ)
