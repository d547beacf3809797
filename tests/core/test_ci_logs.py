"""Logs of CI jobs, cut down to what a worker needs."""

from __future__ import annotations

import pytest

from ganger.core.logs.ci_logs import trim
from ganger.core.vocabulary import FailureClass

PYTEST = """2026-07-01T10:00:00.123Z collected 2 items
2026-07-01T10:00:01.123Z tests/test_a.py F.
2026-07-01T10:00:01.124Z E       AssertionError: 3 is not 4
2026-07-01T10:00:01.125Z 1 failed, 1 passed in 0.1s
2026-07-01T10:00:01.126Z ##[error]Process completed with exit code 1.
"""
KINDS = [
    (PYTEST, FailureClass.TEST_ERROR),
    ("error[E0432]: unresolved import `x`\nerror: could not compile `y`", FailureClass.BUILD_ERROR),
    ("fetching\nerror: connection reset by peer", FailureClass.TRANSIENT_INFRA),
    ("warning: connection reset by peer, tried again\nAssertionError: 1 != 2", FailureClass.TEST_ERROR),
    ("connection timed out once\n3 failed, 2 passed", FailureClass.TEST_ERROR),
]


def test_the_signal_is_the_error_and_not_what_the_runner_says_about_it() -> None:
    """D06: times and marks of the forge are left out, so the same fault gives one signature."""
    found = trim(PYTEST)
    assert found.signal == "E       AssertionError: 3 is not 4"
    assert "2026-07-01" not in found.text and "exit code" not in found.signal


@pytest.mark.parametrize(("log", "kind"), KINDS)
def test_a_fault_of_the_code_is_not_taken_for_trouble_that_passes(log: str, kind: FailureClass) -> None:
    """D12: only what nobody could mend is run again without a worker."""
    assert trim(log).kind is kind


@pytest.mark.parametrize("log", ["", "\n" * 100_000, "x" * 3_000_000, "error\n" * 200_000, "\x1b[31m\x00" * 10_000])
def test_any_log_gives_a_short_excerpt(log: str) -> None:
    """D06: bounded, whatever a job prints."""
    found = trim(log)
    assert len(found.text) <= 6_000 and len(found.signal) <= 400 and len(found.text.splitlines()) <= 130
