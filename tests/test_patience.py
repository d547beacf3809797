"""The limits of tests are time of this machine, not of the wall."""

from __future__ import annotations

import time

import pytest

from tests import patience
from tests.patience import Patience, busyness, stretched, until


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """As many programs per processor as the list says last."""
    shares = [1.0]
    monkeypatch.setattr(patience, "busyness", lambda: shares[-1])
    return shares


def test_this_machine_says_how_busy_it_is() -> None:
    assert busyness() >= 1


def test_a_busy_machine_gets_more_time(load: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it became busy only while somebody waited."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[-1])
    waiting = Patience(10)
    now.append(109)
    assert not waiting.is_over()
    load.append(8)
    now.append(114)
    assert not waiting.is_over()
    load.append(1)
    now.append(115)
    assert waiting.is_over()


def test_a_limit_that_is_said_once_leaves_room_for_what_begins_later(load: list[float]) -> None:
    assert stretched(30) == 60
    load.append(4)
    assert stretched(30) == 240


def test_what_never_happens_fails_and_says_after_how_long() -> None:
    with pytest.raises(AssertionError, match=r"did not happen in 0\.01 s"):
        until(lambda: False, 0.01, pause_sec=0.001)
