"""What may not get worse from one report of a test runner to the next."""

from __future__ import annotations

import pytest

from ganger.core.verify.census import Regression, TestCensus, TestOutcome, TestReport, census_of, regression

P, F, S = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED


def _setback(base: dict[str, TestOutcome], now: dict[str, TestOutcome], *, may: bool = False) -> Regression:
    return regression(TestCensus(base), TestCensus(now), may_change_tests=may)


@pytest.mark.parametrize("was", [P, F, S])
@pytest.mark.parametrize("now", [P, F, S, None])
def test_a_test_stays_as_it_was_or_gets_better(was: TestOutcome, now: TestOutcome | None) -> None:
    """G09: what passed passes, what failed passes or fails, what was skipped may do as it likes."""
    fine = {(P, P), (F, P), (F, F), (S, P), (S, S), (S, F), (S, None)}
    assert bool(_setback({"a": was}, {"a": now} if now else {})) is ((was, now) not in fine)


def test_new_tests_are_welcome() -> None:
    """G09: whatever becomes of them."""
    assert not _setback({"a": P}, {"a": P, "b": P, "c": S, "d": F})


def test_who_may_change_tests_may_rename_and_skip_them_but_not_break_them() -> None:
    """G09: a role, or metadata, that may change gates."""
    assert not _setback({"a": P, "b": P}, {"a2": P, "b": S}, may=True)
    assert _setback({"a": P}, {"a": F}, may=True).failed == ("a",)


def test_cases_may_be_renamed_when_as_many_pass() -> None:
    """G09: the names of parametrised cases often follow from the product."""
    assert not _setback({"t[1]": P, "t[2]": F}, {"t[a]": P, "t[b]": P})
    assert _setback({"t[1]": P, "t[2]": F}, {"t[1]": P}).gone == ("t[2]",)
    assert _setback({"t[1]": P, "t[2]": P}, {"t[1]": P, "t[b]": S}).gone == ("t[2]",)


def test_addresses_in_names_do_not_tell_tests_apart() -> None:
    """G09: a name with an address differs from run to run."""
    one, other = (census_of([TestReport(f"t[<object at {at}>]", P)]) for at in ("0x7f0000000001", "0x7f00000000ff"))
    assert one.tests == other.tests


def test_tests_of_one_name_are_counted() -> None:
    """G09: of two tests with one name none may vanish."""
    base = census_of([TestReport("a", P), TestReport("a", P)])
    assert regression(base, census_of([TestReport("a", P)])).gone == ("a#2",)


def test_a_test_whose_name_is_taken_by_another_is_the_worse_of_both() -> None:
    """G09: a new test of the same name does not stand in for it."""
    taken = census_of([TestReport("a", P), TestReport("a", S)])
    assert regression(TestCensus({"a": F}), taken).skipped == ("a",)
    assert not regression(TestCensus({"a": P}), census_of([TestReport("a", P), TestReport("a", P)]))


def test_the_sentence_names_a_few_and_counts_the_rest() -> None:
    """G09: what is told is short, whatever is gone."""
    gone = _setback({f"t{n}": P for n in range(9)}, {})
    assert gone.sentence == "t0, t1, t2 and 6 more were reported before this change and not reported any more"
