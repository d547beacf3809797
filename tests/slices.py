"""Which tests `make test` runs, and which `make test-all` runs besides.

`--slice quick` leaves out what is marked `whole`: whole runs, real programs, long walks. `--slice rest` is exactly what
quick leaves out, and every property once more with all its examples. Without the option every test runs.
"""

from __future__ import annotations

import itertools
import resource
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

QUICK_EXAMPLES = 20
CPU_LIMIT_SEC = 300


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--slice", choices=("quick", "rest", "all"), default="all", help="see CONTRIBUTING.md, Tests")


def is_whole(item: pytest.Item) -> bool:
    """`quick` brings one test of a module that is `whole` into the quick slice."""
    nearest = next((mark.name for mark in item.iter_markers() if mark.name in ("whole", "quick")), "")
    return nearest == "whole" or item.get_closest_marker("left_out") is not None


def mark_samples(items: Iterable[pytest.Item]) -> None:
    """Of a test marked `sample(n)` n cases are quick, evenly spread; of several parameters, every pair of values."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("sample")
        assert mark is not None
        chosen = sampled([getattr(item, "callspec").indices for item in found], *mark.args)  # noqa: B009
        for place, item in enumerate(found):
            if place not in chosen:
                item.add_marker(pytest.mark.left_out)


def sampled(cases: Sequence[dict[str, int]], count: int = 0) -> set[int]:
    """Places of the cases that are kept: `count` of them, evenly spread, or without a count all pairs of values."""
    if count or len(cases[0]) < 2:
        count = min(len(cases), count or 1)
        return {place * len(cases) // count for place in range(count)}
    pairs = [set(itertools.combinations(sorted(case.items()), 2)) for case in cases]
    open_pairs, kept = set().union(*pairs), set()
    while open_pairs:
        best = max(range(len(cases)), key=lambda place: (len(pairs[place] & open_pairs), -place))
        kept.add(best)
        open_pairs -= pairs[best]
    return kept


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests of the slice that was asked for; a test that was named itself always stays."""
    asked = config.getoption("--slice")
    mark_samples(items)
    if asked == "all" or any("::" in word for word in config.args):
        return
    wanted = [
        item for item in items if (asked == "quick") != is_whole(item) or (asked == "rest" and has_examples(item))
    ]
    left = set(items) - set(wanted)
    items[:] = wanted
    config.hook.pytest_deselected(items=list(left))


def has_examples(item: pytest.Item) -> bool:
    return is_hypothesis_test(getattr(item, "obj", None))


def fewer_examples(config: pytest.Config) -> None:
    """In the quick slice a property looks at fewer examples, unless somebody asked for a number."""
    if config.getoption("--slice") == "quick":
        settings.register_profile("quick", settings.get_profile("slice"), max_examples=QUICK_EXAMPLES)
        settings.load_profile("quick")


def tell_cpu(config: pytest.Config, reporter: Any) -> None:
    """What the slice cost: this process and every child that was waited for."""
    used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    whole = config.getoption("--slice") == "quick" and config.args == config.getini("testpaths")
    limit = f" of {CPU_LIMIT_SEC}" if whole else ""
    reporter.write_line(f"{used:.0f}{limit} CPU seconds")
