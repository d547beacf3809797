"""Whether CI runs on a change: by the settings and by its paths."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ganger.core.delivery.expected_ci import (
    had_run,
    may_go_by_paths,
    unexpected_by,
    unexpected_for,
    was_pushed_again,
)
from ganger.core.model.ledger import Delivery, Fact, RepoRules
from ganger.core.model.records import TaskSpec
from ganger.core.path_patterns import covers_path, pattern_fault

FULL = ("verified", "pushed", "ci")
DOCS = RepoRules(completion=FULL, ci_paths_ignore=("docs/**", "*.md"))
NAMES = st.sampled_from(["docs", "src", "a.md", "b.py", "README.md", "docs.py", ".github", "workflows", "ci.yml"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(st.lists(PATHS, max_size=5))
def test_a_change_needs_no_run_only_where_each_of_its_paths_is_left_out(paths: list[str]) -> None:
    """D01 D05: one other path is enough, and so is a workflow; of no path nothing is said."""
    left_out = [one for one in paths if one.startswith("docs/") or ".md" in {part[-3:] for part in one.split("/")}]
    workflows = [one for one in paths if one.startswith(".github/workflows/")]
    expected = not paths or len(left_out) < len(paths) or bool(workflows)
    assert (unexpected_for(paths, DOCS) == "") == expected


@pytest.mark.parametrize("of_task", [None, True, False])
@pytest.mark.parametrize("of_repo", [True, False])
def test_a_tasks_word_is_above_its_repositorys(of_task: bool | None, of_repo: bool) -> None:
    """D01: and a mirror job is CI, so with one CI is expected whatever is said."""
    spec, rules = TaskSpec("a", expects_ci=of_task), RepoRules(completion=FULL, expects_ci=of_repo)
    wanted = of_repo if of_task is None else of_task
    assert (unexpected_by(spec, rules) == "") == wanted
    mirrored = RepoRules(completion=(*FULL, "mirrored"), expects_ci=of_repo, mirror_job="push", ci_paths_ignore=("*",))
    assert unexpected_by(spec, mirrored) == "" and not may_go_by_paths(spec, mirrored)


def test_a_task_that_expects_ci_does_so_whatever_it_changes() -> None:
    """D01: paths decide only where the task says nothing."""
    assert may_go_by_paths(TaskSpec("a"), DOCS) and not may_go_by_paths(TaskSpec("a", expects_ci=True), DOCS)


def test_what_was_seen_and_tried_is_read_from_the_ledger() -> None:
    """D04 D05: a commit of nothing counts until the next change; that CI is absent is no run."""
    absent, run = Fact("", "forge", "CI is absent: no run", "c"), Fact("", "forge", "CI is waiting: test", "c")
    tried, merged = Fact("", "ganger", "to be pushed to main (no_run)", "d"), Fact("", "merge", "merged", "e")
    assert not had_run(Delivery(facts=(absent,))) and had_run(Delivery(facts=(absent, run)), "c")
    assert not had_run(Delivery(facts=(run,)), "d") and was_pushed_again(Delivery(facts=(merged, tried)))
    assert not was_pushed_again(Delivery(facts=(tried, merged)))


@pytest.mark.parametrize("pattern", ["!docs/**", "docs/[a-z].md", "docs/**.md", "../docs", "", "a//b", "a\\b"])
def test_a_pattern_that_would_mean_something_else_is_a_fault(pattern: str) -> None:
    """D01: nothing is left out by mistake."""
    assert pattern_fault(pattern)


@pytest.mark.parametrize("pattern", ["docs/**", "*.md", "docs/", "/docs/a?.txt", "**", "a/**/b"])
def test_the_patterns_of_paths_are_sound(pattern: str) -> None:
    """D01: those of the other path settings."""
    assert (pattern_fault(pattern) == "" and not covers_path([pattern], "src/a.py")) or pattern == "**"
