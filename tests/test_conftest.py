"""The tests' own set-up: isolation from the developer's machine, and skips that CI does not forgive."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

PLANTED = """
import pytest

@pytest.mark.needs("no-such-program")
def test_planted():
    raise AssertionError("ran")
"""


def bring_conftest(folder: Path) -> None:
    """This conftest.py and what it imports, under the names they have here."""
    (folder / "tests").mkdir()
    for name in ("__init__.py", "slices.py", "patience.py"):
        shutil.copy(Path(__file__).with_name(name), folder / "tests")
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)


def run_planted(folder: Path, ci: str, planted: str = PLANTED) -> str:
    bring_conftest(folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = needs(*tools): test\n", encoding="utf-8")
    (folder / "test_planted.py").write_text(planted, encoding="utf-8")
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


LEAVES_A_PROCESS = """
import subprocess

def test_planted():
    global process
    process = subprocess.Popen(["sleep", "61.25"])
    open("pid", "w").write(str(process.pid))
    assert {outcome}
"""


@pytest.mark.parametrize(("outcome", "told"), [(True, "1 passed, 1 error"), (False, "1 failed, 1 error")])
def test_a_process_that_a_test_leaves_is_ended_and_told(tmp_path: Path, outcome: bool, told: str) -> None:
    """So that no test is red for what another has left."""
    report = run_planted(tmp_path, "", LEAVES_A_PROCESS.format(outcome=outcome))
    assert told in report and "left running: [['sleep', '61.25']]" in report
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


HEARS_SIGNALS = """
import signal, subprocess

def test_planted():
    assert subprocess.run(["sh", "-c", "kill -HUP $$"]).returncode == -signal.SIGHUP
"""


def test_what_tests_start_ends_by_signals_also_under_nohup(tmp_path: Path) -> None:
    """T23: a child inherits that a signal is ignored, and would be tried with that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert "1 passed" in run_planted(tmp_path, "", HEARS_SIGNALS)
    finally:
        signal.signal(signal.SIGHUP, before)


CASES = """
import pytest

@pytest.mark.brief(2)
@pytest.mark.parametrize("case", range(5))
def test_cases(case):
    pass
"""


@pytest.mark.parametrize(
    ("words", "kept"), [(("-m", "not slow"), "02"), (("-m", "slow"), "134"), (("-m", "not slow", "-k", "3"), "")]
)
def test_of_many_cases_a_few_are_in_the_default_slice_and_none_is_lost(
    tmp_path: Path, words: tuple[str, ...], kept: str
) -> None:
    bring_conftest(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  brief(count): test\n  slow: test\n", encoding="utf-8")
    (tmp_path / "test_cases.py").write_text(CASES, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *words, str(tmp_path)]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert [case for case in range(5) if f"test_cases[{case}]" in shown] == [int(case) for case in kept]


def test_no_configuration_of_the_developer_is_visible(own_world: Path) -> None:
    assert Path.home() == own_world
    assert [name for name in os.environ if name.startswith("GANGER_")] == ["GANGER_SANDBOX_USE"]


@pytest.mark.needs("git")
def test_git_knows_no_identity_unless_a_test_gives_one() -> None:
    asked = subprocess.run(["git", "config", "--global", "user.email"], capture_output=True, check=False)
    assert asked.returncode == 1
