"""Stopping, dying and going on: nothing lost, nothing half done, nothing left running."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.events import type_name
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.engine.lead import Lead
from ganger.errors import GangerError
from tests.engine.run_projects import SCRIPTED, Project, done, kill, leading, require_state_2_0, task, until, write
from tests.patience import stretched

pytestmark = pytest.mark.whole

D, P = TaskStatus.DONE, TaskStatus.PENDING
SLOW = [[{"files": {"begun.txt": "x"}}, {"delay": 60}, {"result": "DONE"}]]


def starts(project: Project) -> dict[str, int]:
    names = [event.task for event in project.find(ev.AttemptStarted)]
    return {name: names.count(name) for name in names}


def is_recorded(project: Project, kind: str, name: str = "a") -> Callable[[], bool]:
    return lambda: (project.folder.path / "ganger.db").exists() and kind in _happened(project, name)


def _happened(project: Project, name: str) -> list[str]:
    try:
        return project.happened(name)
    except GangerError:
        return []


@pytest.mark.quick
@pytest.mark.brief(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_agent_and_the_same_command_continues(tmp_path: Path, number: signal.Signals) -> None:
    """T28 signal-shutdown T23: exit 130, nothing alive, a valid state; then finished work is not run again."""
    project = Project(tmp_path, [task("a"), task("b", "a"), task("c", "b")], {"b": SLOW}).make()
    with leading(project) as lead:
        until(lambda: (tmp_path / "begun.txt").exists(), beside=lead)
        lead.send_signal(number)
        assert lead.wait(20) == 130
        out, err = lead.communicate()
        assert "Traceback" not in err + out and "run the same command again" in out
    assert project.processes() == []
    require_state_2_0(project.folder.state.read_text())
    assert project.folder.state.read_text() == state_text(project.state())
    assert [project.status(n) for n in "abc"] == [D, P, P] and project.state_file()["run_status"] == "RUNNING"
    project.write_script({})
    assert project.ganger("run").returncode == 0
    assert starts(project) == {"a": 1, "b": 2, "c": 1} and project.state().tasks["b"].counters.worker_attempts == 1


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    """T23: also when an agent ignores the first."""
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); open('begun.txt','w'); time.sleep(60)"
    agent = f'kind = "command"\nargv = [{sys.executable!r}, "-c", {json.dumps(code)}]'
    project = Project(tmp_path, agent=agent, policy="").make()
    (tmp_path / "ganger.toml").write_text(
        (tmp_path / "ganger.toml").read_text().replace("grace_sec = 0.5", "grace_sec = 50")
    )
    with leading(project) as lead:
        until(lambda: (tmp_path / "begun.txt").exists(), beside=lead)
        lead.send_signal(signal.SIGINT)
        until(lambda: any(isinstance(r.event, ev.StopRequested) for r in project.events()), beside=lead)
        lead.send_signal(signal.SIGINT)
        assert lead.wait(10) == 130
    until(lambda: project.processes() == [])
    assert project.run(during=lambda lead: lead.stop("test")) == 130


def test_a_stop_during_verification_takes_the_change_back(tmp_path: Path) -> None:
    """T23 T18: the unverified file is gone, and so is the verifier."""
    script = {"a": done(write("out.txt", "unverified"))}
    project = Project(tmp_path, script=script, steps=({"name": "slow", "cmd": "sleep 60"},)).make()
    before = project.tree()
    with leading(project) as lead:
        until(lambda: (tmp_path / "out.txt").exists() and len(project.processes()) == 1, beside=lead)
        lead.send_signal(signal.SIGTERM)
        assert lead.wait(20) == 130
    assert project.tree() == before and project.processes() == [] and project.status() is P


def test_a_stop_while_waiting_for_a_turn_interrupts_the_waiting_ones_too(tmp_path: Path) -> None:
    """T23: neither hangs, neither lands."""
    script = {n: done(write(f"{n}.txt", n)) for n in "abc"}
    project = Project(tmp_path, [task(n) for n in "abc"], script, policy="concurrency = 3")
    project.steps = ({"name": "slow", "cmd": "sleep 60"},)
    before = project.make().tree()
    with leading(project) as lead:
        until(lambda: all(is_recorded(project, "result_accepted", n)() for n in "abc"), beside=lead)
        lead.send_signal(signal.SIGINT)
        assert lead.wait(20) == 130
    assert project.tree() == before and len(project.find(ev.AttemptInterrupted)) == 3


def test_a_stop_between_two_quality_steps_starts_no_further_one(tmp_path: Path) -> None:
    """T23 Z04: steps that do not block do not outlive the stop either."""
    names = [f"q{n}" for n in range(3)]
    steps = tuple({"name": name, "cmd": "sleep 60"} for name in names)
    project = Project(tmp_path, steps=steps, tiers="\n".join(f'"check/{n}" = "quality"' for n in names)).make()
    with leading(project) as lead:
        until(lambda: project.processes() and is_recorded(project, "verify_started")(), beside=lead)
        lead.send_signal(signal.SIGINT)
        assert lead.wait(10) == 130
    assert project.status() is P


def test_a_stop_that_comes_before_anything_started_is_heeded(tmp_path: Path) -> None:
    """T23: a signal in the first moment is not lost."""
    project = Project(tmp_path, script={"a": SLOW}).make()
    assert project.run(during=lambda lead: lead.stop("early")) == 130
    assert project.find(ev.AttemptLaunched) == [] and project.state().status is RunStatus.RUNNING


def test_a_stop_in_the_tick_of_a_claim_launches_nothing_that_outlives_it(tmp_path: Path) -> None:
    """T23: between the claim's commit and the launch."""
    project = Project(tmp_path, script={"a": SLOW}).make()

    def stop_on_claim(lead: object) -> None:
        from ganger.engine.lead import Lead

        assert isinstance(lead, Lead)

        def heard(entry: ev.Recorded) -> None:
            if isinstance(entry.event, ev.AttemptStarted):
                lead.stop("now")

        lead.journal.listeners.append(heard)

    assert project.run(during=stop_on_claim) == 130
    assert project.processes() == [] and project.status() is P


def agent_works(project: Project) -> bool:
    return (project.root / "begun.txt").exists()


def verifier_works(project: Project) -> bool:
    return bool(project.processes()) and (project.root / "out.txt").exists()


SLOW_THEN_DONE = [{"files": {"begun.txt": "x"}}, {"delay": 1}, done(write("out.txt", "once"))]
Case = tuple[object, str, Callable[[Project], bool]]
KILLED: dict[str, Case] = {
    "during the agent": ([SLOW_THEN_DONE], "true", agent_works),
    "during verification": ([done(write("out.txt", "once"))], "sleep 60", verifier_works),
}


def verify_a_by(root: Path, command: str) -> None:
    line = shlex.join(["sh", "-c", f"[ ! -f out.txt ] || {command}"])
    profiles = {"profiles": {"check": {"steps": [{"name": "x", "cmd": line}]}}}
    (root / "verify.json").write_text(json.dumps(profiles))


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize("case", KILLED)
def test_after_kill_9_the_attempt_goes_on_where_it_stands(tmp_path: Path, case: str) -> None:
    """T28 resume T20 G01 H10: the agent lives and is adopted; verification is ended and run again; one start each."""
    behaviour, command, ready = KILLED[case]
    project = Project(tmp_path, [task("first"), task("a", "first")], {"a": behaviour}).make()
    verify_a_by(tmp_path, command)
    with leading(project) as lead:
        until(lambda: ready(project), beside=lead)
        kill(lead)
        assert project.processes()
        verify_a_by(tmp_path, "true")
        assert project.run() == 0 and project.processes() == []
    assert starts(project) == {"first": 1, "a": 1} and project.state().tasks["a"].counters.worker_attempts == 1
    assert (tmp_path / "out.txt").read_text() == "once"


KILL_AT = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.engine.run_projects import Project
from ganger.core.events import type_name
from ganger.workspaces.direct import write as apply
def die():
    os.kill(os.getpid(), signal.SIGKILL)
landed, land = [], apply._land
def dying_land(*given):
    land(*given)
    landed.append(given)
    if len(landed) == 2:
        die()
if sys.argv[2] == "half_written":
    apply._land = dying_land
def during(lead):
    lead.journal.listeners.append(lambda entry: die() if type_name(entry.event) == sys.argv[2] else None)
Project(Path(sys.argv[1])).run(during=during)
"""
MOMENTS = (
    *("run_started", "lead_started", "attempt_started", "attempt_launched", "attempt_exited", "result_accepted"),
    *("writes_intended", "half_written", "writes_applied", "verify_started", "verify_finished", "task_settled"),
    *("writes_rolled_back", "attempt_failed", "run_finished"),
)
GOOD = done(*(write(f"good{n}.txt", "x") for n in range(3)))
BAD = done(write("bad.txt", "x"))


def killed_at(root: Path, moment: str) -> Project:
    """A run of two tasks, one that lands and one that is rolled back first, whose lead dies at that moment."""
    steps = ({"name": "no-bad", "cmd": "test ! -e bad.txt"},)
    project = Project(
        root, [task("a"), task("b", "a")], {"a": GOOD, "b": [BAD, {"result": "DONE"}]}, steps=steps
    ).make()
    words = [sys.executable, "-c", KILL_AT, str(root), moment, str(Path(__file__).parents[2])]
    died = subprocess.run(words, capture_output=True, text=True, timeout=stretched(60))
    assert died.returncode == -signal.SIGKILL, died.stderr
    return project


def is_whole(project: Project) -> bool:
    found = {name for name in project.tree() if name.startswith(("good", "bad"))}
    return found == {"good0.txt", "good1.txt", "good2.txt"}


@pytest.mark.brief(5)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_lead_killed_right_after_any_event_is_continued_without_loss(tmp_path: Path, moment: str) -> None:
    """T28 resume T19 T20: at each recorded step, and with two of three files written."""
    project = killed_at(tmp_path, moment)
    assert project.run() == 0 and is_whole(project) and starts(project) == {"a": 1, "b": 2}
    assert project.happened("a").count("task_settled") == 1 and project.state().log.refused == []
    require_state_2_0(project.folder.state.read_text())


def test_the_kill_harness_notices_a_recovery_that_does_not_put_files_back(tmp_path: Path) -> None:
    """T28 resume: a backup that is gone is said plainly, and the harness sees the half-written tree."""
    project = killed_at(tmp_path, "half_written")
    shutil.rmtree(project.folder.path / "backups" / "a.1")
    project.write_script({})
    assert project.run() != 0 and not is_whole(project)
    assert project.state().tasks["a"].failure.failure_class == "fatal"


@pytest.mark.quick
def test_a_changed_manifest_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """T28 digest-mismatch T20: nothing is run, nothing is lost."""
    project = Project(tmp_path, [task("a"), task("b")]).make()
    assert project.run(only=("a",)) == 0
    count = len(project.events())
    project.tasks = [task("a"), task("b", "a")]
    project.make()
    made = project.ganger("run", "--json")
    assert made.returncode == 1 and json.loads(made.stdout)["error"]["code"] == "MANIFEST_CHANGED"
    assert len(project.events()) == count


@pytest.mark.parametrize("change", [{"priority": 3}, {"metadata": {"role": "worker", "max_attempts": 3}}])
def test_what_the_digest_leaves_out_is_compared_too(tmp_path: Path, change: dict[str, object]) -> None:
    """T28 digest-mismatch T20: priorities, roles, budgets and files are part of the run."""
    project = Project(tmp_path, [task("a"), task("b")]).make()
    assert project.run(only=("a",)) == 0
    project.tasks = [task("a"), task("b", **change)]
    with pytest.raises(GangerError, match=r"changed since run r1 began: changed +b") as caught:
        project.make().run()
    assert caught.value.code == "MANIFEST_CHANGED"


def test_a_completed_run_has_nothing_more_to_do(tmp_path: Path) -> None:
    """T20: run again, no agent is started."""
    project = Project(tmp_path).make()
    assert project.run() == 0 and project.run() == 0
    assert len(project.find(ev.AttemptStarted)) == 1


def test_a_failed_run_continued_gives_another_chance_only_where_attempts_are_left(tmp_path: Path) -> None:
    """T20 T13: by policy; what waited for it comes back with it."""
    tasks = [task("spent"), task("blocked"), task("behind", "blocked")]
    script = {"spent": {"result": "FAILED"}, "blocked": {"result": "BLOCKED"}}
    project = Project(tmp_path, tasks, script).make()
    assert project.run() == 3
    project.write_script({"spent": {"result": "FAILED"}})
    assert project.run() == 1
    assert starts(project) == {"spent": 2, "blocked": 2, "behind": 1}
    assert [project.status(t) for t in ("spent", "blocked", "behind")] == [TaskStatus.FAILED, D, D]


def test_a_second_lead_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    """T20 W03: RUN_LOCKED, with the number of the process that leads."""
    project = Project(tmp_path, script={"a": SLOW}).make()
    with leading(project) as lead:
        until(lambda: (tmp_path / "begun.txt").exists(), beside=lead)
        made = project.ganger("run", "--json")
        error = json.loads(made.stdout)["error"]
        assert made.returncode == 1 and error["code"] == "RUN_LOCKED" and str(lead.pid) in error["message"]
        assert len(project.processes()) == 1


def test_a_run_of_the_same_name_in_another_project_is_left_alone(tmp_path: Path) -> None:
    """T20: recovery ends only the strays of its own folder."""
    other = Project(tmp_path / "other", script={"a": SLOW}).make()
    mine = Project(tmp_path / "mine", script={"a": SLOW}).make()
    with leading(other) as living:
        until(lambda: (other.root / "begun.txt").exists(), beside=living)
        with leading(mine) as dying:
            until(lambda: (mine.root / "begun.txt").exists(), beside=dying)
            kill(dying)
        mine.write_script({})
        assert mine.run() == 0 and len(other.processes()) == 1 and living.poll() is None


def test_a_stray_that_left_its_process_group_is_ended_too(tmp_path: Path) -> None:
    """T20 T23: found by the mark it inherits, wherever it fled."""
    argv = ["sh", "-c", "setsid sleep 1000 & touch begun.txt; sleep 1000"]
    project = Project(tmp_path, agent=f'kind = "command"\nargv = {json.dumps(argv)}').make()
    with leading(project) as lead:
        until(lambda: (tmp_path / "begun.txt").exists() and len(project.processes()) == 3, beside=lead)
        kill(lead)
        assert len(project.processes()) == 3
        assert project.run(during=lambda lead: lead.stop("only recover")) == 130
        assert project.processes() == []


def stop_at(kind: type[ev.Event]) -> Callable[[Lead], None]:
    def during(lead: Lead) -> None:
        lead.journal.listeners.append(lambda entry: lead.stop("asked to") if isinstance(entry.event, kind) else None)

    return during


def test_a_stop_during_verification_keeps_the_answer_that_was_paid_for(tmp_path: Path) -> None:
    """T23 G01: files are put back, and the next run reads the same log instead of asking the agent again."""
    project = Project(tmp_path, script={"a": done(write("out.txt", "once"))}).make()
    verify_a_by(tmp_path, "sleep 60")
    assert project.run(during=stop_at(ev.VerifyStarted)) == 130
    assert not (tmp_path / "out.txt").exists() and project.status() is TaskStatus.PENDING
    verify_a_by(tmp_path, "true")
    assert project.run() == 0 and (tmp_path / "out.txt").read_text() == "once"
    assert len(project.find(ev.AttemptLaunched)) == 1 and project.state().tasks["a"].counters.worker_attempts == 1


def test_a_stop_that_meets_a_start_on_its_way_ends_that_agent_too(tmp_path: Path) -> None:
    """T23: the claim is recorded, the keeper has not heard of it yet."""
    project = Project(tmp_path, [task("a"), task("b")], default={"hang": True}, policy="concurrency = 2").make()
    assert project.run(during=stop_at(ev.AttemptStarted)) == 130
    assert project.processes() == [] and project.state().index.counts[TaskStatus.PENDING] == 2


def test_an_agent_that_a_stop_had_to_kill_has_not_crashed(tmp_path: Path) -> None:
    """T23 H04: SIGTERM is asked for, then the lead dies; nobody pays for what a stop did."""
    argv = ["sh", "-c", "trap : TERM; touch begun.txt; while :; do sleep 1; done"]
    agent = f'kind = "command"\nargv = {json.dumps(argv)}'
    project = Project(tmp_path, agent=agent).make()
    with leading(project) as lead:
        until(lambda: (tmp_path / "begun.txt").exists(), beside=lead)
        lead.terminate()
        until(is_recorded_run(project, "stop_requested"), beside=lead)
        lead.terminate()
        assert lead.wait(20) == 130
    (tmp_path / "ganger.toml").write_text((tmp_path / "ganger.toml").read_text().replace(agent, SCRIPTED))
    project.write_script({})
    assert project.run() == 0 and project.state().tasks["a"].counters.respawns == 0
    assert not any(event.failure_class == "crash" for event in project.find(ev.AttemptFailed))


def is_recorded_run(project: Project, kind: str) -> Callable[[], bool]:
    return lambda: any(type_name(entry.event) == kind for entry in project.events())
