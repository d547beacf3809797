"""One table for every agent: what was heard becomes a failure class, and what it costs."""

from __future__ import annotations

import pytest

from ganger.core.failures.agent_errors import AgentError, is_over_for_good, trouble_of
from ganger.core.signs import Denied, Heard, Limited, LoginMissing, Over, Retrying, Said, Sign
from ganger.core.vocabulary import FailureClass as C


def trouble(*signs: Sign, cut_short: bool = False) -> AgentError | None:
    heard = Heard()
    heard.add(signs)
    return trouble_of(heard, cut_short=cut_short)


TABLE: dict[str, tuple[tuple[Sign, ...], C]] = {
    "login": ((LoginMissing("401"),), C.BLOCKED_EXTERNAL),
    "quota": ((Limited("429", reset_at=9.0),), C.QUOTA),
    "empty account": ((Limited("no credit", empty=True),), C.QUOTA),
    "refused a tool": ((Denied("Bash", "rm x"),), C.PERMISSION_DENIED),
    "left its place": ((Denied("write", "/etc/x", rule=True),), C.POLICY_VIOLATION),
    "network": ((Over("network", "reset"),), C.TRANSIENT_INFRA),
    "refusal": ((Over("refused", "no"),), C.PROMPT_GAP),
    "cut off": ((Over("length"),), C.CONTRACT_ERROR),
    "turns": ((Over("turns"),), C.TIMEOUT),
    "its budget": ((Over("budget"),), C.BLOCKED_EXTERNAL),
    "bad flags": ((Over("usage", "unknown option"),), C.BLOCKED_EXTERNAL),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_was_heard_has_one_class(name: str) -> None:
    """D12 W07 T24: the same for every agent, with a text a person can use."""
    signs, cls = TABLE[name]
    found = trouble(*signs)
    assert found is not None and found.failure_class is cls and found.detail and found.signal


@pytest.mark.parametrize("signs", [(), (Said("hm"),), (Over("success", "text"),), (Over("error", "?"),)])
def test_what_explains_nothing_is_left_to_the_end_itself(signs: tuple[Sign, ...]) -> None:
    """T08: then the missing block, the exit code or the clock speak."""
    assert trouble(*signs) is None


def test_what_it_was_trying_when_it_was_cut_short_explains_its_end() -> None:
    """D12: a limit for 429, else trouble of the network; one that ended by itself had got over it."""
    assert trouble(Retrying("x", 429)) is None
    limited, network = trouble(Retrying("x", 429), cut_short=True), trouble(Retrying("x", 500), cut_short=True)
    assert limited is not None and limited.failure_class is C.QUOTA
    assert network is not None and network.failure_class is C.TRANSIENT_INFRA
    waiting = trouble(Limited("x", reset_at=5.0, final=False), cut_short=True)
    assert waiting is not None and waiting.reset_at == 5.0 and trouble(Limited("x", final=False)) is None


def test_what_an_agent_says_when_its_time_is_up_does_not_explain_that() -> None:
    """D12: the signal that ends it breaks its connection; what it was waiting for before counts."""
    heard = Heard()
    heard.add([Over("network", "aborted")])
    assert trouble_of(heard, cut_short=True, timed_out=True) is None
    heard.add([Retrying("429", 429)])
    found = trouble_of(heard, cut_short=True, timed_out=True)
    assert found is not None and found.failure_class is C.QUOTA


def test_a_missing_login_comes_before_all_and_a_limit_before_a_refusal() -> None:
    """D12: the cause that stops every other task is named first."""
    first = trouble(Denied("sh"), Limited("429"), LoginMissing("401"))
    second = trouble(Denied("sh"), Limited("429"))
    assert first is not None and first.failure_class is C.BLOCKED_EXTERNAL
    assert second is not None and second.failure_class is C.QUOTA


def test_the_refused_tool_is_named_with_the_way_out() -> None:
    """D12: which tool, what, how often, what to do."""
    found = trouble(Denied("Bash", "make"), Denied("Bash", "npm i"))
    assert found is not None and "2 times" in found.detail and "Bash (npm i)" in found.detail
    assert "permissions" in found.detail


def test_a_session_that_is_gone_is_known_as_such() -> None:
    """H05: then a fresh one is begun."""
    heard = Heard()
    heard.add([Over("no_session", "unknown id")])
    assert is_over_for_good(heard) and not is_over_for_good(Heard()) and trouble_of(heard, cut_short=True) is None
