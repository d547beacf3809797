"""A green check counts only when the tests that ran before have run again and planted ones were seen to fail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import FailureClass, TaskStatus
from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import Project, task

pytestmark = pytest.mark.whole

WRONG = "def total(cents):\n    return sum(cents) // 100 * 100\n"
RIGHT = "def total(cents):\n    return sum(cents)\n"
TESTS = """import unittest
from money import total


class TotalTest(unittest.TestCase):
    def test_cents(self):
        self.assertEqual(total([199, 250]), 449)

    def test_nothing(self):
        self.assertEqual(total([]), 0)
"""
FEWER = TESTS.partition("    def test_nothing")[0]
UNITTEST = ({"name": "test", "cmd": "python3 -m unittest -q test_money"},)
# Fails once, by a mark that a run leaves outside the checkout, and only where somebody asks for it.
FLAKY = """
    def test_sometimes(self):
        import pathlib
        seen = pathlib.Path({mark!r})
        if pathlib.Path("armed.txt").exists() and not seen.exists():
            seen.touch()
            self.fail("not this time")
"""
ENDS_THE_RUN = "import posix\ngetattr(posix, '_e' + 'xit')(0)\n"
CHANGES_THE_RUNNER = "_case = __import__('unit' + 'test').TestCase\n_case.assertEqual = lambda *_: None\n"
SKIPS_THE_TEST = "def total(_):\n    raise __import__('unit' + 'test').case.__dict__['Skip' + 'Test']('no')\n"


def _run(root: Path, change: Mapping[str, str], *, mode: str = "local-git", **more: object) -> GitProject:
    workspace = str(more.pop("workspace", ""))
    settings = str(more.pop("settings", ""))
    base = {"money.py": WRONG, "test_money.py": TESTS, **more.pop("base", {})}  # type: ignore[dict-item]
    project = GitProject(
        root,
        [task("a", **more)],
        {"a": [edits(change)]},
        steps=UNITTEST,
        policy="max_worker_attempts_per_task = 1",
        base=base,
        workspace=workspace,
        more=settings,
    )
    project.make()
    config = root / "ganger.toml"
    config.write_text(config.read_text().replace('mode = "local-git"', f'mode = "{mode}"'))
    project.run()
    return project


def _task(project: Project) -> TaskState:
    return project.state().tasks["a"]


def _log(project: Project, name: str = "a.verify.1.log") -> str:
    return (project.folder.path / "logs" / name).read_text()


@pytest.mark.parametrize("mode", ["local-git", "direct"])
def test_an_honest_change_is_done_and_the_log_says_what_that_cost(tmp_path: Path, mode: str) -> None:
    """G09 G10: tests by name, planted tests, and the seconds they took beside the checks."""
    project = _run(tmp_path, {"money.py": RIGHT}, mode=mode)
    assert _task(project).status is TaskStatus.DONE
    told = r"planted tests: \d+ reported as failing by unittest, as they must be \([\d.]+ s beside [\d.]+ s of checks\)"
    assert re.search(told, _log(project)) and "2 tests by name, none worse" in _log(project)
    assert "planted tests" in _task(project).verification.proof
    assert "AssertionError" in _log(project, "a.verify.1.planted.log") and "AssertionError" not in _log(project)


@pytest.mark.quick
@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", ["local-git", "direct"])
@pytest.mark.parametrize(
    ("how", "code"),
    [
        pytest.param(ENDS_THE_RUN, "TESTS_UNREPORTED", id="ends-the-run"),
        pytest.param(CHANGES_THE_RUNNER, "PLANTED_NOT_FAILING", id="changes-the-runner"),
        pytest.param(SKIPS_THE_TEST, "TESTS_WORSE", id="skips-the-test"),
    ],
)
def test_a_green_run_of_a_wrong_product_is_refused(tmp_path: Path, mode: str, how: str, code: str) -> None:
    """G09: the same three ways in both modes; a policy violation that names the test."""
    project = _run(tmp_path, {"money.py": WRONG + how}, mode=mode)
    assert _task(project).status is TaskStatus.FAILED and code in _task(project).detail
    failed = project.find(ev.AttemptFailed)
    assert [event.failure_class for event in failed] == [FailureClass.POLICY_VIOLATION]


def test_removing_a_test_needs_a_task_that_may(tmp_path: Path) -> None:
    """G09 W01: with the right to change gates tests may go; the census lets them."""
    project = _run(
        tmp_path,
        {"money.py": RIGHT, "test_money.py": FEWER},
        metadata={"may_change_gates": True, "allow_shrinkage": True},
    )
    assert _task(project).status is TaskStatus.DONE


def test_a_test_that_failed_by_chance_is_run_once_more(tmp_path: Path) -> None:
    """G09 W05: it passed without the change, so the check is tried again before it counts; the events say so."""
    mark, root = tmp_path / "seen", tmp_path / "project"
    base = {"money.py": WRONG, "test_money.py": TESTS + FLAKY.format(mark=str(mark))}
    script = {"a": [edits({"money.py": RIGHT})], "b": [edits({"armed.txt": "now\n", "money.py": RIGHT + "# b\n"})]}
    project = GitProject(
        root, [task("a"), task("b", "a")], script, steps=UNITTEST, base=base, more='[sandbox]\nuse = "off"'
    )
    assert project.make().run() == 0 and mark.exists()
    assert ["test_sometimes" in event.what for event in project.find(ev.VerifyRecovered)] == [True]


def test_checks_are_not_told_who_runs_them(tmp_path: Path) -> None:
    """G09: no variable names Ganger, in either mode and whatever the sandbox."""
    code = "import os; assert not [n for n in os.environ if 'GANGER' in n.upper()], os.environ"
    for name, mode in (("one", "local-git"), ("two", "direct")):
        for use in ("auto", "off"):
            root = tmp_path / f"{name}-{use}"
            project = GitProject(
                root, steps=({"name": "env", "cmd": f'python3 -c "{code}"'},), more=f'[sandbox]\nuse = "{use}"'
            )
            project.make()
            config = root / "ganger.toml"
            config.write_text(config.read_text().replace('mode = "local-git"', f'mode = "{mode}"'))
            assert project.run() == 0


def test_both_proofs_can_be_turned_off(tmp_path: Path) -> None:
    """G09: for runners that cannot report, or cannot bear a copy."""
    project = _run(tmp_path, {"money.py": RIGHT}, settings="[verify]\ncensus = false\n")
    assert _task(project).status is TaskStatus.DONE and _task(project).verification.proof == ""


def test_the_base_is_counted_once_for_a_run(tmp_path: Path) -> None:
    """G09: what was merged is the base of the next change; only the first needs a run of its own."""
    changes = [
        edits({"money.py": RIGHT}),
        edits({"money.py": RIGHT + "# two\n"}),
        edits({"money.py": RIGHT + "# three\n"}),
    ]
    tasks = [task("a"), task("b", "a"), task("c", "b")]
    script = {name: [change] for name, change in zip("abc", changes, strict=True)}
    project = GitProject(tmp_path, tasks, script, steps=UNITTEST, base={"money.py": WRONG, "test_money.py": TESTS})
    assert project.make().run() == 0
    assert len(list((project.folder.path / "logs").glob("base.*.log"))) == 1
