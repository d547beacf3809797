"""Events in the store: every type survives the way there and back, and journals of the past replay unchanged."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core import events as ev
from ganger.core.events import delivery, notable, requests
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import TaskStatus

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value a field of this type may hold."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin in (types.UnionType, typing.Union):
        return st.one_of([values(arg) for arg in args])
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=3)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{f.name: values(hints[f.name]) for f in dataclasses.fields(kind)})
    return st.sampled_from(kind)


@pytest.mark.parametrize("name", ev.EVENT_TYPES)
@given(data=st.data())
@settings(max_examples=10)
def test_every_event_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    """T19: encode and decode lose nothing, for any content of any field."""
    event = data.draw(values(ev.EVENT_TYPES[name]))
    text = ev.encode(event)
    assert ev.decode(name, text) == event and "\n" not in text
    assert ev.type_name(event) == name


def test_fields_of_a_newer_version_are_ignored() -> None:
    """T19: also inside records; a journal can be read after going back one version."""
    text = ev.encode(ev.RunStarted("r", "d", Policy(), (TaskSpec("a"),)))
    data = json.loads(text) | {"colour": "blue"}
    data["policy"]["mood"] = 3
    data["tasks"][0]["shape"] = []
    assert ev.decode("run_started", json.dumps(data)) == ev.decode("run_started", text)


def test_fields_an_older_version_did_not_write_take_their_default() -> None:
    """T19: a journal can be read after going forward."""
    event = ev.decode("task_settled", '{"task":"a","status":"DONE","detail":"x"}')
    assert event == ev.TaskSettled("a", TaskStatus.DONE, "x", None, True)
    older = '{"run_id":"r","manifest_digest":"d","policy":{},"tasks":[{"id":"a"}]}'
    assert ev.decode("run_started", older) == ev.RunStarted("r", "d", Policy(), (TaskSpec("a"),))


def golden(name: str) -> Iterator[ev.Recorded]:
    for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield ev.Recorded(row["seq"], row["at"], ev.decode(row["type"], json.dumps(row["data"])))


def test_the_first_journal_ever_kept_replays_to_the_state_it_had() -> None:
    """T19 T20: old runs can be continued; the golden files are never rewritten."""
    state = RunState()
    for entry in golden("journal-1.jsonl"):
        apply(state, entry)
    assert state.log.refused == []
    assert state_text(state) == (GOLDEN / "journal-1.state.json").read_text(encoding="utf-8")


def test_the_golden_journal_holds_every_type_of_event() -> None:
    """T19: whoever adds a type adds a journal that has it."""
    kept = {ev.type_name(entry.event) for path in GOLDEN.glob("journal-*.jsonl") for entry in golden(path.name)}
    assert kept == set(ev.EVENT_TYPES)


def test_whoever_is_told_of_a_change_request_s_way_is_told_in_words() -> None:
    """D40 G10: what is merged, what it is brought up to date with, what landed."""
    rows = [entry.event for entry in golden("journal-requests.jsonl")]
    kinds = {type(event): event for event in rows if type(event).__module__ == requests.__name__}
    assert len(kinds) == 5 and all(event.sentence() == notable.sentence(event) != "" for event in kinds.values())


def test_whoever_is_told_of_a_delivery_is_told_in_words() -> None:
    """D40 G10: the log of a run, its events and its notices name the commit, the repository or the request."""
    rows = [entry.event for entry in golden("journal-6.jsonl")]
    kinds = {type(event): event for event in rows if type(event).__module__ == delivery.__name__}
    assert len(kinds) == 19
    for kind, event in kinds.items():
        assert event.sentence() and event.sentence() == notable.sentence(event), kind
