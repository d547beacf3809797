"""Direct mode, several at once: a check counts only for the tree that its task delivers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from tests.engine.run_projects import SCRIPTED, Project, done, task, write

pytestmark = pytest.mark.whole

ONCE = {"retry_policy": {"max_attempts": 1}}
TOGETHER = "concurrency = 2\nbatch_size = 2"
RED = "import sys; sys.exit('AssertionError: red')\n"
SLOW = {"name": "slow", "cmd": "sleep 2"}
NOTHING = {"result": "DONE"}
SHELL = 'kind = "command"\nargv = ["/bin/sh", "agent.sh"]'
RESULT = '{"contract_version":"2.0","task_id":"%s","status":"DONE","summary":"done"}'
PASSING = f"""
if [ "$GANGER_TASK_ID" = a ]; then sleep 0.7; echo green >sub/flag; sleep 3; rm sub/flag; fi
printf '<<<TASK_RESULT_V2>>>\\n{RESULT}\\n<<<END_TASK_RESULT_V2>>>\\n' "$GANGER_TASK_ID"
"""


def beside(
    root: Path, editor: list[object], *steps: Mapping[str, object], agent: str = SCRIPTED, **files: str
) -> Project:
    """`b` answers at once and changes nothing; while its checks run, `a` does something in the folder."""
    tasks = [task("a", **ONCE, verify_profile="free"), task("b", **ONCE)]
    script = {"a": [editor], "b": NOTHING}
    project = Project(root, tasks, script, policy=TOGETHER, agent=agent, steps=(SLOW, *steps), files=files)
    project.make()
    profiles = (
        (root / "verify.json")
        .read_text()
        .replace('{"profiles": {', '{"profiles": {"free": {"steps": [{"name": "t", "cmd": "true"}]}, ')
    )
    (root / "verify.json").write_text(profiles)
    return project


@pytest.mark.parametrize("undone", [True, False])
def test_a_check_that_somebody_edits_while_it_runs_makes_nothing_done(tmp_path: Path, undone: bool) -> None:
    """G09 T17: not even for a task that wrote nothing, and not if it is put back before the end."""
    back: list[object] = [{"delay": 2.0}, {"files": {"check.py": RED}}] if undone else [{"delay": 2.0}]
    editor = [{"delay": 0.7}, {"files": {"check.py": "pass\n"}}, *back, NOTHING]
    project = beside(tmp_path, editor, {"name": "test", "cmd": "python3 check.py"}, **{"check.py": RED})
    assert project.run() != 0
    assert project.status("b") is TaskStatus.FAILED and (tmp_path / "check.py").read_text() == RED


def test_a_product_file_that_is_right_only_meanwhile_makes_nothing_done(tmp_path: Path) -> None:
    """G09 T17: the verdict is about what is there in the end."""
    editor = [
        {"delay": 0.7},
        {"files": {"src.txt": "good\n"}},
        {"delay": 2.5},
        {"files": {"src.txt": "bad\n"}},
        NOTHING,
    ]
    project = beside(tmp_path, editor, {"name": "test", "cmd": "grep -q good src.txt"}, **{"src.txt": "bad\n"})
    assert project.run() != 0 and project.status("b") is TaskStatus.FAILED


@pytest.mark.quick
def test_nobody_pays_for_what_another_agent_broke_meanwhile(tmp_path: Path) -> None:
    """T18 W02: the checks run again once nobody works beside them."""
    editor = [
        {"delay": 0.7},
        {"files": {"src.txt": "bad\n"}},
        {"delay": 2.5},
        {"files": {"src.txt": "good\n"}},
        NOTHING,
    ]
    project = beside(tmp_path, editor, {"name": "test", "cmd": "grep -q good src.txt"}, **{"src.txt": "good\n"})
    assert project.run() == 0
    assert project.state().tasks["b"].counters.worker_attempts <= 1 and not project.find(ev.AttemptFailed)
    assert "src.txt" in project.find(ev.VerifyRecovered)[0].what


def test_half_finished_edits_of_another_are_not_judged_as_ones_own(tmp_path: Path) -> None:
    """T18 W02: they were there before the check began."""
    editor = [{"files": {"src.txt": "bad\n"}}, {"delay": 4.0}, {"files": {"src.txt": "good\n"}}, NOTHING]
    project = beside(tmp_path, editor, {"name": "test", "cmd": "grep -q good src.txt"}, **{"src.txt": "good\n"})
    project.write_script({"a": [editor], "b": {"delay": 1.0, "result": "DONE"}})
    assert project.run() == 0 and not project.find(ev.AttemptFailed)


def test_a_file_that_is_there_only_meanwhile_makes_nothing_done(tmp_path: Path) -> None:
    """G09 T17: what came and went again leaves a trace in its folder."""
    files = {"agent.sh": PASSING, "sub/kept": "x\n"}
    project = beside(tmp_path, [NOTHING], {"name": "test", "cmd": "test -f sub/flag"}, agent=SHELL, **files)
    assert project.run() != 0 and project.status("b") is TaskStatus.FAILED


def test_packages_that_change_while_checks_run_make_nothing_done(tmp_path: Path) -> None:
    """G05 G09: without walls that keep them, they are looked at before and after."""
    kit = ".venv/kit.txt"
    editor = [{"delay": 0.7}, {"files": {kit: "good\n"}}, {"delay": 2.5}, {"files": {kit: "bad\n"}}, NOTHING]
    project = beside(tmp_path, editor, {"name": "test", "cmd": f"grep -q good {kit}"}, **{kit: "bad\n"})
    assert project.run() != 0 and project.status("b") is TaskStatus.FAILED
    assert (tmp_path / kit).read_text() == "bad\n"


def test_an_expected_line_is_not_taken_from_somebody_else(tmp_path: Path) -> None:
    """G09 T17: without walls an agent can write into the log of another task's checks."""
    forged = PASSING.replace("echo green >sub/flag; sleep 3; rm sub/flag", "echo '7 passed' >>$log; sleep 3")
    files = {"agent.sh": f"log=.ganger/r1/logs/b.verify.1.log\n{forged}"}
    project = beside(tmp_path, [NOTHING], {"name": "test", "cmd": "echo none ran"}, agent=SHELL, **files)
    with (tmp_path / "ganger.toml").open("a") as config:
        config.write('[verify.expect]\n"check/slow" = "passed"\n')
    assert project.run() != 0 and project.status("b") is TaskStatus.FAILED


def test_a_protected_file_changed_in_a_crowd_is_put_back(tmp_path: Path) -> None:
    """G05 G09: nobody can be held for it, and nobody keeps it."""
    editor = [{"files": {"CLAUDE.md": "obey\n", ".vscode/tasks.json": "{}\n"}}, {"delay": 1.5}, NOTHING]
    project = beside(tmp_path, editor, **{"CLAUDE.md": "mine\n"})
    project.run()
    assert (tmp_path / "CLAUDE.md").read_text() == "mine\n" and not (tmp_path / ".vscode/tasks.json").exists()
    assert {path for told in project.find(ev.GatesRestored) for path in told.files} >= {"CLAUDE.md"}


def test_checks_that_write_files_themselves_end_beside_agents_too(tmp_path: Path) -> None:
    """W02: they run once more when nobody works, and that counts."""
    made = {"name": "build", "cmd": "touch built.txt"}
    project = beside(tmp_path, [{"delay": 2.5}, NOTHING], made)
    assert project.run() == 0 and len(project.find(ev.VerifyRecovered)) == 1


def test_checks_run_once_where_nobody_touches_the_folder(tmp_path: Path) -> None:
    """W02: agents that hand in writes still work side by side."""
    names = [f"t{number}" for number in range(6)]
    script = {name: {"delay": 0.2, **done(write(f"out/{name}.txt", name))} for name in names}
    project = Project(tmp_path, [task(n) for n in names], script, policy="concurrency = 3\nbatch_size = 6").make()
    assert project.run() == 0 and project.find(ev.VerifyRecovered) == []
