"""The page about interactive agents shows Claude Code in a terminal: its example drives the real program."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ganger.dev.server import ModelServer
from tests.agents.installed import installed
from tests.patience import stretched

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "interactive-agents.md"
REST = """
[policy]
heal_schedule = "off"
[roles.worker]
agent = "claude-screen"
[sandbox]
use = "require"
"""


def example() -> str:
    """As it stands on the page."""
    blocks: list[str] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if "[agents.claude-screen]" in block)


# Not in the default slice: a program drawn for people may lose a key on a machine that is very busy.
@pytest.mark.slow
@pytest.mark.needs("bwrap")
def test_the_example_of_the_page_drives_the_real_program_to_done(tmp_path: Path) -> None:
    """T25: trust and key are answered, the task is pasted, the block is read from the screen."""
    claude = installed("claude")
    root, home = tmp_path / "p", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    (home / ".claude.json").write_text('{"hasCompletedOnboarding": true, "theme": "dark"}')
    words = example().replace('argv = ["claude"', f"argv = [{json.dumps(claude.argv[0])}")
    (root / "ganger.toml").write_text(words + REST)
    task = {"id": "a", "prompt_ref": "p.md", "depends_on": [], "timeout_sec": 90, "verify_profile": "check"}
    (root / "manifest.json").write_text(json.dumps({"manifest_version": "2.0", "run_id": "r", "tasks": [task]}))
    (root / "p.md").write_text("Say hello.\n")
    (root / "verify.json").write_text('{"profiles": {"check": {"steps": [{"name": "t", "cmd": "true"}]}}}')
    with ModelServer([{"result": {}}]) as server:
        given = {"PATH": claude.path, "HOME": str(home), "LANG": "C.UTF-8", "ANTHROPIC_BASE_URL": server.url}
        given["ANTHROPIC_API_KEY"] = "sk-canary-5d1f0c7be2a94f6380aa41d7e6b3c958"
        call = [sys.executable, "-m", "ganger", "run"]
        done = subprocess.run(
            call, cwd=root, env=given, capture_output=True, text=True, timeout=stretched(200), check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
