"""The tests' own set-up: isolation from the developer's machine, and skips that CI does not forgive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLANTED = """
import pytest

@pytest.mark.needs("no-such-program")
def test_planted():
    raise AssertionError("ran")
"""


def run_planted(folder: Path, ci: str) -> str:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = needs(*tools): test\n", encoding="utf-8")
    (folder / "test_planted.py").write_text(PLANTED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_a_missing_tool_skips_a_test_at_home_and_fails_it_on_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    report = run_planted(tmp_path, ci)
    assert outcome in report
    assert "no-such-program" in report


def test_no_configuration_of_the_developer_is_visible(own_world: Path) -> None:
    assert Path.home() == own_world
    assert [name for name in os.environ if name.startswith("GANGER_")] == ["GANGER_SANDBOX_USE"]


@pytest.mark.needs("git")
def test_git_knows_no_identity_unless_a_test_gives_one() -> None:
    asked = subprocess.run(["git", "config", "--global", "user.email"], capture_output=True, check=False)
    assert asked.returncode == 1
