"""Many tasks at once: windows, logs, the state file at every instant."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.engine.lead import Lead
from tests.engine.run_projects import Project, done, leading, require_state_2_0, task, until, write

pytestmark = pytest.mark.whole


def overlap(project: Project) -> int:
    """The largest number of attempts that were running at once."""
    running, most = set(), 0
    for entry in project.events():
        if isinstance(entry.event, ev.AttemptLaunched):
            running.add(entry.event.task)
        elif isinstance(entry.event, ev.AttemptExited):
            running.discard(entry.event.task)
        most = max(most, len(running))
    return most


class Watcher(threading.Thread):
    """Reads the state file again and again; whatever it finds must be whole and valid."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.seen, self.bad, self.over = path, 0, "", threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.002):
            try:
                text = self.path.read_text(encoding="utf-8")
            except FileNotFoundError:
                continue
            self.seen += 1
            try:
                require_state_2_0(text)
            except (AssertionError, ValueError) as error:
                self.bad = self.bad or f"{error!r}: {text[:200]!r}"


@pytest.mark.quick
def test_four_tasks_run_side_by_side_with_their_own_logs_and_a_state_that_is_always_valid(tmp_path: Path) -> None:
    """T28 concurrent-window T04 T19: one window of four, and no instant without a whole state file."""
    names = ["a", "b", "c", "d"]
    script = {n: [[{"text": f"I am {n}"}, {"delay": 1.2}, done(write(f"{n}.txt", n))]] for n in names}
    policy = "concurrency = 4\nbatch_size = 4"
    project = Project(tmp_path, [task(n) for n in names], script, policy=policy).make()
    project.set_schedule("batch")
    watcher = Watcher(project.folder.state)
    watcher.start()
    assert project.run() == 0
    watcher.over.set()
    watcher.join()
    assert watcher.bad == "" and watcher.seen > 10
    assert overlap(project) == 4 and [w.tasks for w in project.find(ev.WindowOpened)] == [("a", "b", "c", "d")]
    assert project.logs() == sorted(f"{n}.{kind}.1.log" for n in names for kind in ("worker", "verify"))
    assert all(f"I am {n}" in project.log(n) for n in names)


def test_the_watcher_notices_a_state_file_that_is_overwritten_in_place(tmp_path: Path) -> None:
    """T19: the harness catches the planted bug it is there for."""
    path = tmp_path / "state.json"
    watcher = Watcher(path)
    path.write_text('{"state_version": "2.0", "run_id"')
    watcher.start()
    watcher.over.wait(0.1)
    watcher.over.set()
    watcher.join()
    assert watcher.bad


@pytest.mark.parametrize("schedule", ["auto", "task", "batch", "epoch", "off"])
def test_every_schedule_brings_a_graph_to_its_end(tmp_path: Path, schedule: str) -> None:
    """T04 T10 T22: with a failure that heals by itself, one for good, and what depends on it."""
    tasks = [task("a"), task("b", "a"), task("c"), task("d", "c"), task("e")]
    script = {"b": [{"result": "FAILED"}, {"result": "DONE"}], "c": {"result": "FAILED"}}
    project = Project(tmp_path, tasks, script, policy="concurrency = 3").make()
    project.set_schedule(schedule)
    assert project.run() == 3
    statuses = {name: entry["status"] for name, entry in project.state_file()["tasks"].items()}
    assert statuses == {"a": "DONE", "b": "DONE", "c": "FAILED", "d": "BLOCKED", "e": "DONE"}
    assert project.state().log.refused == [] and bool(project.find(ev.WindowOpened)) == (schedule != "off")
    require_state_2_0(project.folder.state.read_text())


def test_the_state_file_is_exact_whenever_a_window_has_closed(tmp_path: Path) -> None:
    """T19: also for tasks that are queued again in the same moment."""
    names = [f"t{n}" for n in range(5)]
    project = Project(tmp_path, [task(n) for n in names], {"t1": [{"result": "FAILED"}, {"result": "DONE"}]})
    project.make().set_schedule("auto")
    exact: list[bool] = []

    def during(lead: Lead) -> None:
        def heard(entry: ev.Recorded) -> None:
            if isinstance(entry.event, ev.WindowOpened) and entry.event.index > 1:
                exact.append(project.folder.state.read_text() == state_text(lead.state))

        lead.journal.listeners.append(heard)

    assert project.run(during=during) == 0
    assert len(exact) >= 3 and all(exact)


def test_between_windows_the_state_file_is_at_most_a_second_behind(tmp_path: Path) -> None:
    """T19: while another task of the run goes on and on."""
    project = Project(tmp_path, [task("a"), task("b")], {"a": {"hang": True}}, policy="concurrency = 2").make()

    def b_is_done() -> bool:
        return project.folder.state.exists() and project.state_file()["tasks"]["b"]["status"] == "DONE"

    with leading(project) as lead:
        until(b_is_done, beside=lead)
        settled = next(r for r in project.events() if isinstance(r.event, ev.TaskSettled))
        behind = project.folder.state.stat().st_mtime - datetime.fromisoformat(settled.at).timestamp()
    assert behind < 2.0


def test_two_hundred_tasks_eight_at_a_time(tmp_path: Path) -> None:
    """T04 T19: every one DONE once, the bound kept, the state file exact and equal to the exported one."""
    result = '{"contract_version":"2.0","task_id":"$1","status":"DONE","summary":"did it"}'
    block = f"<<<TASK_RESULT_V2>>>\n{result}\n<<<END_TASK_RESULT_V2>>>"
    (tmp_path / "agent.sh").write_text(f"cat <<EOF\n{block}\nEOF\n")
    agent = 'kind = "command"\nargv = ["sh", "agent.sh", "{task_id}"]'
    tasks = [task(f"t{n}", *([f"t{n // 3}"] if n > 8 else [])) for n in range(200)]
    project = Project(tmp_path, tasks, agent=agent, policy="concurrency = 8").make()
    assert project.run() == 0
    assert project.state().index.counts[TaskStatus.DONE] == 200 and 2 <= overlap(project) <= 8
    assert len(project.find(ev.AttemptStarted)) == 200
    require_state_2_0(project.folder.state.read_text())
    assert project.ganger("state", "export").stdout == project.folder.state.read_text()


def test_the_last_line_of_json_says_how_the_run_ended(tmp_path: Path) -> None:
    """T22 T26: run_finished with status, counts and reason; every line has its schema."""
    project = Project(tmp_path, [task("a"), task("b")], {"b": {"result": "FAILED"}}).make()
    made = project.ganger("run", "--json")
    lines = [json.loads(line) for line in made.stdout.splitlines()]
    assert made.returncode == 1 and lines[-1]["type"] == "run_finished" and all("schema" in line for line in lines)
    assert "b FAILED" in json.dumps(lines[-1])


@pytest.mark.quick
def test_only_and_max_tasks_limit_a_lead_and_leave_the_run_open(tmp_path: Path) -> None:
    """T04 T20 Z07: exit code 0 when what was asked for is DONE; the next lead does the rest."""
    project = Project(tmp_path, [task("a"), task("b"), task("c")], {"a": {"result": "FAILED"}}).make()
    assert project.run(only=("b",)) == 0
    assert project.state().status is RunStatus.RUNNING and project.state().index.counts[TaskStatus.DONE] == 1
    assert project.run(max_tasks=1) == 1
    assert project.run() == 1 and project.state().status is RunStatus.ABORTED
    assert project.run(only=("b",)) == 0


def test_an_unbroken_chain_runs_in_order(tmp_path: Path) -> None:
    """T02 T03: a task sees the verified work of what it depends on."""
    names = [f"n{n}" for n in range(5)]
    tasks = [task(name, *names[max(0, n - 1) : n]) for n, name in enumerate(names)]
    script = {name: done(write("chain.txt", f"{name}\n", op="append")) for name in names}
    project = Project(tmp_path, tasks[::-1], script, policy="concurrency = 3", files={"chain.txt": ""}).make()
    assert project.run() == 0 and (tmp_path / "chain.txt").read_text().split() == names
