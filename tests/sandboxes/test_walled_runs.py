"""Whole runs within walls, as a person starts them: nothing set up, nothing switched off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import stretched
from tests.sandboxes.canaries import DUMPER, planted

pytestmark = pytest.mark.whole

RESULT = """
import json, os
open("made.txt", "w").write("made")
print("<<<TASK_RESULT_V2>>>")
task = os.environ["GANGER_TASK_ID"]
print(json.dumps({"contract_version": "2.0", "task_id": task, "status": "DONE", "summary": "dumped"}))
print("<<<END_TASK_RESULT_V2>>>")
"""
CONFIG = """
[policy]
heal_schedule = "off"
[agents.mine]
kind = "command"
argv = {argv}
[roles.worker]
agent = "mine"
[workspace]
mode = "{mode}"
[sandbox]
use = "require"
"""


def lay(project: Path, agent: Path, mode: str) -> None:
    project.mkdir()
    agent.write_text(DUMPER + RESULT)
    task = {"id": "a", "prompt_ref": "prompt.md", "depends_on": [], "timeout_sec": 60, "verify_profile": "check"}
    files = {
        "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": "r", "tasks": [task]}),
        "verify.json": json.dumps({"profiles": {"check": {"steps": [{"name": "made", "cmd": "test -f made.txt"}]}}}),
        "prompt.md": "Dump it.\n",
        "ganger.toml": CONFIG.format(argv=json.dumps([sys.executable, str(agent), str(project), "/tmp"]), mode=mode),
    }
    for name, text in files.items():
        (project / name).write_text(text)
    identity = ("-c", "user.name=S", "-c", "user.email=s@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "begin")):
        subprocess.run(["git", *identity, *words], cwd=project, check=True, capture_output=True)


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("mode", ["local-git", "direct"])
def test_no_canary_reaches_agent_log_prompt_or_state(tmp_path: Path, mode: str) -> None:
    """G05 D19: an agent that prints all it can see has nothing to print, and the run works all the same."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    lay(project, tmp_path / "agent.py", mode)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GANGER_")} | {"HOME": str(home)}
    with planted(home, project, project / ".ganger" / "other" / "ganger.db") as canaries:
        made = subprocess.run(
            [sys.executable, "-m", "ganger", "run"],
            cwd=project,
            env=environ | canaries.environment() | canaries.lead_environment(),
            capture_output=True,
            text=True,
            timeout=stretched(120),
            check=False,
        )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "bubblewrap" in made.stdout
    kept = "".join(p.read_text(errors="replace") for p in (project / ".ganger" / "r").rglob("*") if p.is_file())
    seen = set(canaries.seen_in(kept + made.stdout))
    # In direct mode the project is the workspace, and what lies in it is the agent's to read.
    assert seen <= ({"project-env"} if mode == "direct" else set())
