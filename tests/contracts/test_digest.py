"""The manifest digest: byte for byte what JavaScript tools make of the same data."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ganger.contracts.digest import format_number, manifest_digest
from ganger.contracts.faults import faults_of
from ganger.contracts.manifest import Manifest
from tests.contracts.contract_samples import DROP, MANIFEST, changed

NODE_DIGEST = """
const m = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const tasks = m.tasks.map(t => ({id: t.id, prompt_ref: t.prompt_ref, depends_on: [...t.depends_on].sort(),
  timeout_sec: t.timeout_sec, verify_profile: t.verify_profile}));
const text = JSON.stringify({manifest_version: m.manifest_version, run_id: m.run_id, tasks});
process.stdout.write(require('crypto').createHash('sha256').update(text).digest('hex'));
"""


# The pinned values prove the same; a live engine only shows that they were pinned right.
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no JavaScript engine to compare with")


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


@needs_node
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


@needs_node
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
