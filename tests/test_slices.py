"""Which tests are in which slice: by their marks, by samples of their cases, and every test in one of the two."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.slices import sampled
from tests.test_conftest import bring_conftest

PLANTED = """
import pytest
from hypothesis import given, strategies

pytestmark = pytest.mark.whole

def test_run(): ...

@pytest.mark.quick
def test_chosen(): ...

@pytest.mark.quick
@pytest.mark.sample(2)
@pytest.mark.parametrize("case", range(4))
def test_cases(case): ...

@pytest.mark.quick
@given(strategies.integers())
def test_property(number): ...
"""
QUICK = {"test_chosen", "test_cases[0]", "test_cases[2]", "test_property"}
REST = {"test_run", "test_cases[1]", "test_cases[3]", "test_property"}


def collected(folder: Path, *words: str) -> set[str]:
    bring_conftest(folder)
    marks = "\n".join(f"  {name}: planted" for name in ("whole", "quick", "sample(count)", "left_out"))
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{marks}\n", encoding="utf-8")
    (folder / "test_x.py").write_text(PLANTED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return {line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), QUICK | REST),
        (("--slice", "quick"), QUICK),
        (("--slice", "rest"), REST),
        (("--slice", "quick", "test_x.py::test_run"), {"test_run"}),
    ],
)
def test_a_slice_holds_what_its_marks_say_and_what_is_named(
    tmp_path: Path, words: tuple[str, ...], found: set[str]
) -> None:
    """Properties are in both: with few examples, and with all of them."""
    assert collected(tmp_path, *words) == found


@given(st.integers(1, 40), st.integers(1, 50))
def test_a_sample_is_as_large_as_asked_for(cases: int, count: int) -> None:
    kept = sampled([{"case": place} for place in range(cases)], count)
    assert len(kept) == min(cases, count) and kept <= set(range(cases)) and 0 in kept


@given(st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_a_sample_without_a_number_meets_every_pair_of_values(sizes: list[int]) -> None:
    cases = [dict(zip("abcd", values, strict=False)) for values in itertools.product(*map(range, sizes))]
    pairs = {pair for case in cases for pair in itertools.combinations(sorted(case.items()), 2)}
    kept = sampled(cases)
    assert {pair for place in kept for pair in itertools.combinations(sorted(cases[place].items()), 2)} == pairs
    assert len(kept) <= len(cases)
