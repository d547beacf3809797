"""Tiers: order, blocking, classes, and a tier table that names what is not there."""

from __future__ import annotations

import pytest

from ganger.core.verify.tiers import TieredStep, order_steps, step_class, tier_faults
from ganger.core.vocabulary import FailureClass, Tier
from ganger.errors import InputError

STEPS = [TieredStep(name, f"run {name}") for name in ("docs", "unit", "smoke", "parse", "lint", "more")]
TIERS = {
    "all/docs": "quality",
    "all/smoke": "smoke",
    "all/parse": "syntax",
    "all/lint": "quality",
    "other/unit": "quality",
}


def test_steps_run_by_tier_and_then_as_the_profile_has_them() -> None:
    """Z04 T17: syntax, correctness, smoke, quality; without an entry a step is correctness."""
    ordered = order_steps("all", STEPS, TIERS)
    assert [step.name for step in ordered] == ["parse", "unit", "more", "smoke", "docs", "lint"]
    assert [step.tier for step in ordered][:4] == [Tier.SYNTAX, Tier.CORRECTNESS, Tier.CORRECTNESS, Tier.SMOKE]


@pytest.mark.parametrize("tier", Tier)
def test_every_tier_but_quality_blocks(tier: Tier) -> None:
    """Z04: quality is recorded and stops nothing."""
    assert TieredStep("x", "x", tier=tier).blocks is (tier is not Tier.QUALITY)


def test_ordering_keeps_what_the_step_says() -> None:
    """Z04: command, directory and time limit are the profile's own."""
    (step,) = order_steps("p", [TieredStep("a", "b c", "d", 7)], {})
    assert step == TieredStep("a", "b c", "d", 7, Tier.CORRECTNESS)


def test_an_unknown_tier_is_refused_by_its_place() -> None:
    """Z04: the message names the key and the tiers there are."""
    with pytest.raises(InputError, match=r'verify.tiers."all/unit": \'nice\' is not a tier.*syntax, correctness'):
        order_steps("all", STEPS, {"all/unit": "nice"})


def test_a_tier_for_a_step_that_is_not_there_is_a_fault() -> None:
    """Z04: a misspelt key would otherwise quietly leave a step blocking."""
    faults = tier_faults({"all": ["unit", "lint"]}, {"all/lnt": "quality", "all/unit": "fast", "all/lint": "quality"})
    assert [(fault.code, fault.path) for fault in faults] == [
        ("UNKNOWN_STEP", 'verify.tiers."all/lnt"'),
        ("UNKNOWN_TIER", 'verify.tiers."all/unit"'),
    ]


@pytest.mark.parametrize(
    ("name", "cmd", "tier", "expected"),
    [
        ("unit", "python -m unittest", Tier.CORRECTNESS, FailureClass.TEST_ERROR),
        ("anything", "whatever", Tier.CORRECTNESS, FailureClass.TEST_ERROR),
        ("build", "npm run x", Tier.CORRECTNESS, FailureClass.BUILD_ERROR),
        ("build_and_test", "x", Tier.CORRECTNESS, FailureClass.TEST_ERROR),
        ("lint", "ruff check src tests", Tier.QUALITY, FailureClass.BUILD_ERROR),
        ("step 1", "mypy src", Tier.CORRECTNESS, FailureClass.BUILD_ERROR),
        ("step 1", "make", Tier.CORRECTNESS, FailureClass.BUILD_ERROR),
        ("step 1", "make test", Tier.CORRECTNESS, FailureClass.TEST_ERROR),
        ("step 1", "npx tsc --noEmit", Tier.CORRECTNESS, FailureClass.BUILD_ERROR),
        ("step 1", "cargo clippy", Tier.CORRECTNESS, FailureClass.BUILD_ERROR),
        ("fetch", "npm install foo@latest", Tier.CORRECTNESS, FailureClass.TEST_ERROR),
        ("test", "pytest", Tier.SYNTAX, FailureClass.BUILD_ERROR),
        ("build", "make", Tier.SMOKE, FailureClass.SMOKE_ERROR),
    ],
)
def test_a_failed_step_has_the_class_of_its_tier_or_its_words(
    name: str, cmd: str, tier: Tier, expected: FailureClass
) -> None:
    """T17 Z04: smoke and syntax by tier, the rest by name and then by command."""
    assert step_class(TieredStep(name, cmd, tier=tier)) is expected
