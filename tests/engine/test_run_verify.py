"""Writes and verification in a whole run: what lands, what is taken back, what blocks."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from tests.engine.run_projects import Project, done, task, write

D, F, B = TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.BLOCKED
ONE_ATTEMPT = "max_worker_attempts_per_task = 1"


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_verification_sees_what_was_written_before_the_task_is_done(tmp_path: Path) -> None:
    """T28 verified-after-write T17: the step reads the very file of the result."""
    steps = ({"name": "read", "cmd": "grep -q fresh out.txt"},)
    project = Project(tmp_path, script={"a": done(write("out.txt", "fresh\n"))}, steps=steps).make()
    assert project.run() == 0
    order = project.happened()
    assert order.index("writes_applied") < order.index("verify_finished") < order.index("task_settled")


def test_a_failed_verification_leaves_the_tree_as_it_was_byte_for_byte(tmp_path: Path) -> None:
    """T28 failed-verify-rollback T18: created, replaced, appended, in new folders; and the class is test_error."""
    writes = [
        write("new/deep/file.txt", "x"),
        write("kept.txt", "changed\n", op="replace"),
        write("log.txt", "more\n", op="append"),
    ]
    project = Project(tmp_path, script={"a": done(*writes)}, policy=ONE_ATTEMPT, files={"kept.txt": "old\n"})
    project.files = {"kept.txt": "old\n", "log.txt": "one\n"}
    project.steps = ({"name": "test", "cmd": "false"},)
    before = project.make().tree()
    assert project.run() == 1
    assert project.tree() == before and "writes_rolled_back" in project.happened()
    assert project.find(ev.AttemptFailed)[0].failure_class == "test_error"
    assert not list((project.folder.path / "backups").iterdir())


def test_the_next_attempt_is_told_what_verification_said(tmp_path: Path) -> None:
    """T05 T13: step, exit code and the telling line."""
    steps = ({"name": "unit", "cmd": python("raise AssertionError('3 != 4')")},)
    project = Project(tmp_path, default={"echo_prompt": True, "result": "DONE"}, steps=steps).make()
    assert project.run() == 1
    assert "check `unit` failed (exit code 1)" in project.log("a", 2) and "3 != 4" in project.log("a", 2)
    assert project.state().tasks["a"].failure.signature == "test_error:assertionerror: 3 != 4"


def test_changes_stay_when_the_profile_says_so(tmp_path: Path) -> None:
    """T18: rollback_on_failure = false; the backup is gone all the same."""
    project = Project(tmp_path, script={"a": done(write("out.txt", "x"))}, policy=ONE_ATTEMPT)
    project.steps, project.profile = ({"name": "test", "cmd": "false"},), {"rollback_on_failure": False}
    assert project.make().run() == 1
    assert (tmp_path / "out.txt").read_text() == "x" and project.status() is F
    assert not list((project.folder.path / "backups").iterdir())


REFUSED = {
    "protected-file": (write(".git/config", "[x]\n"), "protected"),
    "protected-manifest": (write("manifest.json", "{}", op="replace"), "protected"),
    "protected-state": (write(".ganger/r1/state.json", "{}", op="replace"), "protected"),
    "shrinkage": (write("big.txt", "x" * 100, op="replace"), "shrink"),
    "outside": (write("../escape.txt", "x"), ""),
    "stale-hash": (write("big.txt", "y" * 300, op="replace", sha256_before="0" * 64), "hash"),
    "create-over-existing": (write("big.txt", "y"), ""),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_write_that_breaks_a_safeguard_is_refused_with_all_the_others(tmp_path: Path, case: str) -> None:
    """T18 T28 protected-file shrinkage: all of a task's writes or none; policy_violation, and verification does not
    even start."""
    bad, words = REFUSED[case]
    project = Project(tmp_path, script={"a": done(write("good.txt", "x"), bad)}, policy=ONE_ATTEMPT)
    project.files = {"big.txt": "z" * 300, ".git/HEAD": "ref\n"}
    before = project.make().tree()
    assert project.run() == 1
    failed = project.find(ev.AttemptFailed)[0]
    assert failed.failure_class == "policy_violation" and words in failed.detail.lower()
    assert project.tree() == before and "verify_started" not in project.happened()


def test_shrinkage_is_allowed_where_the_task_says_so(tmp_path: Path) -> None:
    """T18: metadata.allow_shrinkage."""
    tasks = [task("a", metadata={"allow_shrinkage": True})]
    project = Project(tmp_path, tasks, {"a": done(write("big.txt", "x", op="replace"))}, files={"big.txt": "z" * 300})
    assert project.make().run() == 0 and (tmp_path / "big.txt").read_text() == "x"


def test_quality_never_blocks_and_is_recorded(tmp_path: Path) -> None:
    """Z04: it runs last, its failure is kept, the task is DONE."""
    steps = ({"name": "style", "cmd": "false"}, {"name": "test", "cmd": "true"})
    project = Project(tmp_path, steps=steps, tiers='"check/style" = "quality"').make()
    assert project.run() == 0
    assert [(s.name, s.outcome) for s in project.find(ev.VerifyFinished)[0].steps] == [
        ("test", "passed"),
        ("style", "failed"),
    ]


TIERS = [("syntax", "build_error"), ("correctness", "test_error"), ("smoke", "smoke_error")]


@pytest.mark.parametrize(("tier", "cls"), TIERS)
def test_every_other_tier_blocks_with_its_own_class(tmp_path: Path, tier: str, cls: str) -> None:
    """Z04 T17: three layers, and what failed first is what is reported."""
    project = Project(
        tmp_path, steps=({"name": "x", "cmd": "false"},), tiers=f'"check/x" = "{tier}"', policy=ONE_ATTEMPT
    )
    assert project.make().run() == 1
    assert project.state().tasks["a"].failure.failure_class == cls


def test_later_tiers_do_not_run_after_a_blocking_failure(tmp_path: Path) -> None:
    """Z04 T17: no smoke test of what does not build."""
    steps = ({"name": "smoke", "cmd": "true"}, {"name": "build", "cmd": "false"})
    project = Project(tmp_path, steps=steps, tiers='"check/smoke" = "smoke"', policy=ONE_ATTEMPT).make()
    assert project.run() == 1
    assert [(s.name, s.outcome) for s in project.find(ev.VerifyFinished)[0].steps] == [
        ("build", "failed"),
        ("smoke", "skipped"),
    ]


def test_a_verification_that_hangs_is_ended_and_called_a_timeout(tmp_path: Path) -> None:
    """T17: nothing of it stays alive, and the change is taken back."""
    steps = ({"name": "slow", "cmd": "sleep 1000", "timeout_sec": 1},)
    project = Project(tmp_path, script={"a": done(write("out.txt", "x"))}, steps=steps, policy=ONE_ATTEMPT).make()
    assert project.run() == 1
    assert project.state().tasks["a"].failure.failure_class == "timeout"
    assert project.processes() == [] and not (tmp_path / "out.txt").exists()


def test_a_program_verification_needs_and_this_machine_lacks_blocks_without_paying_again(tmp_path: Path) -> None:
    """T17 W07: no agent can mend it, so none is asked twice; never DONE."""
    steps = ({"name": "test", "cmd": "no-such-program-here --check"},)
    project = Project(tmp_path, script={"a": done(write("out.txt", "x"))}, steps=steps).make()
    assert project.run() == 3
    entry = project.state().tasks["a"]
    assert (entry.block_reason, entry.attempts) == (BlockReason.EXTERNAL, 1)
    assert "no-such-program-here is not on PATH" in entry.detail and not (tmp_path / "out.txt").exists()


def test_a_program_of_the_project_that_is_missing_is_the_workers_failure(tmp_path: Path) -> None:
    """T17: a task that declares it is there to write it, so it is asked again."""
    tasks = [task("a", metadata={"expected_files": ["check.sh"]})]
    project = Project(tmp_path, tasks, steps=({"name": "test", "cmd": "./check.sh"},)).make()
    assert project.run() == 1
    assert (project.status(), project.state().tasks["a"].counters.worker_attempts) == (F, 2)


def test_verification_has_no_secrets_and_is_not_told_who_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T17 G09: neither keys of the operator nor names of the run."""
    monkeypatch.setenv("SOME_API_KEY", "canary")
    code = "import os; e = os.environ; assert not [n for n in e if n.startswith('GANGER')] and 'SOME_API_KEY' not in e"
    assert Project(tmp_path, steps=({"name": "env", "cmd": python(code)},)).make().run() == 0


def test_two_tasks_that_declare_one_file_take_turns_and_both_land(tmp_path: Path) -> None:
    """Z08: reported as a clash, never at the same time."""
    tasks = [task(name, metadata={"files_modify": ["shared.txt"]}) for name in "ab"]
    script = {n: [[{"delay": 0.2}, done(write("shared.txt", f"{n}\n", op="append"))]] for n in "ab"}
    project = Project(tmp_path, tasks, script, policy="concurrency = 4", files={"shared.txt": ""}).make()
    assert project.run() == 0
    spans = [r.event.task for r in project.events() if isinstance(r.event, ev.AttemptStarted | ev.TaskSettled)]
    assert spans == ["a", "a", "b", "b"] and (tmp_path / "shared.txt").read_text() == "a\nb\n"


def test_writers_verify_alone_while_others_only_look(tmp_path: Path) -> None:
    """T17 T18: no verification ever sees another task's unverified change."""
    code = "import os,time,sys; sys.exit(len([n for n in os.listdir('.') if n.endswith('.new')]) > 1)"
    script = {n: done(write(f"{n}.new", n)) for n in "abcd"}
    steps = ({"name": "look", "cmd": python(code)}, {"name": "tidy", "cmd": "false"})
    project = Project(
        tmp_path, [task(n) for n in "abcd"], script, steps=steps, policy=f"concurrency = 4\n{ONE_ATTEMPT}"
    )
    assert project.make().run() == 1
    assert [[s.outcome for s in v.steps] for v in project.find(ev.VerifyFinished)] == [["passed", "failed"]] * 4
