"""Whose name is on the commits that Ganger makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import task

pytestmark = pytest.mark.whole

OWN = """
author = "Build Bot <bot@example.org>"
sign_off = true
[workspace.co_authors]
mine = "Scripted <scripted@example.org>"
"""
SAYS = {"a": [edits({"a.txt": "a\n"})]}


def project_in(folder: Path, workspace: str) -> GitProject:
    return GitProject(folder / "project", [task("a")], SAYS, workspace=workspace).make()


def trailers(project: GitProject, ref: str = "ganger/r1") -> list[tuple[str, str]]:
    """As git itself reads them: whatever is none of its trailers is not there."""
    said = project.in_store("log", "-1", "--format=%(trailers:unfold)", ref).splitlines()
    return [(name, text) for name, _, text in (line.partition(": ") for line in said if line)]


def test_a_commit_names_the_agent_that_made_the_change(tmp_path: Path) -> None:
    """W02 G05: beside run, task and attempt; nobody is named as an author whom nobody asked to be."""
    project = project_in(tmp_path, "")
    assert project.run() == 0
    found = dict(trailers(project))
    assert found["Ganger-Agent"] == "mine" and found["Ganger-Attempt"] == "1"
    assert not {"Signed-off-by", "Co-authored-by"} & set(found)
    assert project.in_store("log", "-1", "--format=%an <%ae>", "ganger/r1") == "Ganger <ganger@localhost>"


def test_by_setting_the_author_signs_off_and_the_agent_is_a_co_author(tmp_path: Path) -> None:
    """W02: as DCO checks want it: the last trailer is the author's own name and address."""
    named = project_in(tmp_path, OWN)
    assert named.run() == 0
    found = trailers(named)
    assert found[-1] == ("Signed-off-by", "Build Bot <bot@example.org>")
    assert ("Co-authored-by", "Scripted <scripted@example.org>") in found
    assert named.in_store("log", "-1", "--format=%an <%ae>", "ganger/r1") == "Build Bot <bot@example.org>"


def test_a_co_author_of_an_agent_nobody_has_is_refused(tmp_path: Path) -> None:
    """G24: and so is one that is no name with an address."""
    for setting, told in (('nobody = "A <a@example.org>"', "nobody"), ('worker = "A"', "co_authors")):
        project = project_in(tmp_path / told, f"[workspace.co_authors]\n{setting}\n")
        made = project.ganger("validate", "--json")
        assert made.returncode != 0 and told in json.dumps(json.loads(made.stdout)), made.stdout
