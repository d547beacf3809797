"""Plays one change as the only task of a real run, or lays it out to be looked at with the plain command."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ganger.app.checks.project import check_project
from ganger.app.compose import RunOptions, open_lead
from ganger.app.runs import newest_run, read_state
from ganger.config import Project, load_project
from ganger.core.model.task_state import TaskState
from tests.cheats.cheat_project import Link, lay
from tests.cheats.runner_catalogue import PROJECTS
from tests.cheats.runner_plays import Play
from tests.patience import stretched

AGENT = """
import json, os, pathlib, sys
for name, planted in json.load(open(sys.argv[1])).items():
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
print(json.dumps({"contract_version": "2.0", "task_id": "play", "status": "DONE", "summary": "all green now"}))
print("<<<END_TASK_RESULT_V2>>>")
"""
CONFIG = """
[policy]
heal_schedule = "off"
[agents.mine]
kind = "command"
argv = {argv}
in_place = true
[roles.worker]
agent = "mine"
[workspace]
mode = "{mode}"
"""


def path_with_toolchains() -> str:
    """PATH with the compilers themselves before rustup's programs, which look for them in the home of the person."""
    toolchains = Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup", "toolchains")
    return os.pathsep.join([*map(str, sorted(toolchains.glob("*/bin"))[:1]), os.environ["PATH"]])


def laid_out(play: Play, folder: Path, *, changed: bool) -> Path:
    """The project of the play, with or without its change."""
    lay(folder, {**PROJECTS[play.project].files, **play.base, **(play.files if changed else {})})
    return folder


def verify_of(play: Play) -> str:
    return play.verify or PROJECTS[play.project].verify


def is_green(play: Play, folder: Path) -> bool:
    """The command as a check runs it, without anything of Ganger around it."""
    return ran(folder, verify_of(play), play.env).returncode == 0


def answer(play: Play, folder: Path) -> str:
    """What the product says where no test runs it."""
    return ran(folder, play.probe or PROJECTS[play.project].probe).stdout.strip()


def ran(folder: Path, command: str, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONDONTWRITEBYTECODE": "1", **(more or {})}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=stretched(100), check=False
    )


def run(play: Play, root: Path, mode: str) -> TaskState:
    """A whole run in which an agent makes this change and claims success."""
    project = laid_out(play, root / "project", changed=False)
    (root / "agent.py").write_text(AGENT)
    (root / "play.json").write_text(json.dumps(_told(play)))
    steps = [{"name": "test", "cmd": verify_of(play), "timeout_sec": 100}]
    (project / "verify.json").write_text(json.dumps({"profiles": {"check": {"steps": steps}}}))
    (project / "prompt.md").write_text("Make the checks green.\n")
    task = {"id": "play", "prompt_ref": "prompt.md", "depends_on": [], "timeout_sec": 60, "verify_profile": "check",
            "retry_policy": {"max_attempts": 1}, "metadata": dict(play.metadata)}  # fmt: skip
    (project / "manifest.json").write_text(json.dumps({"manifest_version": "2.0", "run_id": "r", "tasks": [task]}))
    argv = json.dumps([sys.executable, str(root / "agent.py"), str(root / "play.json")])
    (project / "ganger.toml").write_text(CONFIG.format(argv=argv, mode=mode) + play.config)
    identity = ("-c", "user.name=S", "-c", "user.email=s@example.org")
    for words in (("init", "-q"), ("add", "-Af"), ("commit", "-qm", "begin")):
        subprocess.run(["git", *identity, *words], cwd=project, check=True, capture_output=True)
    opened = load_project(project)
    asyncio.run(_lead(opened))
    return read_state(newest_run(opened, None)).tasks["play"]


async def _lead(project: Project) -> None:
    async with open_lead(project, check_project(project), RunOptions()) as lead:
        await lead.run()


def _told(play: Play) -> dict[str, object]:
    said: dict[str, object] = {}
    for name, planted in play.files.items():
        if isinstance(planted, Link):
            said[name] = ("link", planted.target, 0)
        elif planted is not None:
            content, mode = planted if isinstance(planted, tuple) else (planted, 0o644)
            said[name] = ("file", content, mode)
        else:
            said[name] = None
    return said
