"""Models by role, and stronger ones for the tasks that need them: seen in how the agent's program is called."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task

pytestmark = pytest.mark.whole

PROGRAM = """#!{python}
import json, os, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.325"))
name = os.environ["GANGER_TASK_ID"]
with open(f"{calls}/{{name}}.json", "w") as file:
    json.dump(sys.argv[1:], file)
result = {{"contract_version": "2.0", "task_id": name, "status": "DONE", "summary": "did it"}}
block = f"<<<TASK_RESULT_V2>>>\\n{{json.dumps(result)}}\\n<<<END_TASK_RESULT_V2>>>"
print(json.dumps({{"type": "system", "subtype": "init", "session_id": name, "model": "m"}}))
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": block}}))
"""
CONFIG = """
[policy]
heal_schedule = "off"
concurrency = 4
[agents.mine]
kind = "claude"
model = "plain"
effort = "low"
args = ["--of-agent"]
[roles.worker]
agent = "mine"
"""
STRONG = 'strong_model = "strong"\nstrong_effort = "max"\n'
Calls = dict[str, list[str]]


@pytest.fixture
def called(tmp_path: Path) -> Callable[..., Calls]:
    """Runs these tasks and tells how the program was called for each."""

    def run(roles: str, **tasks: dict[str, object]) -> Calls:
        places = {name: tmp_path / name for name in ("bin", "calls", "project")}
        for place in places.values():
            place.mkdir()
        program = places["bin"] / "claude"
        program.write_text(PROGRAM.format(python=sys.executable, calls=places["calls"]))
        program.chmod(0o755)
        root = make_project(places["project"], *(task(name, metadata=meta) for name, meta in tasks.items()))
        (root / "ganger.toml").write_text(CONFIG + roles)
        path = f"{places['bin']}{os.pathsep}{os.environ['PATH']}"
        answer = ganger("run", cwd=root, env={"PATH": path, "ANTHROPIC_API_KEY": "key"})
        assert answer.code == 0, answer.err
        return {found.stem: json.loads(found.read_text()) for found in places["calls"].iterdir()}

    return run


def after(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1] if flag in words else ""


def test_a_role_has_its_own_model_effort_turns_and_arguments(called: Callable[..., Calls]) -> None:
    """W01 D16: what it does not say is the agent's; arguments are added."""
    other = '[roles.docser]\nagent = "mine"\nmodel = "cheap"\neffort = "high"\nmax_turns = 7\nargs = ["--of-role"]\n'
    calls = called(other, a={}, b={"role": "docser"})
    shown = {
        name: [after(words, flag) for flag in ("--model", "--effort", "--max-turns")] for name, words in calls.items()
    }
    assert shown == {"a": ["plain", "low", ""], "b": ["cheap", "high", "7"]}
    assert calls["a"][-1] == "--of-agent" and calls["b"][-2:] == ["--of-agent", "--of-role"]


def test_tasks_that_are_marked_get_the_stronger_model(called: Callable[..., Calls]) -> None:
    """D16: high complexity, the critical path, security, more than one repository."""
    marks: dict[str, dict[str, object]] = {
        "high": {"complexity": "high"},
        "critical": {"critical_path": True},
        "security": {"security": True},
        "repos": {"cross_repo": True},
    }
    others: dict[str, dict[str, object]] = {"low": {"complexity": "low"}, "no": {"security": False}, "none": {}}
    calls = called(STRONG, **marks, **others)
    models = {name: (after(words, "--model"), after(words, "--effort")) for name, words in calls.items()}
    assert models == {**dict.fromkeys(marks, ("strong", "max")), **dict.fromkeys(others, ("plain", "low"))}


def test_the_operator_says_which_marks_count(called: Callable[..., Calls]) -> None:
    """D16: strong_when."""
    roles = f'{STRONG}strong_when = ["security"]\n'
    calls = called(roles, a={"complexity": "high", "critical_path": True}, b={"complexity": "high", "security": True})
    assert {name: after(words, "--model") for name, words in calls.items()} == {"a": "plain", "b": "strong"}


def test_a_mark_without_a_stronger_model_changes_nothing(called: Callable[..., Calls]) -> None:
    """D16: and one of another role's is not borrowed."""
    roles = f'[roles.docser]\nagent = "mine"\n{STRONG}'
    calls = called(roles, a={"security": True}, b={"security": True, "role": "docser"})
    assert {name: after(words, "--model") for name, words in calls.items()} == {"a": "plain", "b": "strong"}


def test_a_stronger_effort_alone_keeps_the_roles_model(called: Callable[..., Calls]) -> None:
    """D16: each is overridden by itself."""
    calls = called('model = "of-role"\nstrong_effort = "max"\n', a={"security": True}, b={})
    shown = {name: (after(words, "--model"), after(words, "--effort")) for name, words in calls.items()}
    assert shown == {"a": ("of-role", "max"), "b": ("of-role", "low")}
