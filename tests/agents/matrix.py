"""Which real agents are driven by whole runs, and what each of them needs to reach a played model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agents.installed import Installed, installed, pins

KEY = "sk-canary-9f3b6c1de07a4258b1c44e0f7a5d2c68d90be3714fa25c66"


@dataclass(frozen=True, slots=True)
class Row:
    """One agent: `kind` is its adapter, `program` its pin, `key` the variable with its key, `address` the one with the
    address of its model (empty: `base_url` says it), `path` what follows the server's own in that.

    `argv` are further words of its program, `more` further settings. `wish` is a call of the model that is refused to
    one that may only edit, `patience_sec` how long it tries by itself to reach its model. `stands_in`: no real program
    could be installed.
    """

    name: str
    kind: str
    program: str
    key: str
    model: str
    address: str = ""
    path: str = ""
    argv: tuple[str, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    wish: Mapping[str, object] = field(default_factory=lambda: {"run": "python3 -c 'print(1)'"})
    patience_sec: int = 60
    stands_in: bool = False

    @property
    def cheap(self) -> bool:
        return self.stands_in or (self.kind != "acp" and pins()[self.program].cheap)

    def installed(self) -> Installed:
        if self.stands_in:
            script = Path(__file__).with_name("cursor_stand_in.py")
            return Installed(self.name, "stand-in", (sys.executable, str(script)), os.environ["PATH"])
        return installed(self.program)

    def section(self, url: str, **more: object) -> str:
        """The agent's section of ganger.toml."""
        address = {} if self.stands_in or self.address else {"base_url": f"{url}{self.path}"}
        argv = [*self.installed().argv, *self.argv]
        given = {"kind": self.kind, "argv": argv, "model": self.model, **address, **self.more, **more}
        return "\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items())

    def environ(self, url: str, home: Path) -> dict[str, str]:
        """What a person who starts Ganger has set, and nothing of who runs the tests."""
        own = {"PATH": self.installed().path, "HOME": str(home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"}
        address = {self.address: f"{url}{self.path}"} if self.address else {}
        return {**own, self.key: KEY, **address}


_CHAT = "/v1"
# It runs every command in a sandbox of its own; what it refuses is to leave that.
_ESCALATES = {
    "tool": {
        "name": "exec_command",
        "input": {"cmd": "id", "sandbox_permissions": "require_escalated", "justification": "the task needs it"},
    }
}
# One that may only edit is not offered this, and the model asks for it nevertheless.
_NOT_OFFERED = {"tool": {"name": "run_shell_command", "input": {"command": "id", "is_background": False}}}

ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("claude", "claude", "claude", "ANTHROPIC_API_KEY", "claude-opus-5-5", "ANTHROPIC_BASE_URL"),
        Row("codex", "codex", "codex", "OPENAI_API_KEY", "gpt-6-codex", path=_CHAT, wish=_ESCALATES),
        Row("gemini", "gemini", "gemini", "GEMINI_API_KEY", "gemini-2.5-pro", "GOOGLE_GEMINI_BASE_URL",
            wish=_NOT_OFFERED),
        Row("copilot", "copilot", "copilot", "COPILOT_PROVIDER_API_KEY", "m1", "COPILOT_PROVIDER_BASE_URL", _CHAT),
        Row("opencode", "opencode", "opencode", "LOCAL_API_KEY", "local/m1", path=_CHAT,
            more={"key_env": "LOCAL_API_KEY"}),
        Row("qwen", "qwen", "qwen", "OPENAI_API_KEY", "m1", "OPENAI_BASE_URL", _CHAT,
            wish=_NOT_OFFERED, patience_sec=150),
        Row("acp-gemini", "acp", "gemini", "GEMINI_API_KEY", "gemini-2.5-pro", "GOOGLE_GEMINI_BASE_URL",
            more={"profile": "gemini"}),
        Row("acp-claude", "acp", "claude-acp", "ANTHROPIC_API_KEY", "claude-opus-5-5", "ANTHROPIC_BASE_URL",
            more={"profile": "claude-acp"}),
        Row("agent", "agent", "", "CURSOR_API_KEY", "auto", stands_in=True),
    )
}  # fmt: skip


def params(names: Iterable[str], always: Iterable[str], sweeps: Iterable[str] = ()) -> list[Any]:
    """Rows as parameters of a test; those of `sweeps` by `make sweeps`, what is in neither only by `make agents`."""
    marks: dict[str, tuple[Any, ...]] = {**dict.fromkeys(sweeps, (pytest.mark.slow,)), **dict.fromkeys(always, ())}
    return [pytest.param(ROWS[n], id=n, marks=marks.get(n, (pytest.mark.agents_full,))) for n in names]


# Two real programs and the stand-in are in every run of the tests, the others that are cheap in the sweeps.
USUAL = ("claude", "codex", "agent")
EVERY = params(ROWS, USUAL, [name for name, row in ROWS.items() if row.cheap])
