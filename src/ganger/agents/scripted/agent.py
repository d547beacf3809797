"""The `scripted` agent: plays behaviours from a file instead of calling a model; for demos, tests, trying policies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ganger.agents.command import CommandAgent
from ganger.agents.scripted.script import ScriptProblem, load_script
from ganger.agents.settings import AgentSettings
from ganger.agents.sign_lines import SignReader
from ganger.agents.streams import hear
from ganger.core.signs import Heard
from ganger.errors import Fault, InputError
from ganger.ports.agents import AgentHealth, Reader


class ScriptedAgent(CommandAgent):
    kind = "scripted"

    def __init__(
        self, name: str, *, script: Path, environ: Mapping[str, str], root: Path, passed: tuple[str, ...] = ()
    ) -> None:
        # Modules come from where Ganger is installed, never from the folder the agent works in.
        argv = (sys.executable, "-P", "-X", "utf8", "-m", "ganger.agents.scripted.play", str(script))
        super().__init__(name, argv=argv, prompt="stdin", passed=passed, environ=environ, root=root)
        self._script = script
        self._speaks = _speaks(script)
        self.capabilities = replace(self.capabilities, stream=self._speaks, resume=self._speaks)

    def reader(self) -> Reader | None:
        return SignReader() if self._speaks else None

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        plain = super().hear(log)
        if not self._speaks:
            return plain
        heard = hear(SignReader(), log)
        heard.tokens = heard.tokens or plain.tokens
        return heard

    def healthcheck(self) -> AgentHealth:
        try:
            script = load_script(self._script)
        except ScriptProblem as problem:
            return AgentHealth(False, details=(str(problem),))
        return AgentHealth(True, details=(f"plays {self._script.name} ({len(script.tasks)} tasks)",))


def _speaks(script: Path) -> bool:
    """Whether the script reports more than answers; a script that cannot be read is reported by the healthcheck."""
    try:
        return load_script(script).speaks
    except ScriptProblem:
        return False


def make(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> ScriptedAgent:
    if not given.script:
        fault = Fault(f"agents.{name}.script", "MISSING_REQUIRED_FIELD", "name the script file")
        raise InputError("ganger.toml", [fault])
    return ScriptedAgent(name, script=root / given.script, environ=environ, root=root, passed=given.env)
