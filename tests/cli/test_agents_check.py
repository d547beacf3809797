"""`ganger agents --check`: what is on this machine, which version, who is logged in, and what to do."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.cli import CliAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.table import PROGRAMS, make_agent
from ganger.app.compose import make_agents
from ganger.config import load_project
from tests.cli.cli_project import Answer, ganger, make_project

pytestmark = pytest.mark.whole

SCRIPT = """#!{python}
import pathlib, sys
with open({asked!r}, "a") as file:
    print(*sys.argv[1:], file=file)
print({said!r})
sys.exit({code})
"""
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY")


@dataclass(frozen=True)
class Machine:
    """A machine with only these programs, and a person's home on it."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("bin", "home", "project"):
            (self.root / name).mkdir()
        make_project(self.root / "project")

    def has(self, name: str, said: str = "", code: int = 0) -> Path:
        path = self.root / "bin" / name
        asked = str(self.root / f"{name}.asked")
        path.write_text(SCRIPT.format(python=sys.executable, asked=asked, said=said, code=code))
        path.chmod(0o755)
        return path

    def asked(self, name: str) -> list[str]:
        """How a program was called, each time."""
        record = self.root / f"{name}.asked"
        return record.read_text().splitlines() if record.exists() else []

    def configure(self, text: str) -> None:
        (self.root / "project" / "ganger.toml").write_text(text)

    def check(self, *words: str, env: Mapping[str, str] | None = None) -> Answer:
        home = {"HOME": str(self.root / "home"), "XDG_CACHE_HOME": str(self.root / "cache")}
        path = {"PATH": str(self.root / "bin")}
        return ganger("agents", "--check", *words, cwd=self.root / "project", env={**home, **path, **(env or {})})

    def program(self, kind: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.check("--json", env=env).json["programs"]
        return next(row for row in found if row["kind"] == kind)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in [*KEYS, *(name for name in os.environ if name.startswith(("ANTHROPIC_", "CODEX_", "GEMINI_")))]:
        monkeypatch.delenv(name, raising=False)
    return Machine(tmp_path)


def test_programs_on_path_are_found_with_their_versions(machine: Machine) -> None:
    """T24: none is configured; all are offered, in one order."""
    machine.has("gemini", "0.61.0")
    machine.has("claude", "2.1.325 (Claude Code)")
    shown = machine.check("--json").json
    assert [(row["kind"], row["version"]) for row in shown["programs"]] == [
        ("claude", "2.1.325 (Claude Code)"),
        ("gemini", "0.61.0"),
    ]
    assert {"command", "scripted", "claude", "codex", "acp", "pty"} <= set(shown["kinds"])


def test_nothing_on_path_is_said(machine: Machine) -> None:
    """T24: and is no fault."""
    answer = machine.check()
    assert answer.code == 0 and "no known agent program is on PATH" in answer.out


def test_a_key_or_a_login_file_is_a_login_and_neither_is_shown(machine: Machine) -> None:
    """T24: found without asking the model, said without the secret."""
    machine.has("claude", "2.1.325")
    assert machine.program("claude")["login"] is False
    assert machine.program("claude", {"ANTHROPIC_API_KEY": "canary-key"})["login"] is True
    (machine.root / "home" / ".claude").mkdir()
    (machine.root / "home" / ".claude" / ".credentials.json").write_text('{"token": "canary-login"}')
    assert machine.program("claude")["login"] is True
    answer = machine.check(env={"ANTHROPIC_API_KEY": "canary-key"})
    assert "logged in" in answer.out and "canary" not in answer.out + answer.err


def test_without_a_login_it_says_what_to_do(machine: Machine) -> None:
    """T24: in the words of that program."""
    machine.has("claude", "2.1.325")
    answer = machine.check()
    assert "not logged in" in answer.out and "set ANTHROPIC_API_KEY" in answer.out
    assert "set ANTHROPIC_API_KEY" in machine.program("claude")["details"][0]


def test_a_configured_agent_that_is_not_ready_is_the_exit_code(machine: Machine) -> None:
    """T24: a script can ask; programs that are only there do not matter."""
    machine.has("gemini", "0.61.0")
    assert machine.check().code == 0
    machine.configure('[agents.mine]\nkind = "claude"\n[roles.worker]\nagent = "mine"\n')
    answer = machine.check("--json")
    (mine,) = answer.json["agents"]
    assert answer.code == 1 and mine["ready"] is False
    assert "'claude' was not found; install it with" in mine["details"][0]


def test_a_program_of_another_generation_is_noted(machine: Machine) -> None:
    """T24: it may still work, so it is ready."""
    machine.has("claude", "9.0.1 (Claude Code)")
    row = machine.program("claude", {"ANTHROPIC_API_KEY": "k"})
    assert row["ready"] is True and any("another generation" in word for word in row["details"])


@pytest.mark.brief(1)
@pytest.mark.parametrize(("said", "code"), [("", 0), ("no number here", 0), ("7.1.2", 3)])
def test_a_program_that_tells_no_version_has_none(machine: Machine, said: str, code: int) -> None:
    """T24: unknown, and said so."""
    machine.has("claude", said, code)
    assert machine.program("claude")["version"] is None and "version unknown" in machine.check().out


def test_a_version_is_asked_once_for_each_file_of_a_program(machine: Machine) -> None:
    """T24: some take seconds to tell it; an update is noticed."""
    program = machine.has("claude", "2.1.325")
    for _ in range(2):
        assert machine.program("claude")["version"] == "2.1.325"
    assert machine.asked("claude") == ["--version"]
    program.unlink()
    machine.has("claude", "2.1.4000")
    assert machine.program("claude")["version"] == "2.1.4000"
    assert machine.asked("claude") == ["--version", "--version"]


def test_a_version_that_was_not_told_is_asked_again(machine: Machine) -> None:
    """T24: only answers are remembered."""
    machine.has("claude", "", 1)
    for _ in range(2):
        machine.program("claude")
    assert machine.asked("claude") == ["--version", "--version"]


@pytest.mark.parametrize("cache", ["{", "[1]", '{"x": 3}', "\x00"])
def test_a_broken_cache_of_versions_is_none(machine: Machine, cache: str) -> None:
    """T24: nobody has to mend it."""
    machine.has("claude", "2.1.325")
    place = machine.root / "cache" / "ganger"
    place.mkdir(parents=True)
    (place / "agent-versions.json").write_text(cache)
    assert machine.program("claude")["version"] == "2.1.325"


def test_the_version_is_asked_without_the_operators_keys(machine: Machine) -> None:
    """Asking who it is needs no secret."""
    path = machine.has("claude", "2.1.325")
    path.write_text(path.read_text().replace("print(*sys.argv[1:]", "print(*__import__('os').environ.values()"))
    machine.program("claude", {"ANTHROPIC_API_KEY": "canary-key", "OTHER_TOKEN": "canary-other"})
    assert "canary" not in " ".join(machine.asked("claude"))


def test_without_check_no_program_is_started(machine: Machine) -> None:
    """T24: `ganger agents` only reads the config."""
    machine.has("claude", "2.1.325")
    machine.configure('[agents.mine]\nkind = "claude"\n[roles.worker]\nagent = "mine"\n')
    answer = ganger("agents", cwd=machine.root / "project", env={"PATH": str(machine.root / "bin")})
    assert answer.code == 0 and "mine (claude)" in answer.out and "resume" in answer.out
    assert machine.asked("claude") == []


GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "agents.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_guide_names_the_keys_and_logins_that_count(tmp_path: Path, kind: str) -> None:
    """T24: what its table says of a kind is what the adapter looks for."""
    row = re.search(rf"^\| `{kind}` \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", GUIDE, re.MULTILINE)
    assert row is not None
    agent = make_agent(kind, AgentSettings(kind), tmp_path, {})
    assert isinstance(agent, CliAgent)
    keys, logins = re.findall(r"`(\w+)`", row[1]), re.findall(r"`([^`]+)`", row[2])
    assert keys and set(keys) <= {*agent.keys, *agent.variables} and set(logins) <= set(agent.logins)
    assert ("dollars" in row[3], "tokens" in row[3]) == (agent.capabilities.usd, agent.capabilities.tokens)


def test_the_settings_of_the_guide_are_settings(tmp_path: Path) -> None:
    """T24: every block is a config as it stands, but for the agent it speaks of."""
    found = re.findall(r"^```toml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert len(found) == 5
    for text in found:
        stub = "" if "[agents." in text else '[agents.mine]\nkind = "codex"\n'
        (tmp_path / "ganger.toml").write_text(stub + text)
        agents = make_agents(load_project(tmp_path, environ={}))
        assert all(agent.kind for agent in agents.values())
