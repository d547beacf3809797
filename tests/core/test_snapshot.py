"""A state as text: it comes back equal, or not at all."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core import events as ev
from ganger.core.model.records import Policy, VerifyStep
from ganger.core.model.run_state import Indexes, RunState, Windows
from ganger.core.model.task_state import TaskState, Verification
from ganger.core.state import snapshot
from ganger.core.state.apply import apply
from ganger.core.state.snapshot import decode_state, encode_state, fingerprint
from ganger.core.vocabulary import HealSchedule, TaskStatus
from tests.core.run_model import Model, random_specs

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "journal-1.jsonl"


def journals() -> Iterator[list[ev.Recorded]]:
    """The first format's, and runs driven by chance."""
    rows = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    yield [ev.Recorded(row["seq"], row["at"], ev.decode(row["type"], json.dumps(row["data"]))) for row in rows]
    for seed, schedule in enumerate(HealSchedule):
        chance = random.Random(seed)
        model = Model(random_specs(chance, 12), Policy(heal_schedule=schedule, concurrency=3), chance, checked=False)
        yield model.begin().run().events


@pytest.mark.whole
def test_a_run_goes_on_from_a_snapshot_exactly_as_from_its_events() -> None:
    """T20: cut after every event."""
    for journal in journals():
        state, kept = RunState(), RunState()
        for recorded in journal:
            apply(state, recorded)
            apply(kept, recorded)
            text = encode_state(kept)
            again = decode_state(text)
            assert again is not None and again == state and encode_state(again) == text
            kept = again


PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value a field of this type may hold."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin is types.UnionType:
        return st.one_of([values(arg) for arg in args])
    if origin is tuple and args[-1] is not Ellipsis:
        return st.tuples(*[values(arg) for arg in args])
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        made = {f.name: (values(hints[f.name]), f.default is dataclasses.MISSING) for f in dataclasses.fields(kind)}
        needed = {name: value for name, (value, missing) in made.items() if missing}
        optional = {name: value for name, (value, missing) in made.items() if not missing}
        make: Any = kind
        return st.fixed_dictionaries(needed, optional=optional).map(lambda fields: make(**fields))
    return st.sampled_from(kind)


@pytest.mark.whole
@settings(max_examples=30)
@given(tasks=st.dictionaries(st.text(), values(TaskState), max_size=3))
def test_any_state_a_task_can_be_in_comes_back(tasks: dict[str, TaskState]) -> None:
    """T20: every field, with every value its type allows."""
    state = RunState(tasks=tasks, index=Indexes(counts={TaskStatus.DONE: 3}), windows=Windows(open={"b", "a"}))
    assert decode_state(encode_state(state)) == state


def sample() -> RunState:
    task = TaskState(
        TaskStatus.DONE, attempts=2, verification=Verification(steps=(VerifyStep("unit", "unit", "passed", 0),))
    )
    return RunState(run_id="ä\n", tasks={"a": task, "b": TaskState()})


def test_what_was_never_set_takes_no_room() -> None:
    """T20: ten thousand tasks that wait are mostly defaults."""
    text = encode_state(sample())
    assert "summary" not in text and "failure_signature" not in text


def test_every_changed_character_is_noticed() -> None:
    """T20: damage means replaying the events."""
    text = encode_state(sample())
    for place in range(len(text)):
        assert decode_state(text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]) is None, place
    assert all(decode_state(text[:length]) is None for length in range(len(text)))


@pytest.mark.parametrize("text", ["", "\n", "{}", "[]\n[]", "null\nnull", "[" * 100_000, "\ud800\n\ud800"])
def test_what_is_no_snapshot_is_none(text: str) -> None:
    """T20: never an error."""
    assert decode_state(text) is None


@pytest.mark.parametrize(
    "body", ["[]", "[1,{}]", "[0,{}]", '[1,{"run_id":[]}]', '[1,{"status":["X"]}]', "7", "[-1,[]]"]
)
def test_a_forged_text_that_fits_no_state_is_none(body: str) -> None:
    """T20: an agent may write that file; it can name no class and run no code."""
    head = json.dumps([fingerprint(), snapshot._digest(body)])
    assert decode_state(f"{head}\n{body}") is None


def test_a_snapshot_of_other_records_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """T20: a field, type, default or word more or less, or another version."""
    text = encode_state(sample())
    monkeypatch.setattr(snapshot, "__version__", "another")
    fingerprint.cache_clear()
    assert decode_state(text) is None
    monkeypatch.undo()
    fingerprint.cache_clear()
    assert decode_state(text) == sample()


def test_the_fingerprint_covers_everything_a_state_is_made_of() -> None:
    """T20: down to the words of an enumeration."""
    found: dict[str, Any] = {}
    snapshot._describe(RunState, found)
    assert {"RunState", "TaskState", "HistoryItem", "VerifyStep", "Policy", "TaskStatus", "Phase"} <= set(found)
    assert len(found["TaskState"]) == len(dataclasses.fields(TaskState))


def test_another_process_makes_the_same_fingerprint() -> None:
    """T20: or no snapshot would ever be taken."""
    code = "from ganger.core.state.snapshot import fingerprint; print(fingerprint())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == fingerprint()
