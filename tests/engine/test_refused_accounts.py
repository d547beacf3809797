"""An account whose key is refused while a run goes on: who starts, who asks, what an answer does, what survives."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.errors import NotFoundError
from tests.engine.run_projects import SCRIPTED, Project, kill, leading, task, until

pytestmark = pytest.mark.whole

WORDS = "Invalid API key. Please run /login"
REFUSED = [{"sign": {"is": "LoginMissing", "text": WORDS}}, {"exit": 1}]
EMPTY = [{"sign": {"is": "Limited", "text": "Your credit balance is too low", "empty": True}}, {"exit": 1}]
CALL = {"sign": {"is": "ToolStarted", "id": "1", "name": "edit"}}
WORKS = [CALL, {"result": "DONE"}]
NAMES = [f"t{n}" for n in range(1, 9)]
MORE = '\naccount = "team"\n[agents.other]\nkind = "scripted"\nscript = "script.json"\n[roles.tester]\nagent = "other"'


def project(root: Path, script: dict[str, object], policy: str = "concurrency = 3") -> Project:
    """Eight tasks of one account, and one of another that takes as long as the file `go` is missing."""
    tasks = [task(name) for name in NAMES]
    tasks.append(task("apart", metadata={"role": "tester"}))
    waits = {"apart": [[{"text": "at work"}, {"delay": 60}]]}
    made = Project(root, tasks, {**waits, **script}, default=[REFUSED, WORKS], agent=SCRIPTED + MORE, policy=policy)
    made.policy += "\nquota_spread_sec = 0"
    return made.make()


def started(one: Project) -> list[str]:
    return [event.task for event in one.find(ev.AttemptStarted)]


def asked(one: Project) -> list[ev.QuestionAsked]:
    return one.find(ev.QuestionAsked)


def resting(one: Project) -> bool:
    """Somebody is asked, and whoever was at work has ended."""
    with contextlib.suppress(NotFoundError):
        return _is_resting(one)
    return False


def _is_resting(one: Project) -> bool:
    return (
        (one.folder.path / "ganger.db").exists()
        and bool(asked(one))
        and len(one.find(ev.AttemptFailed)) >= len(started(one)) - 1
    )


def test_one_question_is_asked_and_other_accounts_go_on(tmp_path: Path) -> None:
    """G14 G04: those at work meet it, nobody else starts, no counter pays; an answer lets one try, then the rest."""
    one = project(tmp_path, {})
    with leading(one) as lead:
        until(lambda: resting(one), beside=lead)
        assert len(started(one)) <= 4 and "apart" in started(one) and len(asked(one)) == 1
        assert asked(one)[0].account == "team" and WORDS in asked(one)[0].text
        before = len(started(one))
        assert "one worker" in one.ganger("answer", "q-1", "paid").stdout
        until(lambda: all(one.status(name) is TaskStatus.DONE for name in NAMES if name in started(one)[:before]))
        until(lambda: one.find(ev.AccountWorks))
    rows = [recorded.event for recorded in one.events()]
    tried, works = (
        next(n for n, e in enumerate(rows) if isinstance(e, kind)) for kind in (ev.AccountTried, ev.AccountWorks)
    )
    assert sum(isinstance(event, ev.AttemptStarted) for event in rows[tried:works]) == 1
    assert {one.state().tasks[name].counters.worker_attempts for name in NAMES if name != "apart"} <= {0, 1}


def test_a_shut_account_outlives_its_lead(tmp_path: Path) -> None:
    """G14 H09: the next lead of an unfinished run starts nobody of it and asks nothing again; then the answer helps."""
    one = project(tmp_path, {}, "concurrency = 2")
    with leading(one) as lead:
        until(lambda: resting(one), beside=lead)
        kill(lead)
    before = [name for name in started(one) if name != "apart"]
    with leading(one) as lead:
        until(lambda: len(one.find(ev.LeadStarted)) == 2, beside=lead)
        until(lambda: one.state().index.running == {"apart"} or "apart" in one.state().index.running, beside=lead)
        assert [name for name in started(one) if name != "apart"] == before and len(asked(one)) == 1
        one.ganger("answer", "q-1", "there is a new login")
        until(lambda: one.find(ev.AccountWorks), beside=lead)
    assert all(one.state().tasks[name].counters.worker_attempts <= 1 for name in NAMES)


def test_a_run_that_is_taken_up_again_tries_the_key_it_is_given(tmp_path: Path) -> None:
    """G14 T20: exit 4 and nothing given up; whoever runs it again has perhaps set another key, so one worker tries."""
    one = Project(
        tmp_path, [task(name) for name in "abc"], default=[REFUSED, WORKS], policy="quota_spread_sec = 0"
    ).make()
    assert one.run() == 4 and started(one) == ["a"]
    blocked = one.state().tasks["a"]
    assert (blocked.status, blocked.block_reason, blocked.final) == (TaskStatus.BLOCKED, BlockReason.EXTERNAL, False)
    one.default = [WORKS]
    one.write_script({})
    assert one.run() == 0 and started(one) == ["a", "a", "b", "c"]
    assert [q.answer for q in one.state().inbox.questions.values()] == ["the account works again"]


def test_a_key_that_is_still_refused_asks_no_second_time(tmp_path: Path) -> None:
    """G14: while a question is open it is the same one; after an answer that did not help it is a new one."""
    one = Project(tmp_path, [task("a"), task("b")], default=[REFUSED]).make()
    assert [one.run(), one.run()] == [4, 4] and len(asked(one)) == 1 and len(started(one)) == 2
    one.ganger("answer", "q-1", "try it")
    assert one.run() == 4 and len(asked(one)) == 2 and len(started(one)) == 3
    assert {state.counters.worker_attempts for state in one.state().tasks.values()} == {0}


def test_an_empty_account_is_tried_by_one_worker_at_a_time(tmp_path: Path) -> None:
    """G04 W07: it comes back by itself, asks once, and is not tried by everybody who waits for it."""
    policy = "concurrency = 4\nquota_wait_sec = 1\nquota_spread_sec = 0"
    one = Project(
        tmp_path, [task(name) for name in "abcd"], {"a": [EMPTY, EMPTY, WORKS]}, [EMPTY, WORKS], policy=policy
    )
    assert one.make().run() == 0
    first = [event.task for event in one.find(ev.AttemptStarted)][:4]
    assert sorted(first) == list("abcd") and len(asked(one)) == 1 and asked(one)[0].account == "mine"
    rows = [recorded.event for recorded in one.events()]
    works = next(n for n, event in enumerate(rows) if isinstance(event, ev.AccountWorks))
    alone = [event for event in rows[:works] if isinstance(event, ev.AttemptStarted)][4:]
    assert 1 <= len(alone) <= 2
    assert {state.counters.worker_attempts for state in one.state().tasks.values()} == {1}


@pytest.mark.parametrize("name", ["a", "b"])
def test_why_names_the_account_and_the_question(tmp_path: Path, name: str) -> None:
    """G10: also for a task that never started."""
    one = Project(tmp_path, [task("a"), task("b")], default=[REFUSED]).make()
    assert one.run() == 4
    told = one.ganger("why", name).stdout
    assert "account mine" in told and "ganger answer q-1" in told
    assert "was refused" in one.ganger("status").stdout


LIAR = {"bad": [REFUSED]}


@pytest.mark.quick
def test_one_task_that_says_so_alone_rests_no_account_that_worked(tmp_path: Path) -> None:
    """G14 G08: another one tries it, which shows that it works; nobody is asked, and the others are DONE."""
    one = Project(tmp_path, [task(name) for name in ("a", "bad", "y", "z")], LIAR, [WORKS]).make()
    assert one.run() == 3 and asked(one) == [] and one.state().quota.shut == {}
    assert {one.status(name) for name in "ayz"} == {TaskStatus.DONE} and started(one) == ["a", "bad", "y", "z"]
    assert one.run() == 3 and started(one).count("bad") == 2 and asked(one) == []


def test_one_task_that_says_so_first_holds_up_nobody_once_its_account_worked(tmp_path: Path) -> None:
    """G14 G08: whenever the account is tried again it may be the first to do so."""
    one = Project(tmp_path, [task(name) for name in ("bad", "a", "z")], LIAR, [WORKS]).make()
    assert one.run() == 4 and started(one) == ["bad"] and len(asked(one)) == 1
    assert one.run(only=("a",)) == 0
    assert one.run() == 3 and {one.status(name) for name in "az"} == {TaskStatus.DONE}
    assert started(one).count("bad") <= 3 and len(asked(one)) == 1 and one.state().quota.shut == {}


def test_a_key_that_ends_while_a_run_goes_on_is_met_by_two_and_asked_about_once(tmp_path: Path) -> None:
    """G14 G04: the second one shows that the first spoke the truth."""
    one = Project(tmp_path, [task(name) for name in "abcde"], {"a": [WORKS]}, [REFUSED]).make()
    assert one.run() == 4 and started(one) == ["a", "b", "c"] and len(asked(one)) == 1
    assert {state.counters.worker_attempts for name, state in one.state().tasks.items() if name != "a"} == {0}


def test_words_of_a_refused_key_that_are_followed_by_work_mean_nothing(tmp_path: Path) -> None:
    """G14: a program that went on after its complaint has a key that works."""
    failed = {"result": {"status": "FAILED", "summary": "no", "failure_class": "real_bug"}}
    one = Project(tmp_path, default=[[REFUSED[0], CALL, failed]]).make()
    assert one.run() == 1 and asked(one) == [] and one.state().quota.shut == {}
