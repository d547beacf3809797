"""What a run merged in several repositories: landed each by itself, or where its remote has it; and what is cleaned."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.cli_project import CONFIG, ganger, make_project, task

pytestmark = pytest.mark.whole

GIT = '[workspace]\nmode = "local-git"\n'
REPOS = '[repos.core]\npath = "../core"\n[repos.lib]\npath = "../lib"\nlocks = "shared"\n'
WHERE = {"t0": "core", "t1": "lib", "t2": ""}


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=n@localhost")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    git(folder, "add", "-A"), git(folder, "commit", "-qm", name)


def ran(above: Path, more: str = "", **workspace: str) -> Path:
    """A run with a task in each of two repositories and in the project itself; `new.txt` is what each of them makes."""
    root = above / "project"
    root.mkdir()
    make_project(root, *(task(name, metadata={"repo": repo} if repo else {}) for name, repo in WHERE.items()))
    set_ = "".join(f'{key} = "{value}"\n' for key, value in workspace.items())
    (root / "ganger.toml").write_text(CONFIG + GIT + set_ + REPOS + more)
    done = {"files": {"new.txt": "made"}, "result": {"status": "DONE", "summary": "did it"}}
    (root / "script.json").write_text(json.dumps({"tasks": {name: [done] for name in WHERE}}))
    for folder in (root, above / "core", above / "lib"):
        folder.mkdir(exist_ok=True)
        git(folder, "init", "-q", "-b", "main")
        commit(folder, "readme", "here\n")
        git(above, "clone", "-q", "--bare", str(folder), f"{folder.name}.git")
        git(folder, "remote", "add", "origin", str(above / f"{folder.name}.git"))
    (above / "core" / "draft.txt").write_text("mine")
    answer = ganger("run", cwd=root)
    assert "agents do not see it: core:draft.txt" in answer.err + answer.out
    assert answer.code == 0, answer.out + answer.err
    return root


def landed(above: Path) -> list[str]:
    return [name for name in ("core", "lib", "project") if (above / name / "new.txt").exists()]


def test_every_repository_of_a_run_is_landed_or_only_the_one_that_is_named(tmp_path: Path) -> None:
    """W02: and the report says for each where its changes are."""
    root = ran(tmp_path)
    said = (root / ".ganger" / "r1" / "report.md").read_text()
    assert "core: ganger land --repo core moves your branch" in said and "--repo . moves" in said
    assert ganger("land", "--repo", "nope", cwd=root).code == 1
    assert "main of lib would move" in ganger("land", "--repo", "lib", "--dry-run", cwd=root).out
    assert ganger("land", "--repo", "core", cwd=root).code == 0 and landed(tmp_path) == ["core"]
    rest = ganger("land", "--json", cwd=root).json
    assert [(row["repo"], row["how"]) for row in rest["repos"]] == [
        ("", "fast-forward"),
        ("core", "nothing"),
        ("lib", "fast-forward"),
    ]
    assert rest["how"] == "fast-forward" and landed(tmp_path) == ["core", "lib", "project"]


@pytest.mark.slow
def test_what_conflicts_in_one_repository_is_found_before_any_branch_moves(tmp_path: Path) -> None:
    """W02 G03: where a branch went on, the merge is verified in its own repository."""
    root = ran(tmp_path)
    commit(tmp_path / "core", "other.txt", "mine")
    commit(tmp_path / "lib", "new.txt", "mine")
    refused = ganger("land", cwd=root)
    assert (
        refused.code == 1
        and "in lib has new commits that conflict" in refused.err
        and "--repo lib --branch" in refused.err
    )
    assert landed(tmp_path) == ["lib"] and (tmp_path / "lib" / "new.txt").read_text() == "mine"
    merged = ganger("land", "--repo", "core", cwd=root)
    assert "your branch in core has new commits" in merged.err and landed(tmp_path) == ["core", "lib"]
    assert (tmp_path / "core" / "other.txt").exists()


@pytest.mark.slow
def test_a_run_that_lands_by_itself_does_so_in_every_repository(tmp_path: Path) -> None:
    """W02"""
    root = ran(tmp_path, land="finish")
    assert landed(tmp_path) == ["core", "lib", "project"]
    events = [e for e in ganger("events", "--json", cwd=root).lines if e["type"] == "landed"]
    assert [event["repo"] for event in events] == ["", "core", "lib"]


PUSHED = '[delivery]\ncompletion = ["verified", "committed", "pushed"]\n'


def test_of_what_was_pushed_is_said_that_the_remote_has_it(tmp_path: Path) -> None:
    """D01 W02: git pull and ganger land come to the same."""
    root = ran(tmp_path, PUSHED)
    said = ganger("run", cwd=root).out + (root / ".ganger" / "r1" / "report.md").read_text()
    assert "pushed to main (ganger ledger)" in said and "moves your branch" not in said
    assert git(tmp_path / "core", "ls-remote", "origin", "main").split()[0] != git(
        tmp_path / "core", "rev-parse", "main"
    )
    assert "its remote has it too" in ganger("land", "--repo", "core", cwd=root).out
    git(tmp_path / "core", "fetch", "-q", "origin")
    assert git(tmp_path / "core", "rev-parse", "main") == git(tmp_path / "core", "rev-parse", "origin/main")


@pytest.mark.slow
def test_what_a_run_made_for_itself_is_cleaned_in_every_repository(tmp_path: Path) -> None:
    """Workspaces of a repository are looked at with its own history."""
    root = ran(tmp_path)
    place = root / ".ganger" / "r1" / "repos" / "core"
    for left in (place / "checks" / "left", place / "pool" / "left", place / "work" / "t0.9" / "only-here.txt"):
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(b"x" * 5000)
    rows = {row["what"]: row["goes"] for row in ganger("clean", "--json", cwd=root).json["pieces"]}
    assert rows["checks of core"] and rows["pool of core"] and not (place / "pool" / "left").exists()
    assert not rows["workspace of t0, attempt 9"] and (place / "work" / "t0.9" / "only-here.txt").exists()
