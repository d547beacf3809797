"""The `pty` agent: an interactive terminal program, operated by a process of Ganger."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ganger.agents.cli import CliAgent
from ganger.agents.command import words_of
from ganger.agents.settings import AgentSettings, TerminalSettings
from ganger.agents.sign_lines import SignReader
from ganger.errors import Fault, InputError
from ganger.ports.agents import AgentHealth, AttemptContext, Capabilities, Reader


class PtyAgent(CliAgent):
    kind = "pty"
    capabilities = Capabilities(stdin_prompt=True, pty=True, interactive=True, stream=True)
    install_hint = "install it or correct argv"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        faults = list(_faults(name, given))
        if faults:
            raise InputError("ganger.toml", faults)
        super().__init__(name, given, root, environ)

    def _program(self) -> tuple[str, ...]:
        # Modules come from where Ganger is installed, never from the folder the agent works in.
        return (sys.executable, "-P", "-X", "utf8", "-m", "ganger.agents.pty.driver")

    def arguments(self, context: AttemptContext) -> list[str]:
        words = words_of(self.argv[1:], context, self.root)
        settings = json.dumps(dataclasses.asdict(self.given.terminal))
        return [settings, self._found() or self.argv[0], *words]

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        return {"TERM": "xterm-256color"}

    def reader(self) -> Reader:
        return SignReader()

    def healthcheck(self) -> AgentHealth:
        """Runs nothing: an interactive program may do anything with an argument."""
        found = self._found()
        if found is None:
            return AgentHealth(False, details=(f"program {self.argv[0]!r} was not found; {self.install_hint}",))
        return AgentHealth(True, details=(f"talks to {found} in a terminal",))


def _faults(name: str, given: AgentSettings) -> Iterator[Fault]:
    if not given.argv:
        yield Fault(f"agents.{name}.argv", "MISSING_REQUIRED_FIELD", "name the program to run")
    terminal: TerminalSettings = given.terminal
    patterns = {key: str(getattr(terminal, key)) for key in ("ready", "asks", "busy", "done")}
    for place, pattern in {**patterns, **{f"answers.{asked}": asked for asked in terminal.answers}}.items():
        try:
            re.compile(pattern)
        except re.error as error:
            message = f"not a regular expression: {error}"
            yield Fault(f"agents.{name}.terminal.{place}", "SCHEMA_VIOLATION", message)
