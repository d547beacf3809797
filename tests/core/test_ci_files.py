"""Which files say what a forge's CI does."""

from __future__ import annotations

from ganger.core.delivery.ci_files import ci_files


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
