"""The workers page is true: its script takes the tasks of a run that starts nobody, and what it shows is seen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task
from tests.patience import stretched, until

pytestmark = pytest.mark.whole

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "workers.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
SCRIPT = next(text for kind, text in BLOCKS if kind == "sh" and "worker next" in text)
SETTINGS = next(text for kind, text in BLOCKS if kind == "toml")


@pytest.fixture
def led(tmp_path: Path) -> Iterator[Path]:
    """A run of three tasks that wait for somebody to ask."""
    root = make_project(
        tmp_path, task("a"), task("b", depends_on=["a"]), task("c"), steps=[{"name": "there", "cmd": "test -s a.txt"}]
    )
    (root / "ganger.toml").write_text(f'[policy]\nheal_schedule = "off"\n{SETTINGS}')
    ganger("run", "--detach", cwd=root)
    yield root
    ganger("stop", cwd=root)
    until(lambda: not ganger("status", "--json", cwd=root).json["led"])


def shell(script: str, root: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script],
        cwd=root,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=stretched(60),
    )


def test_the_script_of_the_page_does_all_tasks(led: Path) -> None:
    """G02 Z09: a shell loop is a worker; what it did is in the log for people."""
    assert ganger("why", "a", cwd=led).out.startswith("a is ready and waits for a worker to ask for it.")
    done = shell(SCRIPT, led)
    state = json.loads((led / ".ganger/r1/state.json").read_text())
    assert {name: row["status"] for name, row in state["tasks"].items()} == dict.fromkeys("abc", "DONE"), done.stderr
    log = (led / ".ganger/r1/progress.md").read_text()
    assert all(f"Worker shell-1: started task {name}, attempt 1" in log for name in "abc")
    assert "Worker shell-1: a: writes the file, 50 %" in log and "verification passed for b" in log


def test_a_session_at_work_is_in_the_registry_and_can_be_ended(led: Path) -> None:
    """D11 G12: who works on what; its token is worth nothing afterwards."""
    shell("ganger worker next --worker ada", led)
    (row,) = ganger("workers", "--json", cwd=led).json["workers"]
    assert (row["worker"], row["task"], row["pulled"], row["state"]) == ("ada", "a", True, "EXECUTING")
    assert ganger("end", "a", cwd=led).code == 0
    until(lambda: ganger("why", "a", "--json", cwd=led).json["status"] == "BLOCKED")
    refused = shell("ganger worker heartbeat --worker ada", led)
    assert refused.returncode == 1 and "ATTEMPT_OVER" in refused.stderr
