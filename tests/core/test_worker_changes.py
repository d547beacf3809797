"""A task's worker as events move it: its road, its words, what it is told, and what it leaves for the next one."""

from __future__ import annotations

from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.workers import Checkpoint, TierMark, WorkerNow
from ganger.core.state.apply import apply
from ganger.core.state.apply_worker import WORKER_EVENTS, is_at_work
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus, WorkerState, WorkerVerdict
from tests.core.run_model import Model

S, X, R, OVER = WorkerState.SPAWNED, WorkerState.EXECUTING, WorkerState.REPORTING, WorkerState.STOPPED
STARTED = ev.AttemptStarted("a", 1, "token", "agent", "", "log")
PULLED = ev.AttemptStarted("a", 1, "token", "pull", "", "log", worker="me", claim="c-1", worker_session="s-1")
LAUNCHED = ev.AttemptLaunched("a", 1, 7, 8)
REPORTED = ev.WorkerReported("a", 1, "r-1", "DONE", "did it", "reports/a.1", "digest")
BEAT = ev.WorkerBeat("a", 1, "b-1", "testing", 40.0)


def failed(cls: FailureClass, counter: str) -> ev.AttemptFailed:
    return ev.AttemptFailed("a", 1, cls.value, cls.value, "", counter)


def after(*events: ev.Event) -> Model:
    policy = Policy(heal_schedule=HealSchedule.OFF)
    model = Model((TaskSpec("a"), TaskSpec("b")), policy, fail_rate=0, checked=False).begin()
    model.record(*events)
    assert model.state.log.refused == []
    return model


def worker_of(model: Model) -> WorkerNow:
    worker = model.state.tasks["a"].worker
    assert worker is not None
    return worker


ROADS: dict[str, tuple[tuple[ev.Event, ...], WorkerState]] = {
    "claimed": ((STARTED,), S),
    "its process runs": ((STARTED, LAUNCHED), X),
    "it speaks before its process is known": ((STARTED, BEAT), X),
    "a session that asked": ((PULLED,), X),
    "it reports": ((STARTED, LAUNCHED, REPORTED), R),
    "its answer is read": ((STARTED, LAUNCHED, ev.ResultAccepted("a", 1, "DONE", "")), R),
    "it failed": ((STARTED, LAUNCHED, failed(FailureClass.TEST_ERROR, "worker_attempts")), OVER),
    "it crashed": ((STARTED, LAUNCHED, failed(FailureClass.CRASH, "respawns")), WorkerState.CRASHED),
    "it stalled": ((STARTED, LAUNCHED, failed(FailureClass.STALLED, "stalls")), WorkerState.STALLED),
    "it was interrupted": ((STARTED, LAUNCHED, ev.AttemptInterrupted("a", 1, "stop")), OVER),
    "it handed over": ((STARTED, LAUNCHED, ev.AttemptCheckpointed("a", 1, "full")), WorkerState.CHECKPOINTED),
    "what ended it stays": (
        (STARTED, failed(FailureClass.CRASH, "respawns"), ev.TaskRequeued("a", "again")),
        WorkerState.CRASHED,
    ),
    "it is through": (
        (STARTED, LAUNCHED, REPORTED, ev.TaskSettled("a", TaskStatus.BLOCKED, "", BlockReason.EXTERNAL)),
        OVER,
    ),
}


@pytest.mark.parametrize("case", ROADS)
def test_a_worker_goes_its_road(case: str) -> None:
    """Z10 H04 W03: from SPAWNED to STOPPED, and off the road where it crashed, stalled or handed over."""
    events, state = ROADS[case]
    model = after(*events)
    assert worker_of(model).state is state
    assert is_at_work(model.state.tasks["a"]) == (state in (S, X, R))
    assert model.state.index.pulled == ({"a"} if PULLED in events else set())


def test_the_next_worker_of_a_task_begins_with_a_clean_sheet() -> None:
    """H01: nothing of the last one's is taken for its own."""
    model = after(STARTED, BEAT, failed(FailureClass.STALLED, "stalls"), ev.TaskRequeued("a", "again"))
    model.record(ev.AttemptStarted("a", 2, "other", "agent", "", "log"))
    now = worker_of(model)
    assert (now.state, now.step, now.seen, now.messages, now.beat_at) == (S, "", (), (), "")
    assert model.state.tasks["a"].counters.stalls == 1 and model.state.tasks["a"].counters.worker_attempts == 1


@pytest.mark.parametrize("kind", [kind for kind in sorted(WORKER_EVENTS, key=str) if kind is not ev.MessageLeft])
def test_the_words_of_an_attempt_that_is_over_change_nothing(kind: type) -> None:
    """H07 W03: a worker thought dead that comes back speaks for nobody."""
    model = after(STARTED, ev.AttemptInterrupted("a", 1, "stop"), ev.AttemptStarted("a", 2, "new", "agent", "", "log"))
    before = model.state.tasks["a"]
    given: dict[type, tuple[Any, ...]] = {
        ev.WorkerMilestone: ("m-1", "tests pass"),
        ev.CheckpointTaken: ("k-1", Checkpoint(1, "")),
        ev.WorkerReported: ("r-1", "DONE", "", "file", "digest"),
        ev.WorkerSuspected: ("silent",),
        ev.WorkerCleared: ("it spoke",),
        ev.LimitWarned: ("working", "long"),
        ev.LimitExtended: ("working", 9.0, "at work"),
        ev.WorkerEnding: ("stalled", "silent"),
    }
    apply(model.state, ev.Recorded(99, "", kind("a", 1, *given.get(kind, ()))))
    assert model.state.tasks["a"] is before and "not the current one" in model.state.log.refused[0]


def test_a_beat_changes_only_what_it_tells() -> None:
    """Z03: a later beat without a step leaves the step."""
    tiers = (TierMark(1, "lint"), TierMark(2, "test", success=False, retry=1))
    model = after(STARTED, ev.WorkerBeat("a", 1, "b-1", "testing", 40.0, "half", tiers, 12.0), ev.WorkerBeat("a", 1))
    now = worker_of(model)
    assert (now.step, now.percent, now.note, now.tiers, now.context_pct) == ("testing", 40.0, "half", tiers, 12.0)


def test_the_requests_that_were_taken_are_remembered_within_bounds() -> None:
    """H07: the last five hundred; beats without a name are none of them."""
    model = after(STARTED, *(ev.WorkerBeat("a", 1, f"b-{n}") for n in range(700)), ev.WorkerBeat("a", 1))
    seen = worker_of(model).seen
    assert len(seen) == 500 and seen[-1] == "b-699" and "" not in seen


def test_what_was_taken_is_still_known_when_the_worker_is_over() -> None:
    """H07: a report whose acknowledgement was lost is sent again, and is acknowledged again."""
    model = after(STARTED, REPORTED, ev.AttemptInterrupted("a", 1, "stop"))
    assert "r-1" in worker_of(model).seen


def stand(attempt: int, by: str, *done: str) -> ev.CheckpointTaken:
    return ev.CheckpointTaken("a", attempt, f"{by}-{attempt}-{done}", Checkpoint(attempt, "", by, done=done))


def test_what_a_worker_says_of_itself_outranks_what_is_seen_from_outside() -> None:
    """H05 D18: before and after, and in the attempt that follows."""
    model = after(STARTED, stand(1, "ganger"), stand(1, "worker", "parser"), stand(1, "ganger"))
    model.record(ev.AttemptInterrupted("a", 1, "stop"), ev.AttemptStarted("a", 2, "new", "agent", "", "log"))
    model.record(stand(2, "ganger"))
    known = model.state.tasks["a"].checkpoint
    assert known is not None and (known.attempt, known.done) == (1, ("parser",))
    model.record(stand(2, "worker", "parser", "tests"))
    known = model.state.tasks["a"].checkpoint
    assert known is not None and (known.attempt, known.done) == (2, ("parser", "tests"))


def test_without_a_word_of_its_own_the_newest_look_from_outside_counts() -> None:
    """D18 H05: something is better than nothing."""
    model = after(STARTED, stand(1, "ganger", "one"), stand(1, "ganger", "two"))
    known = model.state.tasks["a"].checkpoint
    assert known is not None and known.done == ("two",)


def test_handing_over_costs_no_attempt_and_is_counted_apart() -> None:
    """Z05 Z10: PENDING again, with its checkpoint, and nothing pays."""
    model = after(STARTED, LAUNCHED, stand(1, "worker", "parser"), ev.AttemptCheckpointed("a", 1, "context is full"))
    now = model.state.tasks["a"]
    assert (now.status, now.counters.worker_attempts, now.counters.checkpoints, now.counters.stalls) == (
        TaskStatus.PENDING,
        0,
        1,
        0,
    )
    assert now.checkpoint is not None and now.detail == "context is full"


def test_messages_are_numbered_without_gaps_and_bounded() -> None:
    """H03 Z06: the newest fifty; numbers go on."""
    model = after(STARTED, *(ev.MessageLeft("a", 1, "note", f"{n}") for n in range(60)))
    told = worker_of(model).messages
    assert [message.number for message in told] == list(range(11, 61)) and told[-1].text == "59"


def test_an_answer_reaches_later_attempts_too_and_a_probe_does_not() -> None:
    """Z06: what a person said is not lost with the worker that asked."""
    model = after(STARTED, ev.MessageLeft("a", 1, "probe", "alive?"), ev.MessageLeft("a", 1, "answer", "use tabs"))
    model.record(ev.AttemptInterrupted("a", 1, "stop"))
    assert model.state.tasks["a"].next_start.hints == ("use tabs",) and worker_of(model).messages == ()


def test_suspicion_goes_with_the_next_word_or_sign() -> None:
    """H03: and the questions it was asked are counted."""
    doubt = ev.WorkerSuspected("a", 1, "no sign of it", "asked over the protocol")
    model = after(STARTED, doubt)
    assert (worker_of(model).suspicious, worker_of(model).probes) == ("no sign of it", 1)
    model.record(ev.WorkerCleared("a", 1, "its output grew"), doubt, BEAT)
    assert (worker_of(model).suspicious, worker_of(model).probes) == ("", 2)


def test_the_first_verdict_holds() -> None:
    """H08: a tree is ended once, and for one reason."""
    model = after(
        STARTED,
        ev.WorkerEnding("a", 1, WorkerVerdict.STALLED, "silent"),
        ev.WorkerEnding("a", 1, WorkerVerdict.CONTEXT, "full"),
    )
    assert (worker_of(model).verdict, worker_of(model).why) == (WorkerVerdict.STALLED, "silent")


def test_a_person_has_the_last_word_on_what_follows() -> None:
    """G12: what Ganger found first does not bring the task back against their will."""
    model = after(
        STARTED,
        ev.WorkerEnding("a", 1, WorkerVerdict.STALLED, "silent"),
        ev.WorkerEnding("a", 1, WorkerVerdict.ENDED, "a person"),
    )
    model.record(ev.WorkerEnding("a", 1, WorkerVerdict.CONTEXT, "full"))
    assert (worker_of(model).verdict, worker_of(model).why) == (WorkerVerdict.ENDED, "a person")


def asked(number: int, attempt: int = 1, **more: Any) -> ev.QuestionAsked:
    return ev.QuestionAsked(f"q-{number}", "a", "ambiguous_spec", "tabs?", attempt, f"e-{number}", **more)


def test_a_question_of_a_worker_is_its_own_request_and_keeps_its_default() -> None:
    """Z06 H07: sent again with the same name it is known; with a default it answers itself."""
    model = after(STARTED, asked(1, options=("tabs", "spaces"), default="tabs", deadline=99.0))
    question = model.state.inbox.questions["q-1"]
    assert (question.default, question.deadline, question.options) == ("tabs", 99.0, ("tabs", "spaces"))
    assert worker_of(model).escalated == "q-1" and worker_of(model).seen == ("e-1",)


def test_a_question_of_an_attempt_that_is_over_is_kept_and_marks_nobody() -> None:
    """Z06: a person may still answer it."""
    model = after(STARTED, ev.AttemptInterrupted("a", 1, "stop"), ev.AttemptStarted("a", 2, "new", "agent", "", "log"))
    model.record(asked(1, attempt=1))
    assert "q-1" in model.state.inbox.questions and worker_of(model).seen == ()


def test_an_open_question_rises_again_until_it_is_answered() -> None:
    """Z06: it is shown once more, and not after its answer."""
    model = after(STARTED, asked(1), ev.QuestionRaised("q-1", 1), ev.QuestionAnswered("q-1", "tabs"))
    assert (model.state.inbox.questions["q-1"].raised, model.state.inbox.questions["q-1"].answer) == (1, "tabs")
    apply(model.state, ev.Recorded(99, "", ev.QuestionRaised("q-1", 2)))
    assert "answered already" in model.state.log.refused[0]
