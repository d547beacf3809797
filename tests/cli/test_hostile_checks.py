"""Checks and agents that harm the run itself: nothing is claimed that did not happen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, kept, make_project, task

pytestmark = pytest.mark.whole

BAD = {"path": "code.txt", "op": "replace", "encoding": "utf8", "content": "bad\n"}
SCRIPT = {"one": {"result": {"status": "DONE", "summary": "s", "writes": [BAD]}}}
HANG = {"one": [[{"text": "begun"}, {"hang": True}], {"result": "DONE"}]}


def project_with_check(root: Path, command: str) -> Path:
    make_project(root, script=SCRIPT, steps=[{"name": "check", "cmd": f"sh -c '{command}'"}])
    (root / "code.txt").write_text("good\n")
    return root


def started(root: Path) -> subprocess.Popen[bytes]:
    """A run whose agent hangs; returns once the agent has said something."""
    words, nowhere = [sys.executable, "-m", "ganger", "run"], subprocess.DEVNULL
    lead = subprocess.Popen(words, cwd=root, stdout=nowhere, stderr=nowhere)
    log = root / ".ganger/r1/logs/one.worker.1.log"
    while not log.exists() or b"begun" not in log.read_bytes():
        assert lead.poll() is None
        time.sleep(0.02)
    return lead


def still_working(root: Path) -> list[int]:
    """Processes whose folder is the project: agents and what they left."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                here = (entry / "cwd").readlink() == root and (entry / "stat").read_text().split()[2] != "Z"
            except OSError:
                continue
            found += [int(entry.name)] if here else []
    return found


def test_a_check_that_removes_the_backup_cannot_make_it_look_rolled_back(tmp_path: Path) -> None:
    """T18 T19: what cannot be put back is said plainly and never tried again by itself."""
    root = project_with_check(tmp_path, "rm -rf .ganger/r1/backups/*; exit 1")
    lines = ganger("run", "--json", cwd=root).lines
    assert "writes_rolled_back" not in [line["type"] for line in lines]
    assert [line["failure_class"] for line in lines if line["type"] == "attempt_failed"] == ["fatal"]
    assert "cannot be put back" in ganger("why", "one", cwd=root).out
    assert ganger("run", "--json", cwd=root).lines[-1]["counts"]["FAILED"] == 1


def test_a_check_that_removes_its_own_log_fails_its_task_and_nothing_else(tmp_path: Path) -> None:
    """T17 T18: rolled back, counted, finished."""
    root = project_with_check(tmp_path, "rm -f .ganger/r1/logs/*; exit 1")
    last = ganger("run", "--json", cwd=root).lines[-1]
    assert (last["run_status"], last["counts"]["FAILED"]) == ("ABORTED", 1)
    assert (root / "code.txt").read_text() == "good\n"


@pytest.mark.brief(1)
@pytest.mark.parametrize(
    "command", ['rm -f "$(readlink .ganger/r1/ganger.db)"', 'rm -rf "$(dirname "$(readlink .ganger/r1/ganger.db)")"']
)
def test_a_check_that_removes_the_store_stops_the_run(tmp_path: Path, command: str) -> None:
    """T19: nothing is called done that is not recorded."""
    answer = ganger("run", cwd=project_with_check(tmp_path, command))
    assert answer.code == 1 and "DONE" not in answer.out
    assert "[STORE_ERROR]" in answer.err or "[NOT_WRITABLE]" in answer.err


@pytest.mark.parametrize("command", ["rm -f .ganger/r1/ganger.db*", "rm -rf .ganger", "mv .ganger other"])
def test_a_check_that_removes_what_is_shown_of_a_run_loses_nothing(tmp_path: Path, command: str) -> None:
    """T19: what is in the project is a picture; it is made again, and the run is known as ever."""
    root = project_with_check(tmp_path, command)
    assert ganger("run", cwd=root).code == 0
    assert ganger("status", "--json", cwd=root).json["counts"]["DONE"] == 1
    assert (root / ".ganger/r1/state.json").read_bytes() == (kept(root) / "state.json").read_bytes()
    assert (root / ".ganger/r1/ganger.db").resolve() == (kept(root) / "ganger.db").resolve()


@pytest.mark.parametrize(
    "number",
    [signal.SIGHUP, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGTERM, signal.SIGINT))],
)
def test_a_closed_terminal_ends_the_agents_too(tmp_path: Path, number: signal.Signals) -> None:
    """T28 signal-shutdown T23: exit 130, nothing left, the run goes on later."""
    root = make_project(tmp_path, script=HANG)
    lead = started(root)
    lead.send_signal(number)
    assert lead.wait(20) == 130 and still_working(root) == []
    assert "will run again; attempt 1 did not settle it" in ganger("why", "one", cwd=root).out
    assert ganger("run", cwd=root).code == 0


def test_why_knows_that_the_lead_is_gone(tmp_path: Path) -> None:
    """G10: no task of a dead lead is said to be working."""
    root = make_project(tmp_path, task(timeout_sec=8), script=HANG)
    lead = started(root)
    assert "its agent is working" in ganger("why", "one", cwd=root).out
    lead.kill()
    lead.wait(20)
    assert "its lead is gone" in ganger("why", "one", cwd=root).out
    assert "no process leads this run" in ganger("status", cwd=root).out
    assert ganger("run", cwd=root).code == 0 and still_working(root) == []


def test_a_daemon_cannot_change_files_after_they_were_verified(tmp_path: Path) -> None:
    """T17 H08: what an agent leaves behind is gone before verification begins."""
    root = make_project(tmp_path, steps=[{"name": "check", "cmd": "grep -q good out.txt"}])
    agent = f'argv = ["{sys.executable}", "agent.py"]\n'
    (root / "ganger.toml").write_text(
        f'[policy]\nheal_schedule = "off"\n[agents.a]\nkind = "command"\n{agent}[roles.worker]\nagent = "a"\n'
    )
    (root / "agent.py").write_text(
        "import subprocess\n"
        "subprocess.Popen(['sh', '-c', 'sleep 0.7; echo evil > out.txt'], start_new_session=True)\n"
        'print(\'<<<TASK_RESULT_V2>>>\\n{"contract_version":"2.0","task_id":"one","status":"DONE","summary":"s",\'\n'
        '      \'"writes":[{"path":"out.txt","op":"create","encoding":"utf8","content":"good"}]}\\n\'\n'
        "      '<<<END_TASK_RESULT_V2>>>')\n"
    )
    assert ganger("run", cwd=root).code == 0 and still_working(root) == []
    assert (root / "out.txt").read_text() == "good"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("binary", b"\x00\x01", "PROMPT_NOT_TEXT"),
        ("latin", b"caf\xe9", "PROMPT_NOT_TEXT"),
        ("huge", b"x" * 5_000_000, "PROMPT_NOT_TEXT"),
    ],
)
def test_a_prompt_that_is_no_text_is_refused_before_anything_runs(
    tmp_path: Path, name: str, content: bytes, code: str
) -> None:
    """T01: at the door, with its place."""
    root = make_project(tmp_path, task())
    (root / "prompt.md").write_bytes(content)
    error = ganger("validate", "--json", cwd=root).json["errors"][0]
    assert (error["path"], error["code"]) == ("tasks[0].prompt_ref", code), name


def test_a_step_whose_directory_leaves_the_project_is_refused(tmp_path: Path) -> None:
    """W06: at the door, with its place."""
    root = make_project(tmp_path, steps=[{"name": "t", "cmd": "true", "cwd": "../.."}])
    error = ganger("validate", "--json", cwd=root).json["errors"][0]
    assert (error["path"], error["code"]) == ("verify.json:profiles.check.steps[0].cwd", "BAD_DIRECTORY")
