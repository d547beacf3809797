"""From a merged change to DONE: real git, real jobs, real leads that are stopped in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.engine.lead import Lead
from tests.engine.delivery_runs import DeliveryProject
from tests.engine.git_runs import edits, git
from tests.engine.run_projects import kill, task, until
from tests.patience import stretched

pytestmark = pytest.mark.whole

GOOD = {"a": edits({"a.txt": "fine\n"})}
MENDED = {"a": [edits({"a.txt": "broken\n"}), edits({"a.txt": "whole\n"})]}
LEAK = "AKIA" + "IOSFODNN7EXAMPLQ"


@pytest.mark.quick
def test_a_task_is_done_once_its_own_commit_is_on_the_remote_and_green(tmp_path: Path) -> None:
    """D01 D02 D07: pushed, followed, judged, and only then DONE."""
    project = DeliveryProject(tmp_path / "p", script=GOOD).make()
    assert project.run() == 0
    assert project.is_proved()
    assert project.state().tasks["a"].delivery.commit == project.tip()  # type: ignore[union-attr]
    kinds = [type(event).__name__ for event in project.of(ev.Merged, ev.PushIntended, ev.Pushed, ev.CiJudged)]
    assert kinds == ["Merged", "PushIntended", "Pushed", "CiJudged"]


def test_a_red_ci_is_mended_by_another_attempt_that_gets_the_log(tmp_path: Path) -> None:
    """D06: FIXING_CI; no worker attempt pays, and the lock of the red commit is its successor."""
    project = DeliveryProject(tmp_path / "p", script=MENDED).make()
    assert project.run() == 0
    now = project.state().tasks["a"]
    assert (now.counters.ci_fixes, now.counters.worker_attempts, len(project.pushed())) == (1, 1, 2)
    assert "AssertionError: a.txt is broken" in project.prompt("a", 2)
    assert project.is_proved()


def test_after_five_mends_a_person_is_asked_and_was_asked_before(tmp_path: Path) -> None:
    """D06: up to 5 attempts; a question while attempts go on, and ESCALATED at the end."""
    broken = [edits({"a.txt": f"broken {n * 'x'}\n"}) for n in range(1, 9)]
    project = DeliveryProject(tmp_path / "p", script={"a": broken}).make()
    assert project.run() == 4
    state = project.state()
    kinds = [question.kind for question in state.inbox.questions.values()]
    assert state.tasks["a"].status is TaskStatus.ESCALATED
    assert (state.tasks["a"].counters.ci_fixes, project.workers(), len(project.pushed())) == (5, 6, 6)
    assert kinds.count("ci") == 1 and "escalated" in kinds


def test_a_stop_while_ci_runs_costs_nothing(tmp_path: Path) -> None:
    """D18 T23: the next lead goes on at the ledger: no second push, no second worker."""
    wait = tmp_path / "go"
    job = ("sh", "-c", f"while [ ! -e {wait} ]; do sleep 0.05; done")
    project = DeliveryProject(tmp_path / "p", script=GOOD, jobs={"test": job}, more='[sandbox]\nuse = "off"').make()
    with project.start() as process:
        until(lambda: bool(project.of(ev.CiSeen)), beside=process)
        process.terminate()
        process.communicate(timeout=stretched(30))
    assert process.returncode == 130
    wait.touch()
    assert project.run() == 0
    assert (project.workers(), len(project.pushed()), len(project.of(ev.Pushed))) == (1, 1, 1)
    assert project.is_proved()


def test_what_others_push_meanwhile_is_taken_in(tmp_path: Path) -> None:
    """D05: the remote went on; the run's branch goes on from there, nothing is forced."""
    project = DeliveryProject(tmp_path / "p", script=GOOD).make()
    git(tmp_path, "clone", "-q", str(project.remote), "other")
    other = tmp_path / "other"
    (other / "theirs.txt").write_text("theirs\n")
    git(other, "add", "-A")
    git(other, "-c", "user.name=o", "-c", "user.email=o@example.org", "commit", "-qm", "theirs")
    git(other, "push", "-q", "origin", "main")
    assert project.run() == 0
    assert git(project.remote, "show", "main:theirs.txt") == "theirs"
    assert project.is_proved() and len(project.of(ev.HeadMoved)) == 1


def test_a_task_that_waits_for_a_person_goes_on_without_a_worker(tmp_path: Path) -> None:
    """D03 G01: what is paid for is not paid for again."""
    hook = "#!/bin/sh\ntest ! -e $GIT_DIR/shut\n"
    project = DeliveryProject(tmp_path / "p", script=GOOD).make()
    (project.remote / "hooks" / "pre-receive").write_text(hook)
    (project.remote / "hooks" / "pre-receive").chmod(0o755)
    (project.remote / "shut").touch()
    assert project.run() == 4
    now = project.state().tasks["a"]
    assert (now.status, now.block_reason) == (TaskStatus.BLOCKED, BlockReason.EXTERNAL)
    (project.remote / "shut").unlink()
    assert project.ganger("retry", "a").returncode == 0
    assert project.run() == 0
    assert project.workers() == 1 and project.is_proved()


def test_a_mend_that_changes_nothing_lets_ci_run_again(tmp_path: Path) -> None:
    """D06: a flaky job is no fault of the code."""
    flag = tmp_path / "seen"
    job = ("sh", "-c", f"test -e {flag} || (touch {flag}; echo 'error: odd'; exit 1)")
    script = {"a": [edits({"a.txt": "fine\n"}), edits({})]}
    project = DeliveryProject(tmp_path / "p", script=script, jobs={"test": job}, more='[sandbox]\nuse = "off"').make()
    assert project.run() == 0
    assert len(project.pushed()) == 1 and project.is_proved()
    causes = [event.cause for event in project.of(ev.Retriggered) if isinstance(event, ev.Retriggered)]
    assert causes == ["mend_1"]


def test_a_secret_in_a_ci_log_halts_everything_and_is_shown_nowhere(tmp_path: Path) -> None:
    """D12: fatal; masked in state, prompts, questions, logs."""
    job = ("sh", "-c", f"echo error: the key is {LEAK}; exit 1")
    project = DeliveryProject(tmp_path / "p", [task("a"), task("b")], GOOD, jobs={"test": job}).make()
    project.run()
    state = project.state()
    assert state.tasks["a"].failure.failure_class == "fatal" and "" in state.chains.halted
    texts = [p.read_bytes() for p in project.folder.path.rglob("*") if p.is_file() and "/ci/" not in str(p)]
    assert not any(LEAK.encode() in text for text in texts)
    assert state.tasks["b"].status is not TaskStatus.DONE


def test_a_task_that_changes_nothing_is_judged_by_the_commit_it_was_verified_on(tmp_path: Path) -> None:
    """D01: also of nothing there is proof."""
    project = DeliveryProject(tmp_path / "p", script={"a": edits({})}).make()
    assert project.run() == 0
    assert project.is_proved() and project.pushed() == []


@pytest.mark.quick
@pytest.mark.brief(1)
@pytest.mark.parametrize("schedule", ["auto", "off", "epoch"])
@pytest.mark.parametrize("pushes", ["train", "each"])
def test_many_tasks_of_one_repository_are_judged_by_a_tip_that_holds_them(
    tmp_path: Path, schedule: str, pushes: str
) -> None:
    """D02 T04: windows do not wait for CI; one by one, no two tasks share a verdict."""
    names = [f"t{n}" for n in range(6)]
    script = {name: edits({f"{name}.txt": "fine\n"}) for name in names}
    project = DeliveryProject(
        tmp_path / "p",
        [task(name) for name in names],
        script,
        policy="concurrency = 3",
        settings=f'pushes = "{pushes}"',
    ).make()
    project.set_schedule(schedule)
    assert project.run() == 0
    tips = {project.state().tasks[name].delivery.green for name in names}  # type: ignore[union-attr]
    assert len(tips) <= 6 and (pushes == "train" or len(tips) == 6) and all(map(project.is_proved, names))


def test_a_drain_waits_for_what_is_being_delivered(tmp_path: Path) -> None:
    """T23: running attempts finish, and a delivery is one."""
    job = ("sh", "-c", "sleep 0.5")
    project = DeliveryProject(tmp_path / "p", [task("a"), task("b", "a")], GOOD, jobs={"test": job}).make()

    def during(lead: Lead) -> None:
        lead.journal.listeners.append(lambda recorded: drain(lead) if isinstance(recorded.event, ev.Pushed) else None)

    def drain(lead: Lead) -> None:
        lead.journal.record(ev.DrainRequested("a test"))

    project.run(during)
    assert project.status("a") is TaskStatus.DONE and project.status("b") is TaskStatus.PENDING


def test_ci_that_runs_here_is_not_begun_again_by_the_next_lead(tmp_path: Path) -> None:
    """D18: a lead that dies takes no job with it, and the next one waits for that very job."""
    go, begun = tmp_path / "go", tmp_path / "begun"
    job = ("sh", "-c", f"echo x >> {begun}; while [ ! -e {go} ]; do sleep 0.05; done")
    project = DeliveryProject(tmp_path / "p", script=GOOD, jobs={"test": job}, more='[sandbox]\nuse = "off"').make()
    with project.start() as process:
        until(begun.exists, beside=process)
        kill(process)
        process.communicate(timeout=stretched(30))
    with project.start() as process:
        until(lambda: len(project.of(ev.LeadStarted)) == 2, beside=process)
        go.touch()
        process.communicate(timeout=stretched(60))
    assert begun.read_text() == "x\n" and project.is_proved()


def test_a_person_can_end_a_delivery_and_take_it_up_again(tmp_path: Path) -> None:
    """G12: whoever does not want to wait for CI need not stop the run; nothing is pushed or paid for again."""
    go = tmp_path / "go"
    job = ("sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done")
    project = DeliveryProject(tmp_path / "p", script=GOOD, jobs={"test": job}, more='[sandbox]\nuse = "off"').make()
    with project.start() as process:
        until(lambda: bool(project.of(ev.CiSeen)), beside=process)
        assert "no longer followed" in project.ganger("end", "a").stdout
        process.communicate(timeout=stretched(60))
    assert project.state().tasks["a"].block_reason is BlockReason.PAUSED
    go.touch()
    assert project.ganger("retry", "a").returncode == 0
    assert project.run() == 0
    assert (project.workers(), len(project.pushed())) == (1, 1) and project.is_proved()
