"""A real Claude Code session, its model played on loopback: it stops too early, is kept going, reports, and may end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ganger.dev.server import ModelServer
from tests.agents.installed import installed
from tests.hooks.lead_stand_in import StandIn
from tests.patience import stretched

pytestmark = pytest.mark.whole

KEY = "sk-ganger-trial-5d1f0c7be2a94f6380aa41d7e6b3c958"
TAKES = {"run": "ganger worker next --worker ada"}
REPORTS = {"run": "ganger worker report --worker ada --status DONE --summary made"}
STOPS = {"text": "I stop here."}


def session(lead: StandIn, steps: Mapping[str, Any]) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The whole session, and what its model was told last in each request."""
    program = installed("claude")
    home = lead.project.with_name("home")
    home.mkdir()
    with ModelServer(steps) as model:
        env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{program.path}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        words = [*program.argv, "-p", "--output-format", "json", "--allowedTools", "Bash"]
        done = subprocess.run(
            words,
            input="Work.",
            cwd=lead.project,
            env=env,
            text=True,
            capture_output=True,
            timeout=stretched(100),
            check=False,
        )
        return done, [seen.conversation[-1].text for seen in model.requests if seen.step >= 0]


def project(folder: Path) -> Path:
    root = folder / "project"
    root.mkdir()
    line = [sys.executable, "-m", "ganger", "hooks", "install", "claude", "--project", str(root)]
    subprocess.run(line, check=True, capture_output=True)
    return root


def test_a_session_that_stops_without_a_report_goes_on_until_it_has_reported(tmp_path: Path) -> None:
    """H11: the claim carries the session's own name, which SessionStart gave it."""
    with StandIn(project(tmp_path)) as lead:
        done, told = session(lead, {"steps": [TAKES, STOPS], "resumed": [REPORTS, STOPS]})
        claim = json.loads((lead.run / "workers" / "ada.json").read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert lead.heard == ["next", "brief", "report"]
    assert sum("this session took task T1 (attempt 1) and has not reported" in text for text in told) == 1
    assert (claim["session"], claim["reported"]) == (json.loads(done.stdout)["session_id"], True)


@pytest.mark.parametrize("takes", [True, False])
def test_a_session_is_let_go_in_the_end_and_without_a_task_at_once(tmp_path: Path, takes: bool) -> None:
    """H11: three times at the most; a session that holds nothing is not even looked after."""
    with StandIn(project(tmp_path)) as lead:
        done, _ = session(lead, {"steps": [*([TAKES] if takes else []), STOPS], "resumed": [STOPS]})
    assert done.returncode == 0, done.stdout + done.stderr
    assert lead.heard == (["next", *["brief"] * 4] if takes else [])
