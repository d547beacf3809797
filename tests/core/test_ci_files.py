"""Which files say what a forge's CI does."""

from __future__ import annotations

from ganger.core.delivery.ci_files import ci_files, go_by_paths, workflow_files


def test_workflows_actions_and_what_the_forge_names_are_files_of_ci() -> None:
    """D05: a file of the same name elsewhere is none."""
    own = [
        ".forgejo/workflows/ci.yml",
        ".github/actions/x/main.js",
        ".gitlab-ci.yml",
        ".gitlab/ci/a.yml",
        "x/action.yml",
    ]
    others = ["docs/workflows/ci.yml", "src/gitlab-ci.yml", ".github/CODEOWNERS", "ci/test.yml"]
    assert ci_files([*own, *others]) == own
    assert ci_files(others, "ci/test.yml: mapping values are not allowed") == ["ci/test.yml"]


def test_workflows_that_all_go_by_paths_are_not_started_by_a_commit_of_nothing() -> None:
    """D04 D05: one that does not is enough; where there are none, nothing is known."""
    by_paths, any_push = "on:\n  push:\n    paths-ignore: ['docs/**']\n", "on: [push]\njobs: {paths: {}}\n"
    by_changes = "test:\n  rules:\n    - changes: [src/**]\n"
    assert go_by_paths([by_paths, by_changes]) and not go_by_paths([by_paths, any_push]) and not go_by_paths([])
    names = [".gitlab-ci.yml", ".forgejo/workflows/a.yaml", ".github/actions/b.yml", ".github/workflows/x/c.yml"]
    assert workflow_files(names) == names[:2]
