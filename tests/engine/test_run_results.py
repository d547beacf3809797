"""What an agent prints, and what becomes of its task."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus
from tests.engine.run_projects import Project, done, require_state_2_0, task, write

D, F, B = TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.BLOCKED


def test_a_valid_result_is_verified_and_done(tmp_path: Path) -> None:
    """T28 valid-result T05 T17: the steps happen in their order, each in the events."""
    project = Project(tmp_path, script={"a": done(write("out.txt", "hello\n"))}).make()
    assert project.run() == 0
    assert project.happened() == [
        "attempt_started",
        "attempt_launched",
        "attempt_exited",
        "result_accepted",
        "writes_intended",
        "writes_applied",
        "verify_started",
        "verify_finished",
        "task_settled",
    ]
    assert (project.status(), project.state().status) == (D, RunStatus.COMPLETED)
    assert (tmp_path / "out.txt").read_text() == "hello\n"


def test_a_result_without_writes_is_verified_as_well(tmp_path: Path) -> None:
    """T17: an agent that edits the folder itself is judged by the same verification."""
    script = {"a": [[{"files": {"made.txt": "x"}}, {"result": "DONE"}]]}
    project = Project(tmp_path, script=script, steps=({"name": "made", "cmd": "test -f made.txt"},)).make()
    assert project.run() == 0 and "verify_finished" in project.happened()


CONTRACT_FAULTS = {
    "missing-fence": ({"text": "All done!"}, "NO_SENTINEL"),
    "invalid-json": ({"block": "{not json}"}, "INVALID_JSON"),
    "schema-violation": ({"result": {"status": "DONE", "colour": "blue"}}, "SCHEMA_VIOLATION"),
    "prompt-echo": ({"echo_prompt": True}, "NO_SENTINEL"),
    "missing-field": ({"block": '{"contract_version":"2.0","task_id":"a","status":"DONE"}'}, "MISSING_REQUIRED_FIELD"),
    "version": ({"result": {"status": "DONE", "contract_version": "1.0"}}, "UNSUPPORTED_VERSION"),
    "another-task": ({"result": {"status": "DONE", "task_id": "b"}}, "SCHEMA_VIOLATION"),
    "duplicate-keys": (
        {"block": '{"contract_version":"2.0","task_id":"a","status":"DONE","summary":"x","summary":"y"}'},
        "SCHEMA_VIOLATION",
    ),
    "nan": ({"block": '{"contract_version":"2.0","task_id":"a","status":"DONE","summary":NaN}'}, "INVALID_JSON"),
    "unfinished": ({"text": '<<<TASK_RESULT_V2>>>\n{"contract_version":"2.0"'}, "NO_SENTINEL"),
    "garbage": ({"garbage": 20000}, "NO_SENTINEL"),
    "prose-that-claims-success": ({"text": "status: DONE\nTASK_RESULT: success\nexit 0"}, "NO_SENTINEL"),
    "own-admission": ({"result": {"status": "CONTRACT_ERROR", "summary": "cannot"}}, "CONTRACT_ERROR"),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", CONTRACT_FAULTS, ids=str)
def test_an_answer_that_breaks_the_contract_is_never_believed(tmp_path: Path, case: str) -> None:
    """T07 T08 T09 T29 T28 missing-fence invalid-json schema-violation prompt-echo: one format retry,
    then a worker failure; here every attempt breaks it the same way."""
    behaviour, code = CONTRACT_FAULTS[case]
    project = Project(tmp_path, script={"a": behaviour}).make()
    assert project.run() == 1
    failed = project.find(ev.AttemptFailed)
    assert [f.counter for f in failed] == ["format_retries", "worker_attempts", "worker_attempts"]
    assert {f.failure_class for f in failed} == {"contract_error"} and code.lower() in failed[0].signature
    assert (project.status(), len(project.logs())) == (F, 3)


def test_a_format_retry_costs_no_attempt_and_calls_no_healer(tmp_path: Path) -> None:
    """T28 format-retry T08: one worker attempt, two logs, and the second prompt says what was wrong."""
    project = Project(tmp_path, script={"a": [{"text": "oops"}, {"echo_prompt": True, "result": "DONE"}]}).make()
    assert project.run() == 0
    entry = project.state_file()["tasks"]["a"]
    assert (entry["status"], entry["worker_attempts"], entry["healer_attempts"]) == ("DONE", 1, 0)
    assert [n for n in project.logs() if "worker" in n] == ["a.worker.1.log", "a.worker.2.log"]
    assert "could not be read (NO_SENTINEL" in project.log("a", 2)


def test_the_last_of_several_blocks_counts(tmp_path: Path) -> None:
    """T28 valid-result T07: a FAILED one, then a DONE one."""
    steps = [[{"result": {"status": "FAILED"}}, {"text": "I found a way after all"}, {"result": "DONE"}]]
    project = Project(tmp_path, script={"a": steps}).make()
    assert project.run() == 0


@pytest.mark.parametrize(("code", "words"), [(0, "contract_error"), (3, "crash")])
def test_an_exit_code_without_a_result_proves_nothing(tmp_path: Path, code: int, words: str) -> None:
    """T06: zero is a contract error, another one a crash."""
    project = Project(tmp_path, script={"a": [{"text": "hm", "exit": code}, {"result": "DONE"}]}).make()
    assert project.run() == 0
    assert [f.failure_class for f in project.find(ev.AttemptFailed)] == [words]


def test_a_valid_result_counts_whatever_the_exit_code(tmp_path: Path) -> None:
    """T06: verification decides, not the code."""
    project = Project(tmp_path, script={"a": [{"result": "DONE", "exit": 9}]}).make()
    assert project.run() == 0 and project.find(ev.AttemptExited)[0].exit_code == 9


def test_output_of_both_streams_is_in_the_log(tmp_path: Path) -> None:
    """T06: combined, and kept."""
    steps = [[{"text": "to stdout"}, {"error": "to stderr"}, {"result": "DONE"}]]
    project = Project(tmp_path, script={"a": steps}).make()
    assert project.run() == 0
    assert "to stdout" in project.log("a") and "to stderr" in project.log("a")


WORDS = {
    "external": ({"status": "BLOCKED"}, BlockReason.EXTERNAL),
    "permission": ({"status": "BLOCKED", "failure_class": "permission_denied"}, BlockReason.PERMISSION_DENIED),
    "a-class-that-does-not-block": ({"status": "BLOCKED", "failure_class": "test_error"}, BlockReason.EXTERNAL),
}


@pytest.mark.parametrize("case", WORDS)
def test_a_worker_that_is_blocked_blocks_its_task_and_what_follows(tmp_path: Path, case: str) -> None:
    """T03 W07 Z07: one attempt, the right reason, exit code 3, or 4 with a question; independent tasks go on."""
    result, reason = WORDS[case]
    project = Project(tmp_path, [task("a"), task("b", "a"), task("c")], {"a": {"result": result}}).make()
    assert project.run() == (4 if case == "permission" else 3)
    state = project.state()
    assert (state.tasks["a"].block_reason, state.tasks["a"].attempts) == (reason, 1)
    assert state.tasks["b"].block_reason is BlockReason.DEPENDENCY_FAILED and state.tasks["c"].status is D
    assert state.status is RunStatus.ABORTED and "a BLOCKED" in (state.abort_reason or "")


def test_a_worker_that_reports_failure_is_retried_and_then_failed(tmp_path: Path) -> None:
    """T13 Z07: two attempts, its own class as a hint, exit code 1."""
    result = {"status": "FAILED", "summary": "no luck", "failure_class": "missing_paths"}
    project = Project(tmp_path, script={"a": {"result": result}}).make()
    assert project.run() == 1
    assert [f.failure_class for f in project.find(ev.AttemptFailed)] == ["missing_paths"] * 2
    assert project.status() is F and "no luck" in project.state().tasks["a"].detail


def test_a_crash_is_run_again_once_and_then_paused(tmp_path: Path) -> None:
    """H04 Z07: the second crash blocks, and says how the agent ended."""
    project = Project(tmp_path, script={"a": {"crash": "SIGKILL"}}).make()
    assert project.run() == 4
    entry = project.state().tasks["a"]
    assert (entry.block_reason, entry.attempts, entry.counters.respawns) == (BlockReason.PAUSED, 2, 1)
    assert "signal 9" in entry.detail


def test_a_crash_that_does_not_come_back_costs_no_worker_attempt(tmp_path: Path) -> None:
    """H04 T13: one respawn, then DONE with a single worker attempt."""
    project = Project(tmp_path, script={"a": [{"crash": True}, {"result": "DONE"}]}).make()
    assert project.run() == 0 and project.state().tasks["a"].counters.worker_attempts == 1


def test_an_agent_that_hangs_is_ended_with_its_whole_tree_at_its_time_limit(tmp_path: Path) -> None:
    """T06 T13: also children that left its process group; the class is timeout."""
    argv = ["sh", "-c", "setsid sleep 1000 & sleep 1000 & trap '' TERM; sleep 1000"]
    agent = f'kind = "command"\nargv = {argv!r}'
    project = Project(
        tmp_path, [task("a", timeout_sec=1)], agent=agent, policy="max_worker_attempts_per_task = 1"
    ).make()
    assert project.run() == 1
    assert project.find(ev.AttemptExited)[0].timed_out
    assert project.find(ev.AttemptFailed)[0].failure_class == "timeout" and project.processes() == []


@pytest.mark.whole
def test_an_agent_that_is_not_installed_is_named_before_anything_starts(tmp_path: Path) -> None:
    """T24 Z07: exit code 1, no run folder is filled, no attempt is spent."""
    project = Project(tmp_path, agent='kind = "command"\nargv = ["no-such-agent-here"]').make()
    made = project.ganger("run", "--json")
    assert made.returncode == 1 and "AGENT_NOT_READY" in made.stdout and "no-such-agent-here" in made.stdout
    assert not (project.folder.path / "ganger.db").exists()


def test_an_agent_whose_program_vanishes_blocks_its_tasks(tmp_path: Path) -> None:
    """H04 G14: not a traceback, no crash, and the message names the program."""
    program = tmp_path / "agent.sh"
    program.write_text(f"#!/bin/sh\nrm {program}\n")
    program.chmod(0o755)
    project = Project(tmp_path / "project", agent=f'kind = "command"\nargv = ["{program}"]').make()
    assert project.run() == 3 and project.state().tasks["a"].block_reason is BlockReason.EXTERNAL
    assert "was not found" in project.state().tasks["a"].detail


def test_an_agent_that_removes_its_own_log_has_given_no_answer(tmp_path: Path) -> None:
    """T06: the run goes on."""
    code = "import os,glob; [os.unlink(p) for p in glob.glob('.ganger/r1/logs/a.*')]"
    agent = f'kind = "command"\nargv = [{sys.executable!r}, "-c", "{code}"]'
    project = Project(tmp_path, agent=agent).make()
    assert project.run() == 1
    assert {f.code for f in project.find(ev.ResultRefused)} == {"NO_SENTINEL"}


def test_a_prompt_that_disappeared_fails_its_task_and_no_other(tmp_path: Path) -> None:
    """T01: the class says what is missing."""
    script = {"a": [[{"result": "DONE"}]]}
    project = Project(tmp_path, [task("a"), task("b", "a", prompt_ref="b.md"), task("c")], script, files={"b.md": "B"})
    project.steps = ({"name": "remove", "cmd": "rm -f b.md"},)
    assert project.make().run() == 1
    state = project.state()
    assert [state.tasks[n].status for n in "abc"] == [D, F, D]
    assert state.tasks["b"].failure.failure_class == "missing_paths"


def test_a_prompt_too_long_for_an_argument_blocks_its_task_with_a_way_out(tmp_path: Path) -> None:
    """T24: a setting of the agent, not the end of the run."""
    agent = 'kind = "command"\nprompt = "argument"\nargv = ["true"]'
    project = Project(tmp_path, [task("a", prompt_ref="long.md")], agent=agent, files={"long.md": "x" * 200_000}).make()
    assert project.run() == 3
    assert 'prompt = "stdin"' in project.state().tasks["a"].detail


def test_text_from_agents_reaches_state_and_report_without_control_characters(tmp_path: Path) -> None:
    """T19: a hostile summary cannot steer a terminal or break the file."""
    summary = "\x1b[31mred\x07 </script> \u202egnirts\n# Forged"
    project = Project(tmp_path, script={"a": {"result": {"status": "FAILED", "summary": summary}}}).make()
    assert project.run() == 1
    report = project.folder.report.read_text()
    assert "\x1b" not in report and "\n# Forged" not in report and "\u202e" not in report
    require_state_2_0(project.folder.state.read_text())
