"""Ganger's own files are out of an agent's reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    "path",
    ["ganger.toml", "verify.json", "plan.json", "manifest.json", ".ganger/r1/state.json", "Ganger.TOML", ".git/config"],
)
def test_a_result_cannot_write_what_ganger_lives_by(tmp_path: Path, path: str) -> None:
    """T18 T28 protected-file: config, profiles, the manifest in use, the run's folder; whatever the case."""
    write = {"path": path, "op": "append", "encoding": "utf8", "content": "x"}
    root = make_project(
        tmp_path, task(), script={"one": {"result": {"status": "DONE", "summary": "s", "writes": [write]}}}
    )
    (root / "plan.json").write_bytes((root / "manifest.json").read_bytes())
    before = {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
    answer = ganger("run", "plan.json", "--json", cwd=root)
    failed = [line for line in answer.lines if line["type"] == "attempt_failed"]
    assert answer.code == 1 and {line["failure_class"] for line in failed} == {"policy_violation"}
    assert {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()} == before
