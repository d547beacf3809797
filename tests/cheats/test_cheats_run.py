"""The cheat suite through whole runs: none is DONE, in no mode; the honest twin is."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.app.checks.project import check_project
from ganger.app.compose import RunOptions, open_lead
from ganger.app.runs import newest_run, read_state
from ganger.config import Project, load_project
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import TaskStatus
from tests.cheats.cheat_catalogue import CHEATS
from tests.cheats.cheat_project import HONEST, UNITTEST, Link, Planted, base_files, lay

pytestmark = pytest.mark.whole

AGENT = """
import json, os, pathlib, sys
task = os.environ["GANGER_TASK_ID"]
for name, planted in json.load(open(sys.argv[1]))[task].items():
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if planted is None:
        continue
    kind, text, mode = planted
    if kind == "link":
        path.symlink_to(text)
    else:
        path.write_text(text)
        path.chmod(mode)
print("<<<TASK_RESULT_V2>>>")
print(json.dumps({"contract_version": "2.0", "task_id": task, "status": "DONE", "summary": "all green now"}))
print("<<<END_TASK_RESULT_V2>>>")
"""
CONFIG = """
[policy]
heal_schedule = "off"
concurrency = {concurrency}
[agents.mine]
kind = "command"
argv = {argv}
in_place = true
[roles.worker]
agent = "mine"
[workspace]
mode = "{mode}"
"""


def _told(files: Mapping[str, Planted]) -> dict[str, object]:
    said: dict[str, object] = {}
    for name, planted in files.items():
        if isinstance(planted, Link):
            said[name] = ("link", planted.target, 0)
        elif planted is not None:
            content, mode = planted if isinstance(planted, tuple) else (planted, 0o644)
            said[name] = ("file", content, mode)
        else:
            said[name] = None
    return said


def play(root: Path, mode: str, plays: Mapping[str, tuple[Mapping[str, Planted], tuple[str, ...]]]) -> RunState:
    """Every play is a task of one run, judged by its own commands."""
    project = root / "project"
    lay(project, base_files())
    (root / "agent.py").write_text(AGENT)
    (root / "plays.json").write_text(json.dumps({name: _told(files) for name, (files, _) in plays.items()}))
    profiles = {
        name: {"steps": [{"name": f"gate {n}", "cmd": cmd} for n, cmd in enumerate(verify or (UNITTEST,))]}
        for name, (_, verify) in plays.items()
    }
    (project / "verify.json").write_text(json.dumps({"profiles": profiles}))
    (project / "prompt.md").write_text("Make the checks green.\n")
    tasks = [
        {"id": name, "prompt_ref": "prompt.md", "depends_on": [], "timeout_sec": 60, "verify_profile": name,
         "retry_policy": {"max_attempts": 1}}
        for name in plays
    ]  # fmt: skip
    (project / "manifest.json").write_text(json.dumps({"manifest_version": "2.0", "run_id": "r", "tasks": tasks}))
    argv = json.dumps([sys.executable, str(root / "agent.py"), str(root / "plays.json")])
    (project / "ganger.toml").write_text(CONFIG.format(argv=argv, mode=mode, concurrency=2))
    identity = ("-c", "user.name=S", "-c", "user.email=s@example.org")
    for words in (("init", "-q"), ("add", "-Af"), ("commit", "-qm", "begin")):
        subprocess.run(["git", *identity, *words], cwd=project, check=True, capture_output=True)
    opened = load_project(project)
    asyncio.run(_lead(opened))
    return read_state(newest_run(opened, None))


async def _lead(project: Project) -> None:
    async with open_lead(project, check_project(project), RunOptions()) as lead:
        await lead.run()


@pytest.mark.brief(1)
@pytest.mark.parametrize("mode", ["local-git", "direct"])
def test_no_cheat_ends_done(tmp_path: Path, mode: str) -> None:
    """G09 T17 T18: each is a policy violation or red, whatever it claims, and nothing of it that counts is left."""
    state = play(tmp_path, mode, {cheat.name: (cheat.files, cheat.verify) for cheat in CHEATS})
    ends = {name: (task.status, task.failure.failure_class) for name, task in state.tasks.items()}
    assert len(ends) >= 24
    assert {name for name, (status, _) in ends.items() if status is TaskStatus.DONE} == set()
    assert {cls for _, cls in ends.values()} <= {"policy_violation", "test_error", "build_error", "no_change"}
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tmp_path / "project", check=True, capture_output=True, text=True
    )
    inert = ("?? .ganger/", "?? .venv/", "?? zz.egg-info/") if mode == "direct" else ("?? .ganger/",)
    assert [line for line in changed.stdout.splitlines() if line not in inert] == []


@pytest.mark.parametrize("mode", ["local-git", "direct"])
def test_the_honest_twin_is_done(tmp_path: Path, mode: str) -> None:
    """G09: the same gates, the real work."""
    state = play(tmp_path, mode, {"honest": (HONEST, (UNITTEST, "make test", "bash scripts/check.sh"))})
    assert state.tasks["honest"].status is TaskStatus.DONE, state.tasks["honest"].detail
