"""`ganger run --detach`: a lead without a terminal, and what the caller learns of it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ganger.cli.foreground.detach import words
from ganger.cli.run import command
from tests.cli.cli_project import ganger, kept, make_project, task
from tests.patience import until

pytestmark = pytest.mark.whole

SLOW = {"a": [{"hang": True}]}


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.fixture
def led(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A project whose run hangs in its first task, led by a detached process."""
    root = make_project(tmp_path, task("a"), script=SLOW)
    pid = ganger("run", "--detach", "--json", cwd=root).json["pid"]
    yield root, pid
    if not gone(pid):
        os.kill(pid, signal.SIGTERM)
    until(lambda: gone(pid))


def test_a_detached_run_leads_in_a_session_of_its_own(led: tuple[Path, int]) -> None:
    """T23: no terminal, no input, its words in lead.log, and it is recorded as the lead."""
    root, pid = led
    started = [e for e in ganger("events", "--json", cwd=root).lines if e["type"] == "lead_started"]
    assert [e["pid"] for e in started] == [pid]
    assert os.getsid(pid) == pid and os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    log = kept(root) / "lead.log"
    assert os.readlink(f"/proc/{pid}/fd/1") == str(log) and '"lead_started"' in log.read_text()


def test_the_end_of_a_terminal_does_not_end_it(led: tuple[Path, int]) -> None:
    """T23: SIGHUP is ignored, SIGTERM still stops it in order."""
    root, pid = led
    ignored = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn"))
    assert int(ignored.split()[1], 16) & 1 << signal.SIGHUP - 1
    os.kill(pid, signal.SIGHUP)
    os.kill(pid, signal.SIGTERM)
    until(lambda: gone(pid))
    stops = [e["why"] for e in ganger("events", "--json", cwd=root).lines if e["type"] == "stop_requested"]
    assert stops == ["SIGTERM"]


def test_a_second_one_is_told_who_leads(led: tuple[Path, int]) -> None:
    """T23: its error and its exit code are passed on."""
    root, pid = led
    answer = ganger("run", "--detach", cwd=root)
    assert answer.code == 1 and str(pid) in answer.err and "RUN_LOCKED" in answer.err
    assert ganger("run", "--detach", "--json", cwd=root).json["error"]["code"] == "RUN_LOCKED"


def test_a_person_learns_how_to_watch_and_to_stop(tmp_path: Path) -> None:
    """T23: run, process, watch, stop, log; the run goes on to its end by itself."""
    root = make_project(tmp_path)
    answer = ganger("run", "--detach", cwd=root)
    assert answer.code == 0 and "ganger status --run r1" in answer.out and "ganger stop --run r1" in answer.out
    until(lambda: ganger("status", "--json", cwd=root).json["run_status"] == "COMPLETED")
    again = ganger("run", "--detach", "--json", cwd=root)
    assert (again.code, again.json["pid"], again.json["leads"]) == (0, None, False)


def test_what_cannot_start_fails_at_once(tmp_path: Path) -> None:
    """T23: a fault is told here, not only in the log."""
    root = make_project(tmp_path)
    (root / "ganger.toml").write_text((root / "ganger.toml").read_text().replace("script.json", "missing.json"))
    answer = ganger("run", "--detach", cwd=root)
    assert (answer.code, "error: " in answer.err) == (1, True)
    (root / "manifest.json").write_text("{}")
    assert ganger("run", "--detach", cwd=root).code == 1


def test_the_command_is_the_same_without_detach() -> None:
    """T23: every option and the manifest are passed on, also one that looks like an option."""
    given = ["--only", "a", "--only=-b", "--detach", "--concurrency", "3", "--set", "x.y=1", "--json", "--", "-m.json"]
    context = command.make_context("run", list(given))
    again = command.make_context("run", words(context)[1:])
    assert isinstance(context, click.Context) and again.params == context.params | {"detach": False}
    assert json.dumps(words(context)).count("detach") == 0
