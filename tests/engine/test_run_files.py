"""The files of a run, its lock, and what its exit code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.engine.lead import exit_code
from ganger.engine.output.report import report_text
from ganger.errors import GangerError
from ganger.local.run_folder import replace_file

REPLACE = "import sys; from pathlib import Path; from ganger.local.run_folder import replace_file; replace_file(Path(sys.argv[1]), 'new')"  # noqa: E501


def calls(trace: str, path: Path) -> list[str]:
    """The calls that make a replacement safe, in order, for one file and its folder."""
    found: list[str] = []
    names: dict[str, str] = {}
    for line in trace.splitlines():
        if opened := re.search(r'openat\(AT_FDCWD, "([^"]+)".* = (\d+)$', line):
            names[opened[2]] = opened[1]
        elif synced := re.search(r"fsync\((\d+)\)\s+= 0", line):
            found.append("sync folder" if names.get(synced[1]) == str(path.parent) else "sync file")
        elif re.search(rf'rename\w*\(.*"{re.escape(str(path))}"', line):
            found.append("rename")
    return found


@pytest.mark.needs("strace")
def test_a_file_is_synced_then_renamed_then_its_folder_is_synced(tmp_path: Path) -> None:
    """T19: in this order nothing can be lost or half written, also in a power cut."""
    trace, path = tmp_path / "trace.txt", tmp_path / "folder" / "state.json"
    path.parent.mkdir()
    words = ["strace", "-f", "-o", str(trace), "-e", "trace=openat,fsync,rename,renameat,renameat2"]
    subprocess.run([*words, sys.executable, "-c", REPLACE, str(path)], check=True)
    assert calls(trace.read_text(), path) == ["sync file", "rename", "sync folder"]
    assert path.read_text() == "new"


def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """T19: text that cannot be written as UTF-8, or a folder in the way."""
    path = tmp_path / "state.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "\ud800")
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["state.json"]
    (tmp_path / "report.md").mkdir()
    with pytest.raises(GangerError, match="cannot be written"):
        replace_file(tmp_path / "report.md", "x")


def stands(status: RunStatus, *statuses: str, stopping: bool = False) -> RunState:
    """A run whose tasks ended that way."""
    state = RunState()
    specs = tuple(TaskSpec(f"t{n}") for n in range(len(statuses)))
    apply(state, ev.Recorded(1, "", ev.RunStarted("r", "d", Policy(), specs)))
    for spec, word in zip(specs, statuses, strict=True):
        if word == "DONE":
            apply(state, ev.Recorded(2, "", ev.AttemptStarted(spec.id, 1, "t", "a", "", "log")))
            apply(state, ev.Recorded(3, "", ev.VerifyFinished(spec.id, 1, True, "log", 0.0, ())))
        apply(state, ev.Recorded(4, "", ev.TaskSettled(spec.id, TaskStatus(word), f"it is {word}")))
    state.status, state.lead.stopping = status, stopping
    return state


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (stands(RunStatus.COMPLETED, "DONE"), 0),
        (stands(RunStatus.ABORTED, "DONE", "FAILED"), 1),
        (stands(RunStatus.ABORTED, "FAILED", "BLOCKED"), 3),
        (stands(RunStatus.ABORTED, "FAILED", "BLOCKED", "ESCALATED"), 4),
        (stands(RunStatus.RUNNING, "DONE", "FAILED", stopping=True), 130),
        (stands(RunStatus.COMPLETED, "DONE", stopping=True), 0),
    ],
)
def test_the_exit_code_says_how_the_run_stands(state: RunState, code: int) -> None:
    """Z07: an escalation before a block before a failure."""
    assert exit_code(state) == code


def test_the_report_puts_first_what_needs_a_person() -> None:
    """T22: with counts, reason and every task's last word."""
    state = stands(RunStatus.ABORTED, "DONE", "FAILED", "BLOCKED", "ESCALATED")
    state.abort_reason = "3 of 4 tasks are not done"
    text = report_text(state)
    headings = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert headings == ["ESCALATED", "BLOCKED", "FAILED", "DONE"]
    assert "3 of 4 tasks are not done" in text and "it is FAILED" in text
