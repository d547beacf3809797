"""Lines of `ganger events` for people."""

from __future__ import annotations

import pytest

from ganger.core import events as ev
from ganger.views.history.stream import event_words
from tests.core.test_golden_journals import JOURNALS, told


@pytest.mark.parametrize("journal", JOURNALS)
def test_every_line_about_a_task_names_the_task(journal: str) -> None:
    """Of whatever kind the event is, with a sentence of its own or without."""
    events = [row.event for row in told(journal)]
    of_tasks = [(task, event_words(event)) for event in events if (task := getattr(event, "task", ""))]
    assert of_tasks and [words for task, words in of_tasks if task not in words] == []


def test_an_event_without_a_sentence_is_told_by_its_name() -> None:
    assert event_words(ev.AttemptLaunched("api", 1, 7, 9)) == "api: attempt launched"
