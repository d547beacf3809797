"""The inbox: what a person must know before they answer."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.times import stamp
from ganger.core.vocabulary import TaskStatus
from ganger.views.run.inbox import InboxRow, inbox
from tests.views.worker_story import BEGAN, Story


def only(story: Story) -> InboxRow:
    (row,) = inbox(story.state)
    return row


def test_a_question_says_what_waits_behind_it() -> None:
    """Z06: dependents of dependents too, in plan order; those that are DONE are left out."""
    story = Story()
    story.start("api")
    story.ask("api")
    assert only(story).behind == ("ui", "tests", "docs")
    assert "3 tasks wait for it: ui, tests, docs" in only(story).facts


def test_a_question_says_what_it_answers_itself_with() -> None:
    """Z06: options by number, the default, and when."""
    story = Story()
    story.start("db")
    story.ask("db", options=("8080", "9090"), default="8080", deadline=BEGAN + 60, context="two are free")
    row = only(story)
    assert row.facts[:3] == ("1) 8080", "2) 9090", "answers itself with '8080' at 2026-01-01T00:01:00Z")
    assert row.commands[0] == "ganger answer q-1 NUMBER_OR_TEXT --run r1"
    shown = row.as_json()
    assert (shown["category"], shown["context"], shown["default"]) == ("ambiguous_spec", "two are free", "8080")
    assert (shown["deadline"], shown["blocks"], shown["raised"]) == (stamp(BEGAN + 60), ["tests"], 0)


def test_a_question_says_whether_its_worker_still_works() -> None:
    """Z06: then it is told at once, otherwise its task runs again."""
    story = Story()
    story.start("db", worker="ada")
    story.ask("db")
    assert "its worker ada is still running and will receive the answer" in only(story).facts
    story.record(ev.TaskSettled("db", TaskStatus.ESCALATED, "it asked"))
    assert only(story).worker == ""


def test_a_question_says_how_often_it_was_raised() -> None:
    """Z06: once, and more than once; an answered one says only its answer."""
    story = Story()
    story.ask("docs")
    story.record(ev.QuestionRaised("q-1", 1))
    assert only(story).facts == ("raised again since",)
    story.record(ev.QuestionRaised("q-1", 2))
    assert only(story).facts == ("raised 2 more times since",)
    story.record(ev.QuestionAnswered("q-1", "so"))
    (row,) = inbox(story.state, answered=True)
    assert row.commands == () and row.answer == "so" and row.behind == ()
