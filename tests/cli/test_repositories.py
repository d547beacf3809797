"""Several repositories on the command line: what is checked, in which order they come, and how one is freed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ganger.cli.shell.main import run_command
from tests.cli.cli_project import CONFIG, Answer, ganger, make_project, task

pytestmark = pytest.mark.whole

Here = Callable[..., Answer]
GIT = '[workspace]\nmode = "local-git"\n'
REPOS = """
[repos.core]
path = "../core"
[repos.lib]
path = "../lib"
depends_on = ["core"]
[repos.own]
path = "../own"
locks = "shared"
"""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    return partial(_here, capsys, tmp_path)


def _here(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> Answer:
    code = run_command([*words, "--project", str(root)])
    said = capsys.readouterr()
    return Answer(code, said.out, said.err)


def project(root: Path, config: str, *where: str) -> None:
    tasks = [task(f"t{n}", metadata={"repo": repo} if repo else {}) for n, repo in enumerate(where)]
    make_project(root, *tasks)
    (root / "ganger.toml").write_text(CONFIG + config)


def with_repositories(root: Path) -> Path:
    """The project, and beside it the repositories that the settings name; each with a commit."""
    for name in ("project", "core", "lib", "own"):
        subprocess.run(["git", "init", "-q", root / name], check=True)
        words = ("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first")
        subprocess.run(["git", "-C", root / name, *words], check=True)
    return root / "project"


FAULTS = {
    "a task somewhere unknown": (GIT + REPOS, ("nope",), [("tasks[0].metadata.repo", "UNKNOWN_REPO")]),
    "a name that means nothing here": (GIT, ("core",), []),
    "direct mode": (REPOS, ("core",), [("ganger.toml:repos", "REPOS_NEED_GIT")]),
    "an unknown dependency": (
        GIT + REPOS.replace('["core"]', '["cor"]'),
        ("core",),
        [("ganger.toml:repos.lib.depends_on[0]", "UNKNOWN_REPO")],
    ),
    "a circle": (
        GIT + REPOS.replace("[repos.lib]", 'depends_on = ["lib"]\n[repos.lib]'),
        ("core",),
        [("ganger.toml:repos.core.depends_on[0]", "REPO_CYCLE")],
    ),
    "sound": (GIT + REPOS, ("core", "lib", ""), []),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_repositories_are_named_before_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """D08 W02: where, and with a code."""
    config, where, expected = FAULTS[case]
    here = with_repositories(tmp_path)
    project(here, config, *where)
    found = json.loads(_here(capsys, here, "validate", "--json").out)["errors"]
    assert [(fault["path"], fault["code"]) for fault in found] == expected


def test_the_plan_shows_phases_and_goes_by_them(tmp_path: Path, call: Here) -> None:
    """D10: roots first."""
    project(tmp_path, GIT + REPOS, "lib", "core", "own")
    plan = json.loads(call("plan", "--json").out)
    assert plan["phases"] == [["core", "own"], ["lib"]] and plan["order"] == ["t1", "t2", "t0"]
    assert "phase 1: repositories lib" in call("plan").out


def test_without_repositories_the_plan_has_no_phases(tmp_path: Path, call: Here) -> None:
    """D10"""
    project(tmp_path, "", "", "")
    assert "phases" not in json.loads(call("plan", "--json").out)


def test_unlock_asks_for_a_reason(tmp_path: Path, call: Here) -> None:
    """D09: none given is no use of the command."""
    project(tmp_path, GIT + REPOS, "core")
    assert call("unlock", "core").code == 64


def repository(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "readme").write_text("here\n")
    who = ["-c", "user.name=n", "-c", "user.email=n@localhost"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def test_a_run_that_a_lock_ended_goes_on_when_a_person_frees_it(tmp_path: Path) -> None:
    """D09 G10 G12: the holder failed, what builds on it waits; the reason is kept with the run."""
    root = tmp_path / "project"
    root.mkdir()
    project(root, GIT + REPOS, "core", "lib")
    done = {"files": {"new.txt": "x"}, "result": {"status": "DONE", "summary": "did it"}}
    (root / "script.json").write_text(json.dumps({"tasks": {"t0": [{"crash": True}], "t1": [done]}}))
    for folder in (root, tmp_path / "core", tmp_path / "lib", tmp_path / "own"):
        repository(folder)
    assert "held by t0 (" in ganger("run", cwd=root).out + ganger("why", "t1", cwd=root).out
    assert ganger("unlock", "core", "--why", "reverted by hand", cwd=root).code == 0
    ganger("run", cwd=root)
    events = ganger("events", "--json", cwd=root).lines
    assert next(e for e in events if e["type"] == "repo_unlocked")["why"] == "reverted by hand"
    assert [row["status"] for row in ganger("tasks", "--json", cwd=root).json["tasks"] if row["id"] == "t1"] == ["DONE"]
