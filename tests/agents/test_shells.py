"""Keys and the commands a model runs: no agent's shell gets the key its program works with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from installed import installed
from matrix import ROWS, Row, params
from real import KEY, Trial

from ganger.agents.gemini import GeminiAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.shells import SHELL_FILE, shell_file, shell_settings
from ganger.agents.table import make_agent
from ganger.dev.server import ModelServer

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


@pytest.mark.parametrize("row", params(REAL, ["gemini"]))
def test_a_model_that_prints_its_environment_sees_no_key(row: Row, tmp_path: Path) -> None:
    """D19: neither does the log get to know it, nor what else the program keeps."""
    with ModelServer([{"run": "env; env > seen.txt"}, {"result": {}}]) as server:
        url = f"{server.url}{row.path}"
        environ = {row.key: KEY, **({row.address: url} if row.address else {})}
        settings = {"kind": row.kind, "model": row.model, **({} if row.address else {"base_url": url}), **row.more}
        trial = Trial(tmp_path, make_agent, installed(row.program), environ, settings)
        ran = trial.run("Print the environment.", walled=True)
    assert "PATH=" in (trial.workspace / "seen.txt").read_text(), ran.output
    assert trial.leaks(ran) == []
