"""Keys and the commands a model runs: no agent's shell gets the key its program works with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ganger.agents.cli import CliAgent
from ganger.agents.programs.copilot import CopilotAgent
from ganger.agents.programs.gemini import GeminiAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.shells import SHELL_FILE, shell_file, shell_settings
from ganger.agents.table import make_agent
from ganger.dev.server import ModelServer
from tests.agents.installed import installed
from tests.agents.matrix import ROWS, Row, params
from tests.agents.real import KEY, Trial

REAL = [name for name, row in ROWS.items() if not row.stands_in]
LOOK = 'echo "[$GEMINI_API_KEY$OWN_KEY] [$OTHER] [$BASH_ENV]"'


def told(home: Path, **more: str) -> str:
    """What a command finds in its environment."""
    home.mkdir()
    agent = GeminiAgent("g", AgentSettings(kind="gemini", key_env="OWN_KEY"), home, {})
    (home / SHELL_FILE).write_bytes(shell_file(agent, "INSIDE")[SHELL_FILE])
    given = {"GEMINI_API_KEY": KEY, "OWN_KEY": KEY, "OTHER": "x", **shell_settings(home, "INSIDE"), **more}
    env = {"PATH": "/usr/bin:/bin", **given}
    return subprocess.run(["bash", "-c", LOOK], env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["home", "a $HOME `id` \"b\" \\ 'c'"])
def test_a_command_gets_neither_the_key_nor_what_withholds_it(tmp_path: Path, name: str) -> None:
    """D19: the rest of its environment stays; wherever the project lies."""
    assert told(tmp_path / name, INSIDE="1") == "[] [x] []\n"


def test_a_script_that_starts_the_program_still_has_the_key(tmp_path: Path) -> None:
    """T24: many programs are started by a shell script of their installer's."""
    assert f"[{KEY}{KEY}] [x]" in told(tmp_path / "home")


# What a person has in the environment for other things than this agent.
OTHERS = {
    "GITHUB_TOKEN": "planted-1f3b6c1de07a4258",
    "GH_TOKEN": "planted-2f3b6c1de07a4258",
    "STRIPE": "planted-3f3b6c1de07a4258",
    "MYAPP_LICENSE": "planted-4f3b6c1de07a4258",
    "XAI_API_KEY": "planted-5f3b6c1de07a4258",
    "AWS_PROFILE": "planted-6f3b6c1de07a4258",
    "GOOGLE_APPLICATION_CREDENTIALS": "/planted-7f3b6c1de07a4258.json",
}


@pytest.mark.whole
@pytest.mark.parametrize("row", params(REAL, ["claude", "codex", "gemini", "copilot"]))
def test_a_model_that_prints_its_environment_sees_no_key(row: Row, tmp_path: Path) -> None:
    """D19: not its own program's, and none of the operator's that nobody named; the log does not get to know it."""
    with ModelServer([{"run": "env; env > seen.txt"}, {"result": {}}]) as server:
        url = f"{server.url}{row.path}"
        environ = {**OTHERS, row.key: KEY, **({row.address: url} if row.address else {})}
        settings = {"kind": row.kind, "model": row.model, **({} if row.address else {"base_url": url}), **row.more}
        trial = Trial(tmp_path, make_agent, installed(row.program), environ, settings)
        ran = trial.run("Print the environment.", walled=True)
    seen = (trial.workspace / "seen.txt").read_text()
    assert "PATH=" in seen and "planted-" not in seen, ran.output
    assert trial.leaks(ran) == []


def test_github_tokens_are_copilots_only_by_name(tmp_path: Path) -> None:
    """D19: its own login may be named; a provider of the operator's own needs nothing of GitHub."""
    theirs = {"GITHUB_TOKEN": "theirs-1234", "GH_TOKEN": "theirs-5678", "COPILOT_GITHUB_TOKEN": "its-own-1234"}
    made = [
        ({}, theirs, {"COPILOT_GITHUB_TOKEN": "its-own-1234"}),
        ({"key_env": "GITHUB_TOKEN"}, theirs, {"COPILOT_GITHUB_TOKEN": "theirs-1234"}),
        ({"env": ("GH_TOKEN",)}, theirs, {"COPILOT_GITHUB_TOKEN": "its-own-1234", "GH_TOKEN": "theirs-5678"}),
        ({"base_url": "http://gate"}, theirs, {}),
        ({"base_url": "http://gate"}, {**theirs, "COPILOT_PROVIDER_API_KEY": "k-12345678"},
         {"COPILOT_PROVIDER_API_KEY": "k-12345678"}),
    ]  # fmt: skip
    for more, environ, expected in made:
        settings = AgentSettings(kind="copilot", **more)  # type: ignore[arg-type]
        assert CopilotAgent("c", settings, tmp_path, environ).secrets() == expected


@pytest.mark.parametrize(
    ("kind", "more", "environ", "expected"),
    [
        ("claude", {}, ["ANTHROPIC_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"], ["ANTHROPIC_API_KEY"]),
        ("claude", {}, ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"], ["ANTHROPIC_AUTH_TOKEN"]),
        ("claude", {}, ["CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"],
         ["AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "CLAUDE_CODE_USE_BEDROCK"]),
        ("codex", {}, ["CODEX_API_KEY", "OPENAI_API_KEY"], ["CODEX_API_KEY"]),
        ("gemini", {}, ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"], ["GEMINI_API_KEY"]),
        ("opencode", {"model": "openai/m"}, ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "XAI_API_KEY"], ["OPENAI_API_KEY"]),
        ("opencode", {}, ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "XAI_API_KEY"], ["ANTHROPIC_API_KEY"]),
        ("opencode", {"model": "own/m", "base_url": "http://gate"}, ["ANTHROPIC_API_KEY"], []),
        ("qwen", {}, ["OPENAI_API_KEY", "DASHSCOPE_API_KEY"], ["OPENAI_API_KEY"]),
        ("qwen", {"key_env": "OWN"}, ["OPENAI_API_KEY"], []),
    ],
)  # fmt: skip
def test_one_key_is_handed_on_and_only_the_one_that_is_needed(
    kind: str, more: dict[str, object], environ: list[str], expected: list[str], tmp_path: Path
) -> None:
    """D19: whatever else the operator has."""
    made = make_agent("a", AgentSettings(kind=kind, **more), tmp_path, dict.fromkeys(environ, "v-12345678"))  # type: ignore[arg-type]
    assert isinstance(made, CliAgent)
    assert sorted(made.passed) == sorted(expected)
