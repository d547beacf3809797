"""Hosts in trouble, decided without doing: who waits, who is asked, what an answer and a return bring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ganger.core import events as ev
from ganger.core.model.ledger import Delivery
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.state.hosts import (
    AWAY,
    DENIED,
    HOST,
    after_answer,
    answer_host,
    asking,
    awaited_by,
    not_waited_for,
    short_reason,
    told,
    tried,
    waiting,
)
from ganger.core.vocabulary import BlockReason, TaskStatus

GIT = "git.example.org"
AT = "2026-11-18T21:14:05.000000Z"
LATER = "2026-11-18T21:24:05.000000Z"


def run_of(*names: str) -> RunState:
    state = RunState()
    happen(state, ev.RunStarted("r1", "d", Policy(), tuple(TaskSpec(name) for name in names)))
    for name in names:
        # On its way to the remote: what the attempt before did is no matter here.
        task = replace(state.tasks[name], status=TaskStatus.BLOCKED, block_reason=BlockReason.EXTERNAL, final=False)
        state.tasks[name] = replace(task, delivery=Delivery(commit="a" * 40, pending=True, pushed_at=AT))
    return state


def happen(state: RunState, *events: ev.Event, at: str = AT) -> None:
    for event in events:
        apply(state, ev.Recorded(state.log.last_seq + 1, at, event))
    assert state.log.refused == []


def away(state: RunState, kind: str = AWAY, way: str = "api", why: str = "connection refused") -> None:
    happen(state, ev.HostAway(GIT, way, kind, why, 0.0))
    happen(state, *(ev.HostAwaited(GIT, name) for name in state.index.by_rank))


@pytest.mark.parametrize(
    ("kind", "said"),
    [(AWAY, f"{GIT} has not answered since 21:14 UTC (no way)"), (DENIED, f"{GIT} has refused the token since 21:14")],
)
def test_one_question_is_asked_for_all_that_wait(kind: str, said: str) -> None:
    """D14: whoever asks second asks nothing."""
    state = run_of("a", "b", "c")
    away(state, kind, why="no way")
    (asked,) = asking(state, GIT)
    assert asked.text.startswith(said) and asked.kind == HOST and asked.host == GIT
    happen(state, replace(asked, question="Q1"))
    assert asking(state, GIT) == [] and told(GIT, state.hosts[GIT]).startswith(said)
    assert waiting(state, GIT) == ["a", "b", "c"] and awaited_by(state, "b") == GIT


def test_everybody_goes_on_once_it_answers_by_every_way() -> None:
    """D12: git answers again, the API does not yet; then both, and the question needs no answer."""
    state = run_of("a", "b")
    away(state)
    happen(state, ev.HostAway(GIT, "git", AWAY, "no connection", 0.0, 2), replace(asking(state, GIT)[0], question="Q1"))
    assert after_answer(state, GIT, "git") == [ev.HostBack(GIT, "git")]
    happen(state, ev.HostBack(GIT, "git"))
    events = after_answer(state, GIT, "api")
    assert [type(one) for one in events] == [ev.HostBack, ev.QuestionAnswered, ev.TaskRequeued, ev.TaskRequeued]
    happen(state, *events)
    assert state.hosts == {} and after_answer(state, GIT, "api") == []


def test_what_nobody_could_ask_is_not_time_that_ci_took() -> None:
    """D14: ten minutes without an answer are ten minutes more."""
    state = run_of("a")
    away(state)
    happen(state, ev.HostBack(GIT, "api"), at=LATER)
    delivery = state.tasks["a"].delivery
    assert delivery is not None and delivery.pushed_at == LATER


def test_an_answer_asks_the_host_at_once_and_brings_back_whoever_gave_up() -> None:
    """D14: whatever the answer says."""
    state = run_of("a", "b")
    away(state, DENIED)
    happen(state, replace(asking(state, GIT)[0], question="Q1"))
    effect = answer_host(state, state.inbox.questions["Q1"], "renewed")
    happen(state, *effect.events)
    assert "is tried now" in effect.outcome and state.hosts[GIT].next_at == 0.0
    assert all(task.status is TaskStatus.PENDING for task in state.tasks.values())


def test_a_retry_of_one_is_a_retry_of_all() -> None:
    """D14: the host is tried for everybody; who waits for another one stays where it is."""
    state = run_of("a", "b", "c")
    away(state)
    events = tried(state, "a")
    assert ev.HostTried(GIT, "a was retried") in events
    assert [one.task for one in events if isinstance(one, ev.TaskRequeued)] == ["b", "c"]
    assert tried(run_of("a"), "a") == []


def test_trouble_that_nobody_has_any_more_is_forgotten() -> None:
    """S02: the settings name another host now, or whoever waited is through."""
    state = run_of("a")
    away(state)
    happen(state, replace(asking(state, GIT)[0], question="Q1"))
    assert not_waited_for(state, [GIT]) == []
    happen(state, *not_waited_for(state, ["other.example.org"]))
    assert state.hosts == {} and state.inbox.questions["Q1"].answer
    happen(state, ev.HostAway(GIT, "api", AWAY, "", 0.0))
    assert not_waited_for(state, [GIT]) == [ev.HostBack(GIT, "api")]


def test_events_that_cannot_be_true_change_nothing() -> None:
    """S05: a host nobody complained about, a way it was not asked by, trouble nobody knows, a task there is not."""
    state = run_of("a")
    apply(state, ev.Recorded(50, AT, ev.HostBack(GIT, "api")))
    apply(state, ev.Recorded(51, AT, ev.HostAway(GIT, "api", "odd", "", 0.0)))
    assert state.hosts == {}
    apply(state, ev.Recorded(52, AT, ev.HostAway(GIT, "api", AWAY, "", 0.0)))
    apply(state, ev.Recorded(53, AT, ev.HostAwaited(GIT, "nobody")))
    apply(state, ev.Recorded(54, AT, ev.HostBack(GIT, "git")))
    assert len(state.log.refused) == 4 and state.hosts[GIT].waiting == ()


@pytest.mark.parametrize(
    ("said", "short"),
    [
        ("ConnectError: All connection attempts failed ([Errno 111] Connection refused)", "connection refused"),
        ("unable to access 'http://h/': Failed to connect to h port 80: Couldn't connect to server", "no connection"),
        ("fatal: unable to access: Could not resolve host: git.example.org", "its name cannot be resolved"),
        ("The requested URL returned error: 502", "it answers 502"),
        ("it answered 503", "it answers 503"),
        ("no answer within 30 s", "no answer in time"),
        ("Server disconnected without sending a response.", "it closes the connection"),
        ("something   else", "something else"),
    ],
)
def test_a_reason_is_told_in_plain_words(said: str, short: str) -> None:
    """D14: what programs say is not what people read."""
    assert short_reason(said) == short
