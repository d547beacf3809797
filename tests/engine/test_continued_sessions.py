"""An agent's session goes on where its work is still there; what it tells of itself decides what follows."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.engine.lead import Lead
from ganger.errors import InputError
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, leading, task, until
from tests.engine.speaking_agent import Speech, speaking
from tests.patience import stretched

pytestmark = pytest.mark.whole

HALF, REST = {"write": {"half.txt": "half\n"}}, {"write": {"rest.txt": "rest\n"}}
KILLED, DONE = {"kill": True}, {"done": True}


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speech:
    return speaking(tmp_path, monkeypatch)


@pytest.fixture
def in_git(tmp_path: Path, speech: Speech) -> Callable[..., GitProject]:
    def make(*attempts: list[dict[str, Any]], policy: str = "") -> GitProject:
        return GitProject(tmp_path / "p", agent=speech.write(*attempts), policy=policy).make()

    return make


def at(recorded: str) -> float:
    return datetime.fromisoformat(recorded).timestamp()


def ended(project: Project) -> TaskState:
    return project.state().tasks["a"]


def test_after_a_crash_the_session_goes_on_in_the_same_workspace(in_git: Any, speech: Speech) -> None:
    """H05 T24: with what the agent had edited, and told that it was interrupted; only the respawn is counted."""
    project = in_git([HALF, KILLED], [REST, DONE])
    assert project.run() == 0
    first, second = speech.starts()
    assert speech.sessions() == ["", "s-1"]
    assert first["cwd"] == second["cwd"] and first["home"] == second["home"]
    assert "half.txt" not in first["files"] and "half.txt" in second["files"]
    assert "continued" in second["prompt"] and all("Do it." in start["prompt"] for start in (first, second))
    assert {"half.txt", "rest.txt"} <= set(project.merged_files())
    task = ended(project)
    assert (task.status, task.counters.worker_attempts, task.counters.respawns) == (TaskStatus.DONE, 1, 1)


def test_an_answer_counts_whatever_its_session_says_after_it(tmp_path: Path) -> None:
    """H05 G22: a session that went on and answered is not begun afresh, which would be paid twice."""
    call = {"sign": {"is": "ToolStarted", "id": "1", "name": "edit"}}
    crash = [{"sign": {"is": "Session", "id": "s1"}}, call, {"exit": 9}]
    full = {"sign": {"is": "Over", "how": "unfit", "text": "prompt is too long"}}
    answers = [call, {"files": {"rest.txt": "rest\n"}}, {"result": "DONE"}, full]
    project = GitProject(tmp_path / "p", script={"a": [crash, answers]}).make()
    assert project.run() == 0 and "rest.txt" in project.merged_files()
    assert len(project.find(ev.AttemptLaunched)) == 2 and not project.find(ev.AttemptInterrupted)


def test_a_conversation_that_breaks_at_work_is_begun_afresh_once(tmp_path: Path) -> None:
    """G22 Z05: not as one that is full, whose worker hands over again and again; the second time it is a failure."""
    call = {"sign": {"is": "ToolStarted", "id": "1", "name": "edit"}}
    over = {"sign": {"is": "Over", "how": "unfit", "text": "orphaned tool_result", "broken": True}}
    breaks = [{"sign": {"is": "Session", "id": "s1"}}, call, {"files": {"half.txt": "half\n"}}, over, {"exit": 1}]
    answers = [call, {"files": {"rest.txt": "rest\n"}}, {"result": "DONE"}]
    project = GitProject(tmp_path / "p", script={"a": [breaks, breaks, answers]}).make()
    assert project.run() == 0 and len(project.find(ev.AttemptLaunched)) == 3
    task = ended(project)
    assert (task.next_start.lost_session, task.counters.worker_attempts) == ("orphaned tool_result", 2)
    assert [(f.failure_class, f.counter) for f in project.find(ev.AttemptFailed)] == [("prompt_gap", "worker_attempts")]
    assert "orphaned tool_result" in project.ganger("why", "a").stdout and task.counters.checkpoints == 0


def test_a_task_that_is_done_leaves_no_home(in_git: Any, speech: Speech) -> None:
    """A session ends with its task."""
    assert in_git([REST, DONE]).run() == 0
    assert not Path(speech.starts()[0]["home"]).exists()


def test_a_limit_with_a_time_waits_for_that_time_and_goes_on(in_git: Any, speech: Speech) -> None:
    """D12 H05: BLOCKED(quota_wait) until then, no counter pays, and the session goes on."""
    project = in_git([HALF, {"limit_for": 1.5, "exit": 1}], [REST, DONE])
    assert project.run() == 0
    (paused,) = project.find(ev.AccountPaused)
    (waited,) = [e for e in project.find(ev.TaskSettled) if e.status is TaskStatus.BLOCKED]
    assert waited.block_reason is BlockReason.QUOTA_WAIT and waited.not_before == paused.until
    starts = [at(r.at) for r in project.events() if isinstance(r.event, ev.AttemptStarted)]
    assert starts[1] >= paused.until > starts[0]
    assert speech.sessions() == ["", "s-1"] and "half.txt" in speech.starts()[1]["files"]
    assert (ended(project).status, ended(project).counters.worker_attempts) == (TaskStatus.DONE, 1)


@pytest.mark.parametrize("reset_at", [3.9e12, 1e308, -5.0, "inf"])
def test_a_limit_with_an_absurd_time_waits_as_one_without_any(in_git: Any, reset_at: object) -> None:
    """D12 G02: milliseconds of another century, no number, the past: `quota_wait_sec`, and the run goes on."""
    said = {"type": "limit", "text": "usage limit reached", "reset_at": float(reset_at)}  # type: ignore[arg-type]
    project = in_git([HALF, {"say": said, "exit": 1}], [REST, DONE], policy="quota_wait_sec = 0.2")
    assert project.run() == 0
    ((paused, said_at),) = [
        (r.event.until, at(r.at)) for r in project.events() if isinstance(r.event, ev.AccountPaused)
    ]
    assert 0 < paused - said_at <= 0.2 and ended(project).counters.worker_attempts == 1


def test_an_agent_that_waits_for_a_far_limit_itself_is_ended_and_ganger_waits(in_git: Any) -> None:
    """D12: hours of waiting are no attempt; the run says when it goes on."""
    project = in_git([HALF, {"limit_for": 3600, "hang": True}])

    def stop_when_waiting(lead: Lead) -> None:
        lead.journal.listeners.append(
            lambda entry: lead.stop("seen") if isinstance(entry.event, ev.AccountPaused) else None
        )

    assert project.run(during=stop_when_waiting) == 130
    task = ended(project)
    assert (task.block_reason, task.counters.worker_attempts) == (BlockReason.QUOTA_WAIT, 0)


def test_without_a_login_nothing_is_tried_again_and_no_attempt_is_used(in_git: Any, speech: Speech) -> None:
    """T24: BLOCKED(external) with what to do."""
    project = in_git([{"say": {"type": "login", "text": "Not logged in"}, "exit": 1}])
    assert project.run() != 0
    task = ended(project)
    assert (task.status, task.block_reason, task.counters.worker_attempts) == (
        TaskStatus.BLOCKED,
        BlockReason.EXTERNAL,
        0,
    )
    assert len(speech.starts()) == 1 and "ganger agents --check" in task.detail


def test_an_agent_that_is_refused_twice_is_ended_and_a_person_is_asked(in_git: Any, speech: Speech) -> None:
    """D12: BLOCKED(permission_denied) names the tool; nobody waits for the time limit."""
    refused = {"say": {"type": "denied", "tool": "Bash", "about": "rm -rf build"}}
    project = in_git([refused, refused, {"hang": True}])
    assert project.run() != 0
    task = ended(project)
    assert (task.status, task.block_reason) == (TaskStatus.BLOCKED, BlockReason.PERMISSION_DENIED)
    (asked,) = project.find(ev.QuestionAsked)
    assert "rm -rf build" in asked.text and asked.task == "a"
    (gone,) = project.find(ev.AttemptExited)
    assert not gone.timed_out and len(speech.starts()) == 1


def test_a_session_that_is_gone_is_begun_anew_and_nobody_pays(in_git: Any, speech: Speech) -> None:
    """H05: the whole prompt again, in a fresh workspace; what was made before is kept aside."""
    gone = {"say": {"type": "over", "how": "no_session"}, "exit": 1}
    project = in_git([HALF, KILLED], [gone], [REST, DONE])
    assert project.run() == 0
    assert speech.sessions() == ["", "s-1", ""]
    third = speech.starts()[2]
    assert "Do it." in third["prompt"] and "half.txt" not in third["files"]
    task = ended(project)
    assert (task.status, task.counters.worker_attempts, task.counters.respawns) == (TaskStatus.DONE, 1, 1)
    assert project.find(ev.WorkSaved)


@pytest.mark.brief(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_goes_on_with_the_same_session(in_git: Any, speech: Speech, number: int) -> None:
    """H05 T23: the stop ends the agent and counts nothing; `ganger run` continues it."""
    project = in_git([HALF, {"hang": True}], [REST, DONE])
    with leading(project) as lead:
        until(lambda: list(project.folder.path.glob("work/*/half.txt")), beside=lead)
        lead.send_signal(number)
        lead.communicate(timeout=stretched(60))
    assert project.processes() == [] and ended(project).counters.worker_attempts == 0
    assert project.run() == 0
    assert speech.sessions() == ["", "s-1"] and "half.txt" in speech.starts()[1]["files"]
    assert (ended(project).status, ended(project).counters.worker_attempts) == (TaskStatus.DONE, 1)


def test_in_the_projects_own_folder_no_session_is_continued(tmp_path: Path, speech: Speech) -> None:
    """H05: there a cut-off attempt is undone, and a session that remembers its edits would be mistaken."""
    project = Project(tmp_path / "p", agent=speech.write([HALF, KILLED], [REST, DONE])).make()
    assert project.run() == 0
    assert speech.sessions() == ["", ""] and "half.txt" not in speech.starts()[1]["files"]
    assert "Do it." in speech.starts()[1]["prompt"]


def test_an_answer_that_cannot_be_read_is_asked_for_again_in_its_session(in_git: Any, speech: Speech) -> None:
    """H05: the work is there; only the last words were wrong, and the session is told so."""
    wordless = {"say": {"type": "said", "text": "All done!"}}
    project = in_git([HALF, wordless, {"say": {"type": "over", "how": "success"}}], [DONE])
    assert project.run() == 0
    assert speech.sessions() == ["", "s-1"] and "NO_SENTINEL" in speech.starts()[1]["prompt"]
    task = ended(project)
    assert (task.status, task.counters.worker_attempts, task.counters.format_retries) == (TaskStatus.DONE, 1, 1)
    assert "half.txt" in project.merged_files()


def test_an_agent_whose_answer_stands_still_until_its_time_is_over_goes_on_once(in_git: Any, speech: Speech) -> None:
    """H05 G22: with what it had done; one that runs out of time again begins afresh."""
    project = in_git([HALF, {"hang": True}], [{"hang": True}], [REST, DONE], policy="max_worker_attempts_per_task = 3")
    project.tasks = [task("a", timeout_sec=2)]
    (project.root / "manifest.json").write_text(
        json.dumps({**json.loads((project.root / "manifest.json").read_text()), "tasks": project.tasks})
    )
    assert project.run() == 0
    assert speech.sessions() == ["", "s-1", ""]
    second, third = speech.starts()[1:]
    assert "half.txt" in second["files"] and "You ran out of time" in second["prompt"]
    assert "half.txt" not in third["files"] and "git cherry-pick -n" in third["prompt"]


@pytest.mark.parametrize("name", ["{own}", "../own.json", "a/../../own.json"])
def test_a_login_file_outside_a_home_is_refused_before_anything_runs(tmp_path: Path, speech: Speech, name: str) -> None:
    """`home_files` names files in a home; the operator's own one stays as it is."""
    own = tmp_path / "own.json"
    own.write_text("mine")
    agent = f'{speech.write([REST, DONE])}\nhome_files = ["{name.format(own=own)}"]'
    with pytest.raises(InputError, match="home_files"):
        GitProject(tmp_path / "p", agent=agent).make().run()
    assert own.read_text() == "mine"


def tokens(given: int, made: int, usd: float, running: int) -> dict[str, Any]:
    return {"say": {"type": "tokens", "input": given, "output": made, "usd": usd, "running": running}}


@pytest.mark.parametrize(
    ("second", "running"), [(tokens(250, 30, 2.5, 1), 1), (tokens(150, 20, 1.5, 0), 0)], ids=["running totals", "own"]
)
def test_what_a_session_used_is_counted_once(in_git: Any, second: dict[str, Any], running: int) -> None:
    """G04: whether the agent tells a total of its session or what the process used."""
    project = in_git([HALF, tokens(100, 10, 1.0, running), KILLED], [REST, second, DONE])
    assert project.run() == 0
    told = [(cost.input_tokens, cost.output_tokens, cost.usd) for cost in project.find(ev.CostSettled)]
    assert told == [(100, 10, 1.0), (150, 20, 1.5)]
    spent = project.state().money.spent
    assert (spent.input_tokens, spent.output_tokens, spent.usd) == (250, 30, 2.5)


@pytest.mark.brief(1)
@pytest.mark.parametrize("running", [1, 0], ids=["running totals", "own"])
def test_what_a_stopped_agent_had_told_is_counted_once(in_git: Any, running: int) -> None:
    """G04 T23: it was paid for, however its process ended; what its session tells later comes on top."""
    more = tokens(250, 30, 2.5, 1) if running else tokens(150, 20, 1.5, 0)
    project = in_git([tokens(100, 10, 1.0, running), HALF, {"hang": True}], [REST, more, DONE])
    with leading(project) as lead:
        until(lambda: list(project.folder.path.glob("work/*/half.txt")), beside=lead)
        assert project.ganger("stop").returncode == 0
        lead.communicate(timeout=stretched(60))
    spent = project.state().money.spent
    assert (spent.input_tokens, spent.output_tokens, spent.usd) == (100, 10, 1.0)
    assert project.run() == 0
    spent = project.state().money.spent
    assert (spent.input_tokens, spent.output_tokens, spent.usd) == (250, 30, 2.5)
    assert len(project.find(ev.CostSettled)) == 2


def test_a_new_session_is_counted_from_its_own_beginning(in_git: Any) -> None:
    """G04: running totals of two sessions have nothing to do with each other."""
    gone = {"say": {"type": "over", "how": "no_session"}, "exit": 1}
    project = in_git([HALF, tokens(100, 10, 1.0, 1), KILLED], [gone], [REST, tokens(120, 12, 1.25, 1), DONE])
    assert project.run() == 0
    assert (project.state().money.spent.input_tokens, project.state().money.spent.usd) == (220, 2.25)
