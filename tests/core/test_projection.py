"""A run as the text of its state file."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest
from hypothesis import given, strategies as st

from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.projection import StateText, state_data, state_text
from ganger.core.vocabulary import HealSchedule
from tests.core.run_model import Model, random_specs


def plain(state: RunState) -> str:
    return json.dumps(state_data(state), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.whole
@given(st.randoms(use_true_random=False), st.integers(1, 8), st.integers(0, 60))
def test_a_text_kept_up_to_date_equals_one_made_anew(chance: object, size: int, steps: int) -> None:
    """T19: at every moment of a run, byte for byte what plain JSON writing gives."""
    import random

    assert isinstance(chance, random.Random)
    model = Model(random_specs(chance, size), Policy(concurrency=3), chance).begin()
    kept = StateText()
    for _ in range(steps):
        model.step()
        assert kept.of(model.state) == plain(model.state)


def test_hostile_names_cannot_confuse_the_text() -> None:
    """T19: ids, run ids and reasons that look like parts of the file."""
    names = ['"tasks": {}', "\n", "ä\u2028", '"', "\\"]
    model = Model(tuple(TaskSpec(name) for name in names), Policy(heal_schedule=HealSchedule.OFF), fail_rate=0).begin()
    model.state.run_id, model.state.abort_reason = '"tasks": {}', '"tasks": {}'
    assert json.loads(state_text(model.run().state)) == state_data(model.state)


def test_a_state_without_tasks_is_written_too() -> None:
    """T19: before a run has begun."""
    assert state_text(RunState()) == plain(RunState())


def test_writing_again_after_one_change_costs_little() -> None:
    """T19: never in proportion to the whole history of the run."""
    model = Model(tuple(TaskSpec(f"t{n}") for n in range(3000)), Policy(), fail_rate=0, checked=False).begin()
    model.run(most_steps=30_000)
    kept = StateText()
    began = time.perf_counter()
    kept.of(model.state)
    first = time.perf_counter() - began
    began = time.perf_counter()
    kept.of(model.state)
    assert (time.perf_counter() - began) * 5 < first


@pytest.mark.skipif(shutil.which("node") is None, reason="no JavaScript engine to compare with")
def test_a_live_javascript_engine_writes_the_same_bytes() -> None:
    """T19: indentation, key order, whole numbers, text beyond ASCII."""
    policy = Policy(heal_schedule=HealSchedule.OFF, failure_threshold=1.0)
    model = Model(tuple(TaskSpec(name) for name in ("ä→", "b")), policy, fail_rate=0).begin()
    text = state_text(model.run().state)
    program = "process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0,'utf8')),null,2)+'\\n')"
    ran = subprocess.run(["node", "-e", program], input=text.encode(), capture_output=True, check=True)
    assert ran.stdout.decode() == text and '"failure_threshold": 1,' in text
