"""Hooks of a real run: called for its events, once, also when it is led anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_project import CONFIG, ganger, make_project, task

pytestmark = pytest.mark.whole

NOTING = (
    "import json, sys; open(sys.argv[1], 'a').write(json.dumps([sys.argv[2:], json.load(sys.stdin)['run_id']]) + '\\n')"
)
NEVER = {"result": {"status": "FAILED", "failure_class": "real_bug", "summary": "it cannot be done"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    make_project(root, task("good"), task("bad"), script={"good": {"result": "DONE"}, "bad": NEVER})
    run = [sys.executable, "-c", NOTING, str(tmp_path / "noted"), "{event}", "{task}"]
    on = ["question", "finish", "failure"]
    (root / "ganger.toml").write_text(f"{CONFIG}\n[[hooks]]\non = {json.dumps(on)}\nrun = {json.dumps(run)}\n")
    return root


def noted(project: Path) -> list[Any]:
    return [json.loads(line) for line in (project.parent / "noted").read_text().splitlines()]


def test_a_run_tells_its_hooks_what_a_person_should_know(project: Path) -> None:
    """Z06: the failure as it happens, the end at the end, nothing of the task that went well."""
    ganger("run", cwd=project)
    found = noted(project)
    assert {run_id for _, run_id in found} == {"r1"}
    assert ["task_settled", "bad"] in [words for words, _ in found]
    assert found[-1][0] == ["run_finished", ""]
    assert not [words for words, _ in found if words[1] == "good"]
    assert not (project / ".ganger" / "r1" / "notices.log").exists()


def test_a_run_that_is_led_anew_tells_only_what_is_new(project: Path) -> None:
    """Z06: old events are not told again."""
    ganger("run", cwd=project)
    before = noted(project)
    ganger("run", cwd=project)
    after = noted(project)
    assert after[: len(before)] == before
    assert ["task_settled", "bad"] not in [words for words, _ in after[len(before) :]]


def test_hooks_are_tried_by_a_command(project: Path) -> None:
    """Z06: before anything is at stake."""
    answer = ganger("hooks", "test", "--json", cwd=project)
    assert (answer.code, answer.json["schema"], answer.json["ok"]) == (0, "ganger.hooks_test/1", True)
    assert noted(project) == [[["question_asked", "sample"], "trial"]]
    (project / "ganger.toml").write_text('[[hooks]]\non = ["finish"]\nrun = ["no-such-program"]\n')
    answer = ganger("hooks", "test", cwd=project)
    assert (answer.code, "hook no-such-program: cannot be started" in answer.out) == (1, True)
