"""A copied record is the one `dataclasses.replace` makes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ganger.core.model.fast_replace import replace
from ganger.core.model.records import Ended, Spending
from ganger.core.model.task_state import CurrentAttempt, TaskState
from ganger.core.model.workers import WorkerNow
from ganger.core.vocabulary import TaskStatus

CASES = [
    (TaskState(), {}),
    (
        TaskState(attempt=CurrentAttempt(token="t"), history=()),
        {"status": TaskStatus.RUNNING, "worker": WorkerNow("w"), "attempts": 3},
    ),
    (WorkerNow("w", seen=("a",)), {"seen": ("a", "b")}),
    (Spending(), {"attempts": 1}),
]


@pytest.mark.parametrize(("record", "changes"), CASES)
def test_a_copy_has_every_field_and_leaves_the_original(record: TaskState, changes: dict[str, Any]) -> None:
    """T19: what an event does not change stays as it was."""
    before = dataclasses.replace(record)
    made = replace(record, **changes)
    assert made == dataclasses.replace(record, **changes) and hash(made) == hash(dataclasses.replace(made))
    assert record == before and made is not record


def test_what_cannot_be_copied_so_is_refused() -> None:
    """T19: neither a field nobody knows nor a record without slots gets half a copy."""
    with pytest.raises(AttributeError):
        replace(Ended(code=0), nothing=1)

    @dataclasses.dataclass(frozen=True)
    class Loose:
        one: int = 1
        two: int = 2

    with pytest.raises(TypeError):
        replace(Loose(), one=2)
