"""An event says everything about itself in its class, and what it changes is found from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

import pytest

from ganger.core import events as ev
from ganger.core.events import event as event_module
from ganger.core.state import apply as apply_module
from ganger.core.state.reducers import RUN_REDUCERS, TASK_REDUCERS, applied_in, applies

# Only read by Ganger itself; what follows them has a sentence.
SILENT = {
    *("contents_seen", "attempt_launched", "agent_heard", "attempt_exited", "writes_intended", "verify_started"),
    *("workspace_ready", "head_intended", "worker_done"),
}


def lacking(kind: type[ev.Event]) -> list[str]:
    found = [] if issubclass(kind, ev.RunEvent | ev.TaskEvent) else ["what it is about"]
    if kind.sentence is ev.Event.sentence and ev.TYPE_NAMES[kind] not in SILENT:
        found.append("a sentence")
    if issubclass(kind, ev.TaskEvent) and not kind.fits:
        found.append("the statuses it fits")
    return [*found, *([] if kind in TASK_REDUCERS or kind in RUN_REDUCERS else ["a reducer"])]


@pytest.mark.parametrize("kind", ev.EVENT_TYPES.values(), ids=ev.EVENT_TYPES)
def test_every_event_has_a_sentence_statuses_and_a_reducer(kind: type[ev.Event]) -> None:
    """G10: so nothing is forgotten when one is added."""
    assert apply_module.apply is not None and lacking(kind) == []


def test_a_forgotten_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """G10: the check above can fail."""
    monkeypatch.setattr(event_module, "EVENT_TYPES", {})

    @dataclass(frozen=True, slots=True)
    class Forgotten(ev.TaskEvent):
        task: str

    try:
        assert lacking(Forgotten) == ["a sentence", "a reducer"]
    finally:
        del ev.TYPE_NAMES[Forgotten]


@pytest.mark.parametrize("kind", ev.EVENT_TYPES.values(), ids=ev.EVENT_TYPES)
def test_what_a_class_says_of_all_its_events_is_not_stored_with_each(kind: type[ev.Event]) -> None:
    """T19: only its own fields are."""
    event = object.__new__(kind)
    own = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name in own:
        object.__setattr__(event, name, "")
    assert list(json.loads(ev.encode(event))) == own and not {"fits", "shown", "told_in_notices"} & set(own)


def test_two_functions_for_one_event_are_refused() -> None:
    """G10: the second would silently win."""
    with pytest.raises(TypeError, match="two functions apply HostBack"):
        applies(ev.HostBack)(lambda *_: None)
    assert ev.HostBack in applied_in("ganger.core.state.hosts")
