"""The manifest digest and the state text: byte for byte what JavaScript tools make of the same data."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import time
from typing import Any

import pytest
from contract_samples import DROP, MANIFEST, STATE, changed
from hypothesis import given
from hypothesis import strategies as st

from ganger.contracts.digest import manifest_digest
from ganger.contracts.faults import faults_of
from ganger.contracts.javascript import format_number
from ganger.contracts.manifest import Manifest
from ganger.contracts.state import Policy, State, dump_state, fresh_state

NODE_DIGEST = """
const m = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const tasks = m.tasks.map(t => ({id: t.id, prompt_ref: t.prompt_ref, depends_on: [...t.depends_on].sort(),
  timeout_sec: t.timeout_sec, verify_profile: t.verify_profile}));
const text = JSON.stringify({manifest_version: m.manifest_version, run_id: m.run_id, tasks});
process.stdout.write(require('crypto').createHash('sha256').update(text).digest('hex'));
"""
NODE_PRETTY = "process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')), null, 2) + '\\n')"


def node(program: str, data: object) -> str:
    ran = subprocess.run(["node", "-e", program], input=json.dumps(data).encode(), capture_output=True, check=True)
    return ran.stdout.decode()


def digest(data: dict[str, Any]) -> str:
    assert faults_of(Manifest, data) == []
    return manifest_digest(Manifest.model_validate(data))


TASK = MANIFEST["tasks"][0]
PINNED: list[tuple[dict[str, Any], str]] = [
    (MANIFEST, "da6a792b832db00dba53f1bef92303856e9ed1d1e53c557d0ae98a0e5041e34f"),
    (
        changed(MANIFEST, "tasks.0.timeout_sec", 900.0),
        "da6a792b832db00dba53f1bef92303856e9ed1d1e53c557d0ae98a0e5041e34f",
    ),
    (
        changed(MANIFEST, "tasks.0.timeout_sec", 1e21),
        "d3b8f9b5a262b90a201fbc277fbe9d177ee8fd2e447f6c42c20f11ba836cd324",
    ),
    (
        changed(MANIFEST, "tasks.0.timeout_sec", 1.5e300),
        "27410dacc62188d510b90ba1812fc8420b53f045672d84b36191f2efc0b0866f",
    ),
    (
        changed(MANIFEST, "tasks.0.timeout_sec", 2**60 + 1),
        "5d2b2e9d27ad00e2b3dc269db16efe91a7cd8416f4855a3c201f7db626bfac7b",
    ),
    (
        changed(MANIFEST, "tasks.0.timeout_sec", 123456789.125),
        "2feb2adf755d2e8aa65b827252bc3e9b10f14d0be2b710d9d891697b59b10db8",
    ),
    (
        changed(MANIFEST, "tasks.1.depends_on", ["b", "\U0001f600", "\uffee", "a", "B", "é"]),
        "26b5eef66b7e4ba0583c8ba2e8eadf8c215747ebf6caf0a4cadc0fbf47acf2a4",
    ),
    (
        changed(MANIFEST, "tasks.0.prompt_ref", 'r "\u2028"\t\x01\x7f/é😀'),
        "57fae61826b2e93d28545bdfbfe222e834dfc01a520786b045a38902e63ffd73",
    ),
]


@pytest.mark.parametrize(("data", "expected"), PINNED)
def test_the_digest_is_the_one_javascript_computes(data: dict[str, Any], expected: str) -> None:
    """T20: values pinned from a JavaScript engine: whole floats, large numbers, UTF-16 order, odd characters."""
    assert digest(data) == expected


@pytest.mark.needs("node")
@pytest.mark.parametrize("data", [data for data, _ in PINNED])
def test_a_live_javascript_engine_agrees_with_the_pinned_digests(data: dict[str, Any]) -> None:
    """T20: the pins are not a matter of belief."""
    assert node(NODE_DIGEST, data) == digest(data)


def test_the_digest_covers_what_runs_and_in_which_order() -> None:
    """T20: order, prompt, dependencies, time limit and profile count; metadata, priority and context do not."""
    plain = digest(MANIFEST)
    for place in ("context_refs", "priority", "retry_policy", "metadata"):
        assert digest(changed(MANIFEST, f"tasks.1.{place}", DROP)) == plain
    others = {"id": "z", "prompt_ref": "z", "depends_on": [], "timeout_sec": 2, "verify_profile": "z"}
    for place, value in others.items():
        assert digest(changed(MANIFEST, f"tasks.1.{place}", value)) != plain
    assert digest({**MANIFEST, "tasks": MANIFEST["tasks"][::-1]}) != plain


def test_a_simple_digest_can_be_worked_out_by_hand() -> None:
    """T20: compact JSON, keys in order, dependencies sorted, SHA-256, bare hex."""
    tasks = [{**TASK, "depends_on": ["c", "b"]}]
    text = (
        '{"manifest_version":"2.0","run_id":"run-1","tasks":[{"id":"a","prompt_ref":"p/a.md","depends_on":["b","c"],'
        '"timeout_sec":900,"verify_profile":"build"}]}'
    )
    assert digest({**MANIFEST, "tasks": tasks}) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("value", "text"),
    [(900, "900"), (900.0, "900"), (0.1, "0.1"), (-0.0, "0"), (1e20, "100000000000000000000"), (1e21, "1e+21"),
     (1.5e300, "1.5e+300"), (123456789012345680000, "123456789012345680000"), (2**53 + 1, "9007199254740992"),
     (2**60, "1152921504606847000"), (1e-6, "0.000001"), (1e-7, "1e-7"), (1.25e-9, "1.25e-9"), (-1.5, "-1.5"),
     (5e-324, "5e-324"), (0.30000000000000004, "0.30000000000000004"), (1e16, "10000000000000000"),
     (12.5e20, "1.25e+21")],
)  # fmt: skip
def test_numbers_are_printed_as_javascript_prints_them(value: float, text: str) -> None:
    """T20: ECMAScript's rules for numbers, at their borders."""
    assert format_number(value) == text


@pytest.mark.needs("node")
def test_a_live_javascript_engine_prints_random_numbers_alike() -> None:
    """T20: thousands of random bit patterns, integers and decimals."""
    raw = [struct.unpack("<d", hashlib.sha256(str(i).encode()).digest()[:8])[0] for i in range(4000)]
    numbers = [n for n in raw if n == n and abs(n) != float("inf")]
    numbers += [n % 1e25 for n in numbers[:2000]] + [round(n % 1e6, 3) for n in numbers[:2000]]
    printed = node("console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0,'utf8')).map(String)))", numbers)
    assert [format_number(n) for n in numbers] == json.loads(printed)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_is_the_same_number(value: float) -> None:
    """T20: no digit is lost."""
    assert float(format_number(value)) == value


POLICY = Policy.model_validate(STATE["policy"])
STATES = [
    STATE,
    {**STATE, "tasks": {}, "healing_rounds": []},
    {**STATE, "run_status": "ABORTED", "abort_reason": 'no "progress"\n→ übel', "run_id": "é\u2028\x7f"},
    changed(STATE, "tasks.a.history", [STATE["tasks"]["a"]["history"][0]] * 3),
    changed(STATE, "tasks.a.history.0.duration_sec", 42.0),
    changed(STATE, "tasks.a.history.0.duration_sec", 1e-7),
]


@pytest.mark.needs("node")
@pytest.mark.parametrize("data", STATES)
def test_a_live_javascript_engine_writes_the_same_state(data: dict[str, Any]) -> None:
    """T19: JSON.stringify with two spaces gives the same bytes."""
    assert dump_state(State.model_validate(data)) == node(NODE_PRETTY, data)


@pytest.mark.parametrize("data", STATES)
def test_a_state_file_is_indented_json_in_the_formats_order(data: dict[str, Any]) -> None:
    """T19: two spaces, key order, unescaped text, a newline at the end; reading it back changes nothing."""
    state = State.model_validate(data)
    text = dump_state(state)
    assert State.model_validate(json.loads(text)) == state
    assert text.replace("1e-7", "1e-07") == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert list(json.loads(text)) == list(STATE) and json.loads(text) == data


def test_a_history_entry_is_written_with_all_its_fields() -> None:
    """T19: a sparse entry of another tool is completed; its extra fields are read and not written."""
    sparse = {k: v for k, v in STATE["tasks"]["a"]["history"][0].items() if v not in (None, [], 0, 42.5)}
    data = changed(changed(STATE, "tasks.a.history", [sparse]), "tasks.a.last_log_tail", "x")
    written = json.loads(dump_state(State.model_validate(changed(data, "policy.concurrency", 3))))
    assert len(written["tasks"]["a"]["history"][0]) == 11
    assert "last_log_tail" not in written["tasks"]["a"] and "concurrency" not in written["policy"]


def test_a_fresh_state_is_all_pending_in_manifest_order() -> None:
    """T19 T26: zeros, nulls and empty lists; RUNNING; the manifest's digest."""
    manifest = Manifest.model_validate(MANIFEST)
    state = fresh_state(manifest, POLICY)
    assert (state.run_status, state.abort_reason, state.manifest_digest) == ("RUNNING", None, manifest_digest(manifest))
    assert list(state.tasks) == ["a", "b"]
    assert json.loads(dump_state(state))["tasks"]["a"] == {
        "status": "PENDING", "worker_attempts": 0, "healer_attempts": 0, "last_failure_class": None,
        "last_failure_signature": None, "applied_patch_ids": [], "history": [],
    }  # fmt: skip


def test_text_that_is_no_unicode_does_not_stop_a_state_from_being_written() -> None:
    """T19: half a surrogate pair becomes a replacement character."""
    state = State.model_construct(**{**dict(State.model_validate(STATE)), "abort_reason": "x\ud800é"})
    assert "x\ufffdé".encode() in dump_state(state).encode()


def test_a_large_state_is_written_quickly() -> None:
    """T19: ten thousand tasks take well under a second of work."""
    task = MANIFEST["tasks"][0]
    manifest = Manifest.model_validate({**MANIFEST, "tasks": [{**task, "id": f"t{i}"} for i in range(10_000)]})
    state = fresh_state(manifest, POLICY)
    began = time.process_time()
    assert dump_state(state).count("PENDING") == 10_000
    assert time.process_time() - began < 1
