"""Random sequences of clean, conflicting and bad changes through the merge queue, on real git."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import task

ROUNDS = int(os.environ.get("GANGER_TEST_ROUNDS", "4"))
# Puts its own line into some files, at the top, the middle or the end: two at the same place conflict.
AGENT = """
import json, os, pathlib, sys
task = os.environ["GANGER_TASK_ID"]
plan = json.load(open(sys.argv[1]))[task]
for name, where in plan["edits"]:
    path = pathlib.Path(name)
    lines = path.read_text().splitlines()
    at = {"top": 0, "middle": lines.index("--- middle"), "end": len(lines)}[where]
    lines.insert(at, task)
    path.write_text("".join(f"{line}\\n" for line in lines))
pathlib.Path("made").mkdir(exist_ok=True)
pathlib.Path("made", task).write_text(json.dumps([name for name, _ in plan["edits"]] + plan["bad"]))
print("<<<TASK_RESULT_V2>>>")
print(json.dumps({"contract_version": "2.0", "task_id": task, "status": "DONE", "summary": "edited"}))
print("<<<END_TASK_RESULT_V2>>>")
"""
# Every merged task's lines are there; nobody is bad, and no two of a pair that does not go together.
CHECK = """
import json, pathlib, sys
folder = pathlib.Path("made")
made = {p.name: json.loads(p.read_text()) for p in folder.glob("*")} if folder.is_dir() else {}
for task, files in made.items():
    for name in files:
        if name == "alone":
            sys.exit(f"AssertionError: {task} is bad")
        if name == "pair":
            if sum("pair" in others for others in made.values()) > 1:
                sys.exit("AssertionError: two of a pair")
        elif task not in pathlib.Path(name).read_text().splitlines():
            sys.exit(f"AssertionError: {task} is lost from {name}")
"""
FILES = ("one.txt", "two.txt", "three.txt")


def plan_of(chance: random.Random) -> dict[str, dict[str, object]]:
    plans = {}
    for number in range(chance.randint(5, 10)):
        places = [(name, chance.choice(("top", "middle", "end"))) for name in FILES if chance.random() < 0.5]
        bad = chance.choice([[], [], [], [], ["pair"], ["alone"]])
        plans[f"t{number}"] = {"edits": list(places), "bad": list(bad)}
    return plans


def made(root: Path, seed: int) -> GitProject:
    chance = random.Random(seed)
    plans = plan_of(chance)
    (root / "agent.py").write_text(AGENT)
    (root / "plans.json").write_text(json.dumps(plans))
    argv = json.dumps([sys.executable, str(root / "agent.py"), str(root / "plans.json")])
    project = GitProject(root / "project", [task(name) for name in plans], check=CHECK)
    project.agent = f'kind = "command"\nargv = {argv}'
    project.policy = f"concurrency = {chance.randint(2, 5)}\nmerge_retries = {chance.randint(0, 4)}"
    project.workspace = (
        f'merging = "{chance.choice(("queue", "queue", "level"))}"\nmerge_batch = {chance.randint(1, 6)}'
    )
    project.base = dict.fromkeys(FILES, "--- begin\n--- middle\n--- end\n")
    return project.make()


@pytest.mark.whole
@pytest.mark.brief(1)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_whatever_comes_the_head_is_green_and_holds_every_merged_change(tmp_path: Path, seed: int) -> None:
    """G03: all gates green on the head, every DONE task in it exactly once, nothing of any other."""
    project = made(tmp_path, seed)
    project.run()
    done = {name for name, now in project.state().tasks.items() if now.status is TaskStatus.DONE}
    assert {name.removeprefix("made/") for name in project.merged_files() if name.startswith("made/")} == done
    commits = project.in_store(
        "log", "--reverse", "--format=%H %P %(trailers:key=Ganger-Task,valueonly,separator=%x2C)",
        "refs/ganger/r1/base..ganger/r1",
    ).splitlines()  # fmt: skip
    rows = [line.split() for line in commits]
    assert all(len(row) == 3 for row in rows) and sorted(row[2] for row in rows) == sorted(done)
    assert [row[0] for row in rows] == [event.commit for event in project.find(ev.Merged) if event.commit]
    folder = tmp_path / "head"
    subprocess.run(["git", "clone", "-q", "-b", "ganger/r1", str(project.store), str(folder)], check=True)
    assert subprocess.run([sys.executable, "check.py"], cwd=folder, check=False).returncode == 0
    assert project.unchanged() and project.folders() == [] and project.folders("checks") == []
