"""What `ganger init` expects of a passing run: told from the runner at the end of the command, true of real output."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.app.commands.init import find_test_command, write_first_project
from ganger.workspaces.gates.expected_output import expected_output

Files = dict[str, str]
TEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_x(self):\n        assert {}\n"
JEST = '{"scripts": {"test": "npm run unit", "unit": "jest --ci"}}'


def reader(files: Files) -> Callable[[str], str]:
    return lambda path: files.get(path, "")


@pytest.mark.parametrize(
    ("command", "files", "shown"),
    [
        ("make test", {"Makefile": "test: unit\n\nunit:\n\t@python3 -m pytest -q\n"}, "3 passed in 0.01s"),
        ("make test", {"Makefile": "include x.mk\n", "x.mk": "test:\n\tgo test ./...\n"}, "ok  \tx/a\t0.002s\n"),
        ("npm test", {"package.json": JEST}, "Tests:       1 skipped, 2 passed, 3 total"),
        ("npm test", {"package.json": '{"scripts": {"test": "vitest run"}}'}, "      Tests  12 passed (12)"),
        ("npm test", {"package.json": '{"scripts": {"test": "mocha spec"}}'}, "  1 passing (2ms)"),
        ("npm test", {"package.json": '{"scripts": {"test": "ava"}}'}, "  1 test passed"),
        ("sh ci/test.sh", {"ci/test.sh": "set -e\ncargo test\n"}, "test result: ok. 1 passed; 0 failed;"),
        ("ctest --test-dir build", {}, "100% tests passed, 0 tests failed out of 1"),
        ("node --test", {}, "\u2139 pass 3\n"),
        ("go test ./...", {}, "ok  \tx/a\t(cached)\n"),
    ],
)
def test_the_runner_inside_tells_what_a_pass_prints(command: str, files: Files, shown: str) -> None:
    """G09: through make, npm and scripts; the lines are those the programs print."""
    assert re.search(expected_output(command, reader(files)), shown)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("make test", {"Makefile": "test:\n\t./run-everything\n"}),
        ("make test", {"Makefile": "test:\n\tpython3 -m pytest > log\n"}),
        ("make test", {}),
        ("npm test", {"package.json": '{"scripts": {"test": "node test.js"}}'}),
        ("npm test", {"package.json": '{"scripts": {"test": "jest --silent"}}'}),
        ("python3 -m pytest -qq", {}),
        ("python3 -m pytest -q", {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-ra -q"\n'}),
        ("git diff --check", {}),
        ("go vet ./...", {}),
    ],
)
def test_nothing_is_expected_where_nothing_can_be_told(command: str, files: Files) -> None:
    """G09: an expectation that an honest run misses would be worse than none."""
    assert expected_output(command, reader(files)) == ""


REAL = [
    pytest.param(f"{sys.executable} -m pytest -q -p no:cacheprovider", {"test_a.py": TEST}, id="pytest"),
    pytest.param("python3 -m unittest discover", {"test_a.py": TEST}, id="unittest"),
    pytest.param("make test", {"Makefile": "test:\n\tpython3 -m unittest\n", "test_a.py": TEST}, id="make"),
    pytest.param("node --test", {"a.test.js": "require('node:test')('x', () => require('assert')({}))\n"}, id="node",
                 marks=pytest.mark.needs("node")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "files"), REAL)
def test_real_runners_print_it_when_they_pass_and_only_then(tmp_path: Path, command: str, files: Files) -> None:
    """G09: passed, failed, and nothing to run."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = write_first_project(tmp_path, agent="x", test_command=command)
    config = tomllib.loads((tmp_path / "ganger.toml").read_text())
    assert config["verify"]["expect"] == {"check/test": made.expect}

    def printed(value: str) -> bool:
        for name, text in files.items():
            (tmp_path / name).write_text(text.replace("{}", value))
        done = subprocess.run(shlex.split(command), cwd=tmp_path, capture_output=True, text=True, check=False)
        return re.search(made.expect, done.stdout + done.stderr) is not None

    value = {"good": "true" if command.startswith("node") else "True", "bad": "0"}
    assert (printed(value["good"]), printed(value["bad"])) == (True, False)


def test_profiles_that_exist_are_not_told_what_to_print(tmp_path: Path) -> None:
    """G09: their steps may have other names."""
    (tmp_path / "verify.json").write_text(json.dumps({"profiles": {"mine": {"steps": []}}}))
    (tmp_path / "test_x.py").write_text("")
    made = write_first_project(tmp_path, agent="x", test_command=None)
    assert (made.expect, "[verify.expect]" in (tmp_path / "ganger.toml").read_text()) == ("", False)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tests/test_a.py": "def test_a():\n    assert True\n"}, "python3 -m pytest -q"),
        ({"test_a.py": "import pytest\n", "setup.py": ""}, "python3 -m pytest -q"),
        ({"tests/test_a.py": TEST, "setup.cfg": "[tool:pytest]\n"}, "python3 -m pytest -q"),
        ({"tests/test_a.py": "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"},
         "python3 -m unittest discover"),
    ],
)  # fmt: skip
def test_tests_that_only_pytest_runs_are_run_by_it(tmp_path: Path, files: Files, command: str) -> None:
    """T26: functions in a file are no tests for unittest, which would find none and be content."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert find_test_command(tmp_path) == command
