"""The `scripted` agent: plays behaviours from a file instead of calling a model; for demos, tests, trying policies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from ganger.agents.command import CommandAgent
from ganger.agents.script import ScriptProblem, load_script
from ganger.agents.settings import AgentSettings
from ganger.errors import Fault, InputError
from ganger.ports import AgentHealth


class ScriptedAgent(CommandAgent):
    kind = "scripted"

    def __init__(self, name: str, *, script: Path, environ: Mapping[str, str], root: Path) -> None:
        # Modules come from where Ganger is installed, never from the folder the agent works in.
        argv = (sys.executable, "-P", "-X", "utf8", "-m", "ganger.agents.play", str(script))
        super().__init__(name, argv=argv, prompt="stdin", passed=(), environ=environ, root=root)
        self._script = script

    def healthcheck(self) -> AgentHealth:
        try:
            script = load_script(self._script)
        except ScriptProblem as problem:
            return AgentHealth(False, details=(str(problem),))
        return AgentHealth(True, details=(f"plays {self._script.name} ({len(script.tasks)} tasks)",))


def make(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> ScriptedAgent:
    if not given.script:
        fault = Fault(f"agents.{name}.script", "MISSING_REQUIRED_FIELD", "name the script file")
        raise InputError("ganger.toml", [fault])
    return ScriptedAgent(name, script=root / given.script, environ=environ, root=root)
