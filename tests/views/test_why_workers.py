"""`ganger why` on workers: what one does, what is thought of it, what it left, and every counter."""

from __future__ import annotations

import pytest

from ganger.core import events as ev
from ganger.core.model.counters import CHARGED
from ganger.core.model.workers import Checkpoint
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, TaskStatus, WorkerVerdict
from ganger.views.run.why import why
from tests.views.worker_story import BEGAN, Story


def test_every_counter_is_visible_with_its_limit() -> None:
    """G10 H04: each is its own field."""
    story = Story()
    shown = why(story.state, "api").counters
    assert CHARGED - {"none"} <= shown.keys()
    assert (shown["stalls"], shown["checkpoints"], shown["respawns"]) == ("0 of 2", "0 of 10", "0 of 1")


def test_a_running_task_says_what_its_worker_last_said_and_when() -> None:
    """G10 H02: a sign that was seen, and doubt."""
    story = Story()
    story.start("api", worker="ada")
    story.record(ev.WorkerBeat("api", 1, "r1", "write tests", 40.0), sec=60)
    said = why(story.state, "api").sentence
    assert said.endswith(f"; ada took it; its last message was at {stamp(BEGAN + 60)}: write tests, 40 %.")
    story.record(ev.WorkerSuspected("api", 1, "no word for 8 min"), sec=500)
    assert "; it is suspicious: no word for 8 min." in why(story.state, "api").sentence
    story.record(ev.WorkerEnding("api", 1, WorkerVerdict.STALLED, "no word for 15 min"), sec=900)
    assert why(story.state, "api").sentence.endswith("; it is being stopped (stalled): no word for 15 min.")


def test_a_running_task_that_asked_says_so_and_how_to_answer() -> None:
    """G10 Z06: the next step is the answer."""
    story = Story()
    story.start("api")
    story.ask("api")
    answer = why(story.state, "api")
    assert "it asked q-1, which is not answered yet" in answer.sentence and answer.next_step == "ganger answer q-1 TEXT"


def test_the_last_checkpoint_and_the_end_of_the_worker_are_evidence() -> None:
    """G10 H05: where it stood, and why it was ended."""
    story = Story()
    story.start("api")
    stand = Checkpoint(1, stamp(BEGAN), done=("a", "b"), remaining=("c",), next_action="write c")
    story.record(ev.CheckpointTaken("api", 1, "r1", stand), ev.LimitWarned("api", 1, "time", "half is gone"))
    story.record(ev.WorkerEnding("api", 1, WorkerVerdict.ENDED, "ended by a person"))
    story.record(ev.TaskSettled("api", TaskStatus.BLOCKED, "ended by a person", BlockReason.PAUSED))
    evidence = why(story.state, "api").evidence
    assert evidence[-3:] == (
        f"worker {story.worker('api')} was warned: half is gone",
        f"worker {story.worker('api')} was stopped (ended): ended by a person",
        f"{stamp(BEGAN)} checkpoint of attempt 1 by its worker: 2 done, 1 remaining: next: write c",
    )


def test_a_task_for_sessions_waits_for_one_to_ask() -> None:
    """G10 G02: nobody is started for it."""
    answer = why(Story(pull_roles=("worker",)).state, "api")
    assert answer.sentence == "api is ready and waits for a worker to ask for it."
    assert answer.next_step == "ganger worker next"


WORKER_EVENTS: list[tuple[ev.Event, str]] = [
    (ev.WorkerBeat("a", 1), ""),
    (ev.WorkerBeat("a", 1, "r1", "tests", 4.5), "a: tests, 4.5 %"),
    (ev.WorkerMilestone("a", 1, "r", "green", "all"), "a: milestone green: all"),
    (ev.CheckpointTaken("a", 1, "", Checkpoint(1, "", by="ganger")), ""),
    (
        ev.CheckpointTaken("a", 1, "r", Checkpoint(1, "", next_action="x")),
        "a: checkpoint: 0 done, 0 remaining; next: x",
    ),
    (ev.WorkerReported("a", 1, "r", "DONE", "made it", "f", "d"), "a: worker reports DONE: made it"),
    (ev.WorkerDone("a", 1), ""),
    (ev.WorkerSuspected("a", 1, "quiet", "asked by a message"), "a: suspicious: quiet; asked by a message"),
    (ev.WorkerCleared("a", 1, "it spoke"), "a: no longer suspicious: it spoke"),
    (ev.LimitWarned("a", 1, "time", "half is gone"), "a: warning: half is gone"),
    (ev.LimitExtended("a", 1, "person", BEGAN, "asked"), "a: time limit extended to 00:00:00: asked"),
    (ev.WorkerEnding("a", 1, WorkerVerdict.STALLED, "quiet"), "a: worker stopped (stalled): quiet"),
    (ev.AttemptCheckpointed("a", 1, "context is full"), "a: a new worker continues: context is full"),
    (ev.MessageLeft("a", 1, "note", "hello"), "a: note for its worker: hello"),
    (ev.QuestionRaised("q-1", 2), "question q-1 is still open (reminder 2)"),
]


@pytest.mark.parametrize(("event", "said"), WORKER_EVENTS, ids=lambda value: type(value).__name__)
def test_every_event_of_a_worker_has_its_words(event: ev.Event, said: str) -> None:
    """Z09: beats that nobody asked to keep are quiet."""
    assert event.sentence() == said


def test_the_table_of_words_has_every_event_of_workers() -> None:
    """Z09: a new one needs words, or a reason to be quiet."""
    own = {kind for kind in ev.EVENT_TYPES.values() if kind.__module__ == "ganger.core.events.worker"}
    assert own == {type(event) for event, _ in WORKER_EVENTS}
