"""Sessions ask a real lead for tasks: one winner each, whoever asks twice, vanishes, waits, or outlives a lead."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.worker.find_run import RunAddress
from tests.engine.asking_sessions import PEOPLE, Aside, Session, people_in_git, people_project
from tests.engine.run_projects import Project, kill, leading, task, until, write

pytestmark = pytest.mark.whole

ONE = [task("a", **PEOPLE)]
TWO = [task("a", **PEOPLE), task("b", **PEOPLE)]


def claims(project: Project) -> list[tuple[str, int, str]]:
    return [(e.task, e.attempt, e.worker) for e in project.find(ev.AttemptStarted)]


def test_two_that_go_by_one_name_are_one_worker(tmp_path: Path) -> None:
    """W03 Z02: they are told of the same task, which is claimed once."""
    project = people_project(tmp_path, TWO)
    with leading(project):
        Session(project).ask(roles=["nobody"])
        first, second = (one.answer() for one in [Aside(Session(project), 20), Aside(Session(project), 20)])
        assert first["task"] == second["task"] and first["token"] == second["token"]
        assert claims(project) == [("a", 1, "me")]


def test_many_that_ask_for_one_task_at_once_find_one_winner(tmp_path: Path) -> None:
    """Z02: the others are told that there is none."""
    project = people_project(tmp_path, ONE)
    with leading(project):
        Session(project).ask(roles=["nobody"])
        asking = [Aside(Session(project, f"w{n}"), 0) for n in range(30)]
        winners = [reply["worker"] for one in asking if (reply := one.answer())["task"]]
        assert len(winners) == 1 and claims(project) == [("a", 1, winners[0])]


def test_a_session_that_vanishes_loses_its_task_and_its_work_is_kept(tmp_path: Path) -> None:
    """W03 H10 D18: its lease ends, the next one gets its files as a commit, and its own word comes too late."""
    project = people_in_git(tmp_path, ONE, more="[health]\nlease_sec = 1\nlook_sec = 0.1\n")
    with leading(project) as lead:
        lost = Session(project, "lost").get()
        (lost.workspace / "half.txt").write_text("half\n")
        found = Session(project, "found").get(wait_sec=30)
        assert (found.task, found.attempt) == ("a", 2)
        (saved,) = project.find(ev.WorkSaved)
        assert saved.files == ("half.txt",) and project.in_store("show", f"{saved.place}:half.txt") == "half"
        assert saved.place in found.reply["task"]["prompt"] and lost.report().status == 409
        assert found.do().taken and lead.wait(30) == 0 and project.merged_files().count("a.txt") == 1


def hang_up_after_asking(project: Project, worker: str) -> None:
    door = RunAddress(str(project.folder.path))
    body = f'{{"worker": "{worker}", "wait_sec": 20}}'
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(door.address)
        head = f"POST /v1/next HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {door.token}\r\n"
        head += "Content-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())


def test_who_hangs_up_before_it_is_told_takes_no_task_with_it(tmp_path: Path) -> None:
    """W03: the task is free again at once, for anybody, and nobody pays."""
    project = people_in_git(tmp_path, ONE)
    with leading(project) as lead:
        Session(project).ask(roles=["nobody"])
        for number in range(3):
            hang_up_after_asking(project, f"gone-{number}")
            until(lambda: not project.state().index.running, beside=lead)
        held = Session(project).get(wait_sec=20)
        assert held.task == "a" and held.do().taken and lead.wait(30) == 0
    assert project.state().tasks["a"].counters.worker_attempts == 1 and not project.find(ev.AttemptFailed)
    assert {e.verdict for e in project.find(ev.WorkerEnding)} <= {"untold"}


def test_a_claim_whose_answer_was_lost_with_the_lead_is_told_again(tmp_path: Path) -> None:
    """H10 G01: the same question gets the same task and attempt from the next lead."""
    project = people_in_git(tmp_path, TWO)
    with leading(project) as lead:
        Session(project).ask(roles=["nobody"])
        with _asking(project, '{"id": "q1", "worker": "me", "wait_sec": 20}'):
            until(lambda: claims(project), beside=lead)
            kill(lead)
    with leading(project):
        held = Session(project).get(request="q1")
        assert [(held.task, held.attempt, "me")] == claims(project)
        assert held.do().taken


def test_a_dead_lead_takes_at_most_the_last_heartbeat_with_it(tmp_path: Path) -> None:
    """H09 H10: the next one knows the worker as it was one beat before, and goes on hearing it."""
    project = people_in_git(tmp_path, ONE)
    with leading(project) as lead:
        held = Session(project).get()
        held.say("heartbeat", step="one")
        until(lambda: _step(project) == "one", beside=lead)
        assert held.say("heartbeat", step="two").taken
        kill(lead)
    assert _step(project) in ("one", "two")
    with leading(project) as lead:
        assert Session(project).get().say("heartbeat", step="three").taken
        until(lambda: _step(project) == "three", beside=lead)
        assert held.do().taken and lead.wait(30) == 0


def _step(project: Project) -> str:
    worker = project.state().tasks["a"].worker
    return worker.step if worker is not None else ""


@contextlib.contextmanager
def _asking(project: Project, body: str) -> Iterator[None]:
    """Asks, and does not read the answer; who hangs up before it is told takes no task."""
    door = RunAddress(str(project.folder.path))
    head = f"POST /v1/next HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {door.token}\r\nContent-Type: application/json"
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(door.address)
        line.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        yield


@pytest.mark.brief(1)
@pytest.mark.parametrize("words", [("stop",), ("stop", "--drain")], ids=["stop", "drain"])
def test_who_waits_when_a_run_is_stopped_is_told_at_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    """T23 G02: nobody waits for a lead that is gone."""
    project = people_project(tmp_path, [task("a", **PEOPLE), task("b", "a", **PEOPLE)])
    with leading(project) as lead:
        held = Session(project, "one").get()
        waits = Session(project, "two").ask_aside(wait_sec=50)
        project.ganger(*words)
        reply = waits.answer()
        assert reply["task"] is None and "ending" in reply["why"]
        if "--drain" in words:
            assert lead.poll() is None and held.report(write("a.txt", "a\n")).taken
        assert lead.wait(30) == 130
    wanted = TaskStatus.DONE if "--drain" in words else TaskStatus.PENDING
    assert project.status("a") is wanted and not project.find(ev.AttemptFailed)


def test_a_stopped_run_gives_a_session_its_task_again(tmp_path: Path) -> None:
    """H10: what it had in its folder is kept, and no attempt is used up."""
    project = people_in_git(tmp_path, ONE)
    with leading(project) as lead:
        held = Session(project).get()
        (held.workspace / "half.txt").write_text("half\n")
        project.ganger("stop")
        assert lead.wait(30) == 130
    with leading(project) as lead:
        again = Session(project).get()
        assert (again.task, again.attempt) == ("a", 2) and project.state().tasks["a"].work.saved
        assert again.do().taken and lead.wait(30) == 0


def test_nobody_is_given_a_task_while_the_run_is_paused(tmp_path: Path) -> None:
    """T23: who waits gets it when the run goes on."""
    project = people_project(tmp_path, ONE)
    with leading(project) as lead:
        Session(project).ask(roles=["nobody"])
        project.ganger("pause")
        until(lambda: project.state().lead.paused, beside=lead)
        assert "paused" in Session(project).ask()["why"]
        waits = Session(project).ask_aside(wait_sec=50)
        project.ganger("resume")
        assert waits.answer()["task"]["id"] == "a" and claims(project) == [("a", 1, "me")]


def test_sessions_work_through_windows_that_grow(tmp_path: Path) -> None:
    """T10 G02: a window is handed out, settled, and the next one is larger."""
    project = people_in_git(tmp_path, [task(f"t{n}", **PEOPLE) for n in range(6)])
    project.set_schedule("auto")
    with leading(project) as lead:
        for _ in range(6):
            assert Session(project).get().do().taken
        assert lead.wait(30) == 0
    assert [e.size for e in project.find(ev.WindowOpened)] == [1, 2, 3]


def test_a_session_may_leave_with_a_checkpoint_and_another_goes_on(tmp_path: Path) -> None:
    """D18 Z07: no counter pays; the next one is told where it stood."""
    project = people_in_git(tmp_path, ONE)
    with leading(project) as lead:
        first = Session(project, "one").get()
        (first.workspace / "half.txt").write_text("half\n")
        assert first.say("checkpoint", done=["half"], remaining=["the other half"], leave=True).taken
        second = Session(project, "two").get()
        assert second.attempt == 2 and "the other half" in second.reply["task"]["prompt"]
        assert second.do().taken and lead.wait(30) == 0 and not project.find(ev.AttemptFailed)
