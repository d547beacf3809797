"""What a branch asks for on its forge, against the settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ganger.core.delivery.branch_rules import BranchRules, clashes, unnamed
from ganger.core.delivery.request_merges import framed, renewed, renewed_title
from ganger.core.model.ledger import RepoRules
from ganger.core.vocabulary import PushStyle

PUSHES = RepoRules(branch="main", style=PushStyle.BRANCH, required_jobs=("ci.yml/test",))
ASKS = replace(PUSHES, style=PushStyle.REQUEST)
MERGES = replace(ASKS, auto_merge=True)
BY_MERGE, BY_SQUASH = replace(MERGES, merge_method="merge"), replace(MERGES, merge_method="squash")

STRAIGHT, BENT = replace(PUSHES, history="rebase"), replace(MERGES, history="rebase")


@pytest.mark.parametrize(
    ("rules", "branch", "stops"),
    [
        pytest.param(PUSHES, BranchRules(), [], id="open"),
        pytest.param(PUSHES, BranchRules(may_push=False), [True], id="no push"),
        pytest.param(ASKS, BranchRules(may_push=False, approvals=2), [], id="people merge requests"),
        pytest.param(PUSHES, BranchRules(approvals=2), [], id="approvals are for requests"),
        pytest.param(MERGES, BranchRules(approvals=2), [False], id="each waits for approvals"),
        pytest.param(replace(MERGES, review="agent"), BranchRules(approvals=1), [False], id="an agent is nobody there"),
        pytest.param(replace(MERGES, review="person"), BranchRules(approvals=2), [], id="a person reviews"),
        pytest.param(MERGES, BranchRules(may_merge=False), [True], id="no merge"),
        pytest.param(MERGES, BranchRules(checks=("CI / test (push)",)), [], id="the check is a required job"),
        pytest.param(MERGES, BranchRules(checks=("CI / lint (push)",)), [False], id="a check nobody waits for"),
        pytest.param(PUSHES, BranchRules(linear_push=True), [True], id="linear, pushed"),
        pytest.param(PUSHES, BranchRules(linear_merge=True), [False], id="linear merges, pushed"),
        pytest.param(STRAIGHT, BranchRules(linear_push=True, linear_merge=True), [], id="a straight history, pushed"),
        pytest.param(BENT, BranchRules(linear_push=True, linear_merge=True), [], id="a straight history, merged"),
        pytest.param(BENT, BranchRules(only_merges=True), [True], id="a straight history, and merges alone"),
        pytest.param(STRAIGHT, BranchRules(only_merges=True), [], id="merges alone, and none is asked for"),
        pytest.param(MERGES, BranchRules(linear_push=True), [True], id="linear, merged"),
        pytest.param(MERGES, BranchRules(linear_merge=True), [], id="merged in another way"),
        pytest.param(BY_MERGE, BranchRules(linear_merge=True), [True], id="merges are asked for"),
        pytest.param(BY_SQUASH, BranchRules(linear_merge=True, linear_push=True), [], id="linear, squashed"),
        pytest.param(ASKS, BranchRules(linear_push=True), [], id="linear, merged by people"),
        pytest.param(ASKS, BranchRules(signed=True), [True], id="signed"),
    ],
)
def test_what_no_delivery_gets_past_stops_and_the_rest_is_told(
    rules: RepoRules, branch: BranchRules, stops: list[bool]
) -> None:
    """D12 D19: before anybody is paid."""
    assert [clash.stops for clash in clashes(rules, branch)] == stops


def test_a_key_that_pushes_is_not_judged_by_what_a_token_may() -> None:
    """D19: over ssh it is somebody else who pushes."""
    assert list(clashes(PUSHES, BranchRules(may_push=False), by_token=False)) == []


def test_checks_are_matched_by_their_jobs_name_however_the_forge_shows_them() -> None:
    """D01: `CI / test (push)` is `test`; a pattern and a check nobody could name are left alone."""
    checks = ("CI / test (pull_request)", "test", "ci.yml/test", "lint", "CI / *")
    assert unnamed(checks, ("ci.yml/test",)) == ["lint"] and unnamed(checks, ()) == []


def test_a_branch_is_told_in_one_line() -> None:
    """D19 G10: what it asks for, and what could not be seen."""
    assert BranchRules(may_push=True).told == "not protected; this token may push to it"
    rules = BranchRules(protected=True, may_push=False, approvals=1, checks=("test",), unseen="who else is unknown")
    assert rules.told == (
        "protected; this token may not push to it; a merge needs 1 approval; a merge needs test; who else is unknown"
    )


def test_only_gangers_part_of_a_text_is_renewed() -> None:
    """W02: what people write around it stays, and so does all of it where they took the marks away."""
    shown = f"Please look.\n\n{framed('at 1111')}\n\nThanks."
    assert renewed(shown, "at 2222") == f"Please look.\n\n{framed('at 2222')}\n\nThanks."
    assert renewed("at 1111", "at 2222") == "at 1111" and renewed(framed("a") + "x", "b") == framed("b") + "x"


@pytest.mark.parametrize(("shown", "given", "title"), [("A", "A", "B"), ("mine", "A", "mine"), ("A", "", "A")])
def test_a_title_somebody_chose_stays(shown: str, given: str, title: str) -> None:
    """W02: one that is not what it was given last is theirs."""
    assert renewed_title(shown, given, "B") == title
