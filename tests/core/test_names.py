"""Task ids as file names."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given, strategies as st

from ganger.core.names import backup_folder, file_stem, prompt_file, verify_log, worker_log

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


def test_an_id_made_to_look_like_a_shortened_one_stays_apart() -> None:
    """T04: the mark of a shortened name cannot be written by an id."""
    long = "y" * 300
    assert file_stem(file_stem(long)) != file_stem(long)


def test_ordinary_ids_stay_readable() -> None:
    """T04: logs are found by eye."""
    assert worker_log("build-api_v1.2", 3) == "logs/build-api_v1.2.worker.3.log"
    assert verify_log("build-api_v1.2", 3) == "logs/build-api_v1.2.verify.3.log"
