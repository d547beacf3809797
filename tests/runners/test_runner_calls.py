"""Which runner a command calls, behind whatever it is called by; and when one is left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ganger.ports.runners import RunnerCall
from ganger.runners.table import KnownRunners


def _of(words: str, folder: Path, path: str = os.environ["PATH"]) -> tuple[str, bool] | None:
    found = KnownRunners().of(RunnerCall(tuple(words.split()), folder, {"PATH": path}))
    return None if found is None else (found.name, found.certain)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("pytest -q", "pytest"),
        ("python3 -W error -m pytest tests", "pytest"),
        ("env A=1 B=2 /opt/x/bin/python3.12 -m pytest", "pytest"),
        ("uv run --frozen pytest", "pytest"),
        ("poetry run python -m pytest", "pytest"),
        ("timeout 60 pytest", "pytest"),
        ("coverage run -m pytest", "pytest"),
        ("python3 -m coverage run -m pytest", "pytest"),
        ("python3 -m unittest discover -s tests", "unittest"),
        ("npx jest --ci", "jest"),
        ("pnpm exec vitest run", "vitest"),
        ("go test ./...", "go test"),
        ("cargo test --offline", "cargo test"),
    ],
)
def test_a_runner_is_known_behind_what_calls_it(tmp_path: Path, words: str, name: str) -> None:
    """G09: the command itself says which runner it is."""
    assert _of(words, tmp_path) == (name, True)


@pytest.mark.parametrize("words", ["make test", "tox", "sh check.sh", "python3 check.py", "nox -s tests", "go vet"])
def test_whatever_else_may_start_pytest_in_the_end(tmp_path: Path, words: str) -> None:
    """G09: it is told how to report, and what comes of it shows."""
    assert _of(words, tmp_path) == ("pytest", False)


@pytest.mark.parametrize(
    ("script", "name"), [("jest --ci", "jest"), ("vitest run", "vitest"), ("eslint . && jest", "pytest")]
)
def test_a_script_of_npm_is_looked_into(tmp_path: Path, script: str, name: str) -> None:
    """G09: where it is one plain command."""
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"test": script}}))
    assert (_of("npm test", tmp_path) or ("",))[0] == name


@pytest.mark.parametrize("version", ["v16.20.2", "v18.0.0", "v19.1.0", "v20.1.0"])
def test_a_node_that_cannot_report_is_left_alone(tmp_path: Path, version: str) -> None:
    """G09: it would refuse to start."""
    node = tmp_path / version / "node"
    node.parent.mkdir()
    node.write_text(f"#!/bin/sh\necho {version}\n")
    node.chmod(0o755)
    assert _of("node --test", tmp_path, str(node.parent)) is None


def test_a_project_that_takes_the_report_away_is_left_alone(tmp_path: Path) -> None:
    """G09: pytest would call the option an error."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:junitxml\n")
    assert _of("pytest", tmp_path) is None
    assert _of("pytest -p no:junitxml", tmp_path / "elsewhere") is None
