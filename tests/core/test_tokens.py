"""The estimator of tokens: beside counts of a real vocabulary, and beside what agents count."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ganger.core.prompts.tokens import Calibration, TokenSample, calibrations, clipped, estimate

# A text and its tokens by the vocabulary `o200k_base`.
COUNTED = {
    "prose": (
        "Nothing counts as done until it was proved. A worker reports what it did, and the project's own checks decide "
        "whether that is so; a claim alone changes nothing.",
        33,
    ),
    "python": (
        "def missing(rules: RepoRules, delivery: Delivery | None) -> tuple[str, ...]:\n"
        "    now = delivery or Delivery()\n"
        "    proved = {step: now.commit == sha for step, sha in rules.items()}\n"
        "    return tuple(step for step in STEPS if not proved[step])\n",
        60,
    ),
    "json": (
        '{"contract_version": "2.0", "task_id": "T1", "status": "DONE", "summary": "did it", "writes": [{"path": '
        '"src/a.py", "op": "create"}]}',
        48,
    ),
    "markdown": (
        "## What to do\n\n- read `docs/guide/agents.md`\n- write **one** test per row of the table\n\n| key | value |\n"
        "| --- | --- |\n| a | 1 |\n",
        43,
    ),
    "javascript": (
        "export async function load(path, { encoding = 'utf8' } = {}) {\n"
        "  const text = await readFile(path, encoding);\n"
        "  return JSON.parse(text).items.map((item) => item.id);\n}\n",
        44,
    ),
    "log": (
        "2026-11-15T16:32:10.906Z ERROR [worker-3] tests/test_api.py:118: AssertionError: expected 200, got 502 "
        "(GET http://127.0.0.1:8080/v1/items?limit=50)\n",
        60,
    ),
    "shell": (
        "set -eu\nfor file in \"$@\"; do\n  grep -qE '^#!/bin/(ba)?sh' \"$file\" && shellcheck --severity=warning "
        '"$file"\ndone\n',
        40,
    ),
    "hashes": (
        "4f6c2d1e9b8a7f6c5d4e3b2a190f8e7d6c5b4a39 https://ci.example.org/owner/repo/actions/runs/4711/jobs/2",
        55,
    ),
    "german": (
        "Dieses Projekt führt mehrere Agenten gleichzeitig aus und überprüft jedes Ergebnis, bevor Änderungen "
        "übernommen werden.",
        19,
    ),
    "chinese": (
        "所有任务在完成之前都必须经过验证。"
        "我们不会相信任何未经证实的报告，因此每一次提交都会重新运行测试。",
        28,
    ),
    "pictures": ("🚀🔥✅ done 🎉", 7),
}  # fmt: skip


@pytest.mark.parametrize("kind", COUNTED)
def test_an_estimate_is_above_the_count_and_within_reason(kind: str) -> None:
    """D15: with room for vocabularies that cut finer, and of use as a budget."""
    text, counted = COUNTED[kind]
    assert 1.1 * counted <= estimate(text) <= 1.75 * counted


@pytest.mark.parametrize(("text", "tokens"), [("", 0), (" ", 0), ("a", 2), ("\n", 2), ("\0", 2), ("\ud800", 2)])
def test_the_smallest_texts_have_an_estimate(text: str, tokens: int) -> None:
    """D15: also what is no text at all."""
    assert estimate(text) == tokens


def test_a_longer_text_never_weighs_less() -> None:
    """D15: beginnings of a text are never heavier than the text, but for a word that becomes one."""
    text = "".join(sample for sample, _ in COUNTED.values())
    weights = [estimate(text[:end]) for end in range(len(text))]
    assert all(later >= earlier - 2 for earlier, later in pairwise(weights))


@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize("most", [2, 8, 40])
def test_a_clipped_text_holds_its_bound_and_is_a_beginning(kind: str, most: int) -> None:
    """D15: and a text that fits is left alone."""
    text = COUNTED[kind][0]
    found = clipped(text, most)
    assert estimate(found) <= most
    assert found == text or (found.endswith("…") and text.startswith(found[:-1]))
    assert clipped(text, 1000) == text


def test_what_agents_counted_gives_a_factor_and_what_one_more_token_costs() -> None:
    """D15: an agent that asks once, with 1,000 tokens of its own."""
    samples = [TokenSample("x/x", size, 1000 + size * 9 // 10) for size in (100, 200, 400, 800)]
    assert calibrations(samples) == (Calibration("x/x", 4, 4.65, 0.9),)


def test_attempts_that_tell_nothing_are_left_out() -> None:
    """D15: no prompt, no count, or prompts of one size."""
    samples = [TokenSample("a", 0, 5), TokenSample("a", 5, 0), TokenSample("b", 100, 120), TokenSample("b", 101, 140)]
    assert calibrations(samples) == (Calibration("b", 2, 1.293, None),)
