"""What a worker asks for when it needs it: `ganger worker brief`, against a real lead on a real repository."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.git_runs import GitProject
from tests.engine.run_projects import leading, task, until
from tests.patience import stretched

pytestmark = pytest.mark.whole

PULL = 'kind = "pull"'


@dataclass
class Worker:
    """A session that took the task `b`, which builds on nothing and has `c` waiting for it; `a` is held by another."""

    project: GitProject
    prompt: str
    env: dict[str, str]

    def brief(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ganger", "worker", "brief", *words]
        return subprocess.run(
            command,
            cwd=self.project.root,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=stretched(30),
            check=False,
        )


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    made = [task("a", timeout_sec=600), task("b", timeout_sec=600, metadata={"component": "A001"}), task("c", "b")]
    project = GitProject(tmp_path_factory.mktemp("brief"), made, agent=PULL, policy="concurrency = 2").make()
    with leading(project) as process:
        key, place = project.folder.path / "worker.key", project.folder.path / "worker.json"
        until(lambda: place.exists() and key.exists(), beside=process)
        address = json.loads(place.read_text())["socket"]
        join = "j1." + hmac.new(bytes.fromhex(key.read_text()), b"join", hashlib.sha256).hexdigest()[:40]
        env = {**os.environ, "GANGER_REPORT": address, "GANGER_TOKEN": join, "GANGER_HOME": str(project.root / "home")}
        took = [took_one(project, env, name) for name in ("ada", "bob")]
        mine = next(one for one in took if one["task"]["id"] == "b")
        yield Worker(project, mine["task"]["prompt"], {**env, "GANGER_TOKEN": mine["token"]})


def took_one(project: GitProject, env: dict[str, str], name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "ganger", "worker", "next", "--worker", name, "--wait", "20", "--json"]
    made = subprocess.run(
        command, cwd=project.root, env=env, capture_output=True, text=True, timeout=stretched(60), check=True
    )
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def test_the_prompt_of_a_real_run_is_lean(worker: Worker) -> None:
    """D15 G22: the opening, the task, the command that judges it, the contract, and nothing else."""
    opening, _, rest = worker.prompt.partition("\n\n## What to do\n\n")
    assert opening.startswith("# Task b\n\nWork in this folder only") and "`ganger worker brief`" in opening
    assert rest.startswith("Do it.\n\n## What will be run\n\n")
    checks, _, contract = rest.partition("\n\n## ")[2].partition("\n\n## ")
    assert checks.endswith("\n\n- `true`") and contract.startswith("How to answer")


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("plan", ("component: A001", "builds on:\n- none", "wait for it:\n- c: PENDING")),
        ("repo", ("repository: the project itself", "run's own branch", "- a, WORKING")),
        ("task", ("Do it.",)),
    ],
)
def test_a_section_is_there_when_it_is_asked_for(worker: Worker, section: str, words: tuple[str, ...]) -> None:
    """D15: by the worker's own command."""
    answer = worker.brief(section)
    assert answer.returncode == 0, answer.stderr
    assert all(word in answer.stdout for word in words)


def test_before_a_push_there_is_nothing_to_say_about_ci(worker: Worker) -> None:
    """D15 D17: not even in the list."""
    listed = worker.brief()
    assert listed.returncode == 0 and "plan" in listed.stdout and "ci" not in listed.stdout.split()
    refused = worker.brief("ci")
    assert refused.returncode == 1 and "NO_SECTION" in refused.stderr
