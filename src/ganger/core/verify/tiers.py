"""Verification tiers: the order in which a profile's steps run, which of them block, and which failure they cause."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ganger.core.vocabulary import FailureClass, Tier
from ganger.errors import Fault, InputError

_RUN_ORDER = {tier: place for place, tier in enumerate(Tier)}
_TIER_NAMES = ", ".join(Tier)
_WORD = re.compile(r"[a-z]+")
_BUILD_WORDS = frozenset(
    (
        *("build", "compile", "compileall", "lint", "type", "types", "typecheck", "tsc", "mypy", "pyright", "ruff"),
        *("make", "cmake", "gcc", "clang", "javac", "eslint", "clippy", "flake", "pylint", "vet", "format", "fmt"),
    )
)
_TEST_WORDS = frozenset(
    ("pytest", "unittest", "ctest", "doctest", "jest", "vitest", "mocha", "tox", "nox", "spec", "rspec", "phpunit")
)


class ProfileStep(Protocol):
    """What a step of a verify profile looks like from here."""

    @property
    def name(self) -> str: ...
    @property
    def cmd(self) -> str: ...
    @property
    def cwd(self) -> str | None: ...
    @property
    def timeout_sec(self) -> float | None: ...


class NamedStep(Protocol):
    """A step, or its result."""

    @property
    def name(self) -> str: ...
    @property
    def cmd(self) -> str: ...
    @property
    def tier(self) -> Tier: ...


@dataclass(frozen=True, slots=True)
class TieredStep:
    """A step with its place in the run."""

    name: str
    cmd: str
    cwd: str | None = None
    timeout_sec: float | None = None
    tier: Tier = Tier.CORRECTNESS

    @property
    def blocks(self) -> bool:
        return self.tier is not Tier.QUALITY


def order_steps(profile_name: str, steps: Sequence[ProfileStep], tiers: Mapping[str, str]) -> tuple[TieredStep, ...]:
    """The steps in run order: by tier, then as the profile has them. `tiers` maps "profile/step" to a tier."""
    tiered = [
        TieredStep(step.name, step.cmd, step.cwd, step.timeout_sec, _tier(f"{profile_name}/{step.name}", tiers))
        for step in steps
    ]
    return tuple(sorted(tiered, key=lambda step: _RUN_ORDER[step.tier]))


def _tier(key: str, tiers: Mapping[str, str]) -> Tier:
    given = tiers.get(key, Tier.CORRECTNESS)
    if given not in _RUN_ORDER:
        raise InputError("verify.tiers", [_unknown_tier(key, given)])
    return Tier(given)


def tier_faults(profiles: Mapping[str, Iterable[str]], tiers: Mapping[str, str]) -> tuple[Fault, ...]:
    """What is wrong with a tier table; `profiles` maps each profile's name to the names of its steps."""
    known = {f"{profile}/{step}" for profile, steps in profiles.items() for step in steps}
    faults = [_unknown_step(key, known) for key in tiers if key not in known]
    faults += [_unknown_tier(key, tier) for key, tier in tiers.items() if tier not in _RUN_ORDER]
    return tuple(faults)


def _unknown_step(key: str, known: Collection[str]) -> Fault:
    return Fault(_path(key), "UNKNOWN_STEP", f"no verify profile has this step; known are: {', '.join(sorted(known))}")


def _unknown_tier(key: str, tier: str) -> Fault:
    return Fault(_path(key), "UNKNOWN_TIER", f"{tier!r} is not a tier; write one of {_TIER_NAMES}")


def _path(key: str) -> str:
    return f'verify.tiers."{key}"'


def step_class(step: NamedStep) -> FailureClass:
    """The failure class of a step that failed: its tier decides, then its name, then its command."""
    if step.tier is Tier.SMOKE:
        return FailureClass.SMOKE_ERROR
    if step.tier is Tier.SYNTAX:
        return FailureClass.BUILD_ERROR
    return _class_by_words(step.name) or _class_by_words(step.cmd) or FailureClass.TEST_ERROR


def _class_by_words(text: str) -> FailureClass | None:
    words = set(_WORD.findall(text.lower()))
    if words & _TEST_WORDS or any(word.startswith("test") for word in words):
        return FailureClass.TEST_ERROR
    return FailureClass.BUILD_ERROR if words & _BUILD_WORDS else None
