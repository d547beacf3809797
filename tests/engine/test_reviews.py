"""Changes that await a review: real runs, approved or sent back by a person or by an agent."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from checker.invariants import Seen, broken
from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.errors import NotFoundError
from tests.engine.git_runs import GitProject, edits, git
from tests.engine.run_projects import kill, leading, task, until
from tests.patience import stretched

pytestmark = pytest.mark.whole

ALONE = '[delivery]\nreview = "person"\nreview_when = "before"\n'
AFTER_CI = """
[delivery]
completion = ["verified", "committed", "pushed", "ci"]
forge = "command"
remote = "{remote}"
review = "person"
review_when = "{when}"
poll_sec = 0.05
[delivery.jobs]
test = ["true"]
"""
AGENT = """
[delivery]
review = "agent"
[agents.judge]
kind = "scripted"
script = "judge.json"
[roles.reviewer]
agent = "judge"
"""
SAYS = {"a": [edits({"a.txt": f"attempt {n}\n"}) for n in range(1, 9)]}
GOOD, BAD = (
    {"result": {"status": "DONE", "summary": "fine"}},
    {"result": {"status": "FAILED", "summary": "the name is wrong"}},
)


def project_in(folder: Path, more: str, **given: object) -> GitProject:
    return GitProject(folder / "project", [task("a")], SAYS, more=more, **given).make()  # type: ignore[arg-type]


def local(folder: Path) -> GitProject:
    return project_in(folder, ALONE)


def delivered(folder: Path, when: str = "after") -> GitProject:
    remote = folder / "remote.git"
    project = project_in(folder, AFTER_CI.format(remote=remote, when=when))
    git(folder, "clone", "-q", "--bare", str(project.root), str(remote))
    return project


def judged(folder: Path, *answers: object) -> GitProject:
    """The reviewer's answers, attempt by attempt of the worker."""
    judge = json.dumps({"tasks": {"a": list(answers)}})
    return project_in(folder, AGENT, files={"judge.json": judge})


def waits(project: GitProject) -> bool:
    with contextlib.suppress(NotFoundError, KeyError):
        return project.state().tasks["a"].block_reason is BlockReason.AWAITING_REVIEW
    return False


def launches(project: GitProject) -> int:
    return len(project.find(ev.AttemptLaunched))


@pytest.mark.parametrize("make", [local, delivered], ids=["merged", "after CI"])
def test_an_approved_change_goes_on_without_another_worker(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    """W08: BLOCKED(awaiting_review) with a question; approve delivers exactly that commit and starts nobody."""
    project = make(tmp_path)
    assert project.run() == 4
    waits = project.state().tasks["a"]
    assert (waits.status, waits.block_reason) == (TaskStatus.BLOCKED, BlockReason.AWAITING_REVIEW)
    said = json.loads(project.ganger("approve", "a", "--text", "read it", "--json").stdout)
    assert said["ok"] and said["kind"] == "approve"
    assert project.run() == 0
    assert project.status() is TaskStatus.DONE and launches(project) == 1
    (reviewed,) = project.find(ev.Reviewed)
    assert (reviewed.verdict, reviewed.by, reviewed.commit) == ("approved", "person", waits.delivery.reviewed)
    assert not [q for q in project.state().inbox.questions.values() if q.answer is None]


@pytest.mark.brief(1)
@pytest.mark.parametrize("make", [local, delivered], ids=["merged", "after CI"])
def test_a_change_that_is_sent_back_is_done_again_with_the_remark(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    """W08: the remark is in the next prompt, CI is not spoken of, and the new commit needs a review of its own."""
    project = make(tmp_path)
    project.run()
    first = project.state().tasks["a"].delivery.reviewed
    assert project.ganger("rework", "a", "keep the old name").returncode == 0
    assert project.run() == 4
    prompt = project.prompt("a", project.state().tasks["a"].attempts)
    assert "keep the old name" in prompt and "CI is red" not in prompt
    again = project.state().tasks["a"].delivery
    assert again.review == "wanted" and again.reviewed != first
    assert project.ganger("approve", "a").returncode == 0
    assert project.run() == 0 and launches(project) == 2
    assert broken(project.events(), Seen()) == []


@pytest.mark.slow
def test_what_was_not_merged_is_kept_for_whoever_does_it_again(tmp_path: Path) -> None:
    """W08 G08: a change that was sent back before the push is named in the next prompt."""
    project = local(tmp_path)
    project.run()
    change = project.state().tasks["a"].work.change
    assert change is not None
    project.ganger("rework", "a", "not like this")
    project.run()
    assert change.commit in project.prompt("a", 2)


def test_answering_the_question_is_a_review_too(tmp_path: Path) -> None:
    """W08 G12: option 1 approves."""
    project = local(tmp_path)
    project.run()
    assert "ganger approve a" in project.ganger("inbox").stdout
    assert project.ganger("answer", "a", "1").returncode == 0
    assert project.run() == 0 and launches(project) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["approve", "a"], "no change of it awaits a review"),
        (["rework", "a", "why"], "no change of it awaits a review"),
        (["rework", "a", " "], "no reason"),
    ],
)
def test_a_word_that_nobody_asked_for_is_refused(tmp_path: Path, words: list[str], why: str) -> None:
    """W08: the refusal names why."""
    project = GitProject(tmp_path / "project", [task("a")], SAYS).make()
    project.run()
    made = project.ganger(*words)
    assert made.returncode == 1 and why in made.stderr


def test_retry_does_not_pass_a_review_by(tmp_path: Path) -> None:
    """W08: who only retries is told what to type instead."""
    project = local(tmp_path)
    project.run()
    made = project.ganger("retry", "a")
    assert made.returncode == 1 and "ganger approve a" in made.stderr


# --- by an agent -----------------------------------------------------------------------------------------------------


def test_an_agent_approves(tmp_path: Path) -> None:
    """W08: the reviewer sees the task, the change and the evidence; DONE approves."""
    project = judged(tmp_path, GOOD)
    assert project.run() == 0
    prompt = (project.folder.path / "prompts/a.review.1.1.md").read_text()
    assert "Do it." in prompt and "+attempt 1" in prompt and "test: passed" in prompt
    (reviewed,) = project.find(ev.Reviewed)
    assert (reviewed.verdict, reviewed.by) == ("approved", "reviewer")


def test_an_agent_sends_back(tmp_path: Path) -> None:
    """W08: its summary is what the next worker is told; it pays with a counter of its own."""
    project = judged(tmp_path, BAD, GOOD)
    assert project.run() == 0
    assert "the name is wrong" in project.prompt("a", 2)
    now = project.state().tasks["a"]
    assert (now.counters.reworks, now.counters.ci_fixes, now.counters.worker_attempts) == (1, 0, 1) and project.shown(
        "a.txt"
    ) == "attempt 2"


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize("rounds", [None, 0, 1])
def test_a_reviewer_that_is_never_content_ends_with_a_person(tmp_path: Path, rounds: int | None) -> None:
    """W08 H13: two rounds, or as many as are set; CI's counter is not touched, `why` shows this one, and whoever is
    asked is told the last remark and may take the change as it stands."""
    project = judged(tmp_path, BAD)
    config = project.root / "ganger.toml"
    if rounds is not None:
        config.write_text(config.read_text().replace("[policy]", f"[policy]\nrework_rounds = {rounds}"))
    allowed = 2 if rounds is None else rounds
    assert project.run() == 4
    now = project.state().tasks["a"]
    assert (now.status, now.counters.reworks, now.counters.ci_fixes) == (TaskStatus.ESCALATED, allowed, 0)
    (asked,) = project.find(ev.QuestionAsked)
    assert launches(project) == allowed + 1 and asked.kind == "review" and "the name is wrong" in asked.text
    why = json.loads(project.ganger("why", "a", "--json").stdout)
    assert why["counters"]["reworks"] == f"{allowed} of {allowed}"
    assert "ganger approve a" in project.ganger("inbox").stdout
    assert project.ganger("approve", "a").returncode == 0 and project.run() == 0
    assert launches(project) == allowed + 1 and broken(project.events(), Seen()) == []


def test_a_change_nobody_was_content_with_may_be_sent_back_by_a_person(tmp_path: Path) -> None:
    """W08: it is done again with the person's remark, and the reviewer judges what comes of it."""
    project = judged(tmp_path, BAD, BAD, BAD, GOOD)
    assert project.run() == 4
    assert project.ganger("rework", "a", "call it b").returncode == 0
    assert project.run() == 0 and "call it b" in project.prompt("a", 4)


def test_a_person_may_always_send_back(tmp_path: Path) -> None:
    """W08: three times here; only an agent that reviews is bounded."""
    project = local(tmp_path)
    project.run()
    for number in range(3):
        assert project.ganger("rework", "a", f"not yet {number}").returncode == 0
        project.run()
    now = project.state().tasks["a"]
    assert (now.status, now.counters.reworks) == (TaskStatus.BLOCKED, 0) and launches(project) == 4


def test_an_answer_that_cannot_be_read_is_asked_for_once_more_and_then_a_person_is(tmp_path: Path) -> None:
    """W08: a broken answer is no verdict."""
    project = judged(tmp_path, {"text": "looks good to me"})
    assert project.run() == 4
    assert sorted(name for name in project.logs() if "review" in name) == ["a.review.1.1.log", "a.review.1.2.log"]
    assert project.state().tasks["a"].block_reason is BlockReason.AWAITING_REVIEW
    assert project.ganger("approve", "a").returncode == 0
    assert project.run() == 0 and launches(project) == 1


def test_a_reviewer_outlives_the_lead_and_is_found_again(tmp_path: Path) -> None:
    """W08 H10: kill -9 of the lead while the reviewer works: nobody is asked twice."""
    project = judged(tmp_path, {"delay": 2, **GOOD})
    lead = project.start()
    until(lambda: (project.folder.path / "logs/a.review.1.1.log").exists(), beside=lead)
    kill(lead)
    lead.communicate()
    assert not project.find(ev.Reviewed)
    assert project.run() == 0
    assert [name for name in project.logs() if "review" in name] == ["a.review.1.1.log"] and launches(project) == 1


def test_without_money_for_a_reviewer_a_person_is_asked(tmp_path: Path) -> None:
    """G04 W08: a budget holds for reviewers as well."""
    project = judged(tmp_path, GOOD)
    script = {"a": [{"usage": {"input_tokens": 900, "output_tokens": 200}, **edits({"a.txt": "a\n"})}]}
    project.write_script(script)
    config = project.root / "ganger.toml"
    config.write_text(f"{config.read_text()}\n[budget]\ntokens = 1000\n")
    assert project.run() == 4
    assert not [name for name in project.logs() if "review" in name]
    assert "budget.tokens" in project.state().tasks["a"].detail


def test_what_a_review_costs_is_counted_once(tmp_path: Path) -> None:
    """G04 W08: with its verdict, and for the task it judged."""
    used = {"input_tokens": 100, "output_tokens": 20}
    project = judged(tmp_path, {"usage": used, **GOOD})
    assert project.run() == 0
    assert project.state().money.spent.tokens == 120


# --- beside others -------------------------------------------------------------------------------------------------


@pytest.mark.brief(1)
@pytest.mark.parametrize("schedule", ["off", "epoch"])
def test_what_depends_on_a_reviewed_task_waits_for_the_review_and_then_runs(tmp_path: Path, schedule: str) -> None:
    """W08: nothing has failed, so its dependents are not given up; another `ganger run` alone changes nothing."""
    tasks = [task("a"), task("b", "a")]
    script = SAYS | {"b": [edits({"b.txt": "b\n"})]}
    project = GitProject(tmp_path / "project", tasks, script, more=ALONE).make()
    project.set_schedule(schedule)
    assert project.run() == 4 and project.run() == 4
    assert launches(project) == 1 and len(project.find(ev.ReviewAsked)) == 1
    project.ganger("approve", "a")
    assert project.run() == 4
    project.ganger("approve", "b")
    assert project.run() == 0 and launches(project) == 2


@pytest.mark.slow
def test_an_approved_change_that_no_longer_fits_is_done_again(tmp_path: Path) -> None:
    """W08 G03: two changes of one line: the second is approved, conflicts, and a worker does it on the new head."""
    script = {
        "a": [edits({"shared.txt": "a\n"})],
        "b": [edits({"shared.txt": "b\n"}), edits({"shared.txt": "a and b\n"})],
    }
    project = GitProject(
        tmp_path / "project", [task("a"), task("b")], script, more=ALONE, policy="concurrency = 2"
    ).make()
    project.run()
    project.ganger("approve", "a")
    project.run()
    project.ganger("approve", "b")
    assert project.run() == 4
    assert "conflict" in project.prompt("b", project.state().tasks["b"].attempts)
    project.ganger("approve", "b")
    assert project.run() == 0 and project.shown("shared.txt") == "a and b" and launches(project) == 3


@pytest.mark.slow
def test_a_lead_takes_the_word_while_others_work(tmp_path: Path) -> None:
    """W08 G12: approved while the run goes on; nobody waits for anybody."""
    script = SAYS | {"b": [{"delay": 5, **edits({"b.txt": "b\n"})}]}
    project = GitProject(
        tmp_path / "project",
        [task("a"), task("b", metadata={"review": "none"})],
        script,
        more=ALONE,
        policy="concurrency = 2",
    ).make()
    with leading(project) as lead:
        until(lambda: waits(project), beside=lead)
        assert "approved" in project.ganger("approve", "a").stdout
        until(lambda: project.status() is TaskStatus.DONE, beside=lead)
        assert project.status("b") is TaskStatus.RUNNING
        lead.communicate(timeout=stretched(60))
    assert lead.returncode == 0 and launches(project) == 2


def test_a_review_before_the_push_is_followed_by_everything_else(tmp_path: Path) -> None:
    """W08 D01: nothing leaves the machine before it is approved; then it is pushed and CI judges it."""
    project = delivered(tmp_path, "before")
    assert project.run() == 4 and not project.find(ev.PushIntended)
    project.ganger("approve", "a")
    assert project.run() == 0 and launches(project) == 1
    assert [event.verdict for event in project.find(ev.CiJudged)] == ["green"]
