"""Task ids as file names."""

from __future__ import annotations

import subprocess
from pathlib import PurePosixPath

import pytest
from hypothesis import given, strategies as st

from ganger.core.names import backup_folder, branch_stem, file_stem, prompt_file, verify_log, worker_log

HOSTILE = ["..", ".", "../x", "a/b", "/etc/passwd", "a\0b", "-rf", "", "x" * 300, "ä" * 100, "CON", "a b", "~", "%2e"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_id_cannot_leave_its_folder(name: str) -> None:
    """T01: one plain path component that fits every file system."""
    stem = file_stem(name)
    assert stem and "/" not in stem and "\0" not in stem and not stem.startswith((".", "-"))
    assert len(PurePosixPath(worker_log(name, 12)).name.encode()) <= 255


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2, unique=True))
def test_two_ids_never_share_a_file(names: list[str]) -> None:
    """T04: logs, prompts and backups of two tasks are apart."""
    for made in (worker_log, verify_log, prompt_file, backup_folder):
        assert made(names[0], 1) != made(names[1], 1)
    assert branch_stem(names[0]) != branch_stem(names[1])


@pytest.mark.parametrize("name", [*HOSTILE, "a..b", "a.", "x.lock", "@", "@{-1}", "a:b", "refs/heads/main", "+x"])
def test_git_takes_any_id_as_a_part_of_a_branch(name: str) -> None:
    """D17: no id is a refspec, another branch, or one that can never be pushed."""
    made = branch_stem(name)
    subprocess.run(["git", "check-ref-format", "--branch", f"ganger/{made}/{made}"], check=True)
    assert "/" not in made and ":" not in made


def test_ids_that_differ_by_a_dot_have_branches_of_their_own() -> None:
    """D02: two tasks on one branch would share a verdict."""
    assert len({branch_stem(name) for name in ("a..b", "a.b", "a...b", "a.b.", "a%2Eb")}) == 5


def test_an_id_made_to_look_like_a_shortened_one_stays_apart() -> None:
    """T04: the mark of a shortened name cannot be written by an id."""
    long = "y" * 300
    assert file_stem(file_stem(long)) != file_stem(long)


def test_ordinary_ids_stay_readable() -> None:
    """T04: logs are found by eye."""
    assert worker_log("build-api_v1.2", 3) == "logs/build-api_v1.2.worker.3.log"
    assert verify_log("build-api_v1.2", 3) == "logs/build-api_v1.2.verify.3.log"
