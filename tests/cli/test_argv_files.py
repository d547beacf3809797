"""`ganger validate` finds the files that agents' command lines name and that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger

pytestmark = pytest.mark.whole

TASK = {"id": "a", "prompt_ref": "p.md", "depends_on": [], "timeout_sec": 9, "verify_profile": "check"}


def validated(root: Path, *argv: str) -> dict[str, list[str]]:
    files = {
        "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": "r", "tasks": [TASK]}),
        "verify.json": json.dumps({"profiles": {"check": {"steps": [{"name": "t", "cmd": "true"}]}}}),
        "p.md": "Do it.\n",
        "there.py": "",
        "ganger.toml": f'[agents.x]\nkind = "command"\nargv = {json.dumps(argv)}\n[roles.worker]\nagent = "x"\n',
    }
    for name, text in files.items():
        (root / name).write_text(text)
    told = ganger("validate", "--json", cwd=root).json
    return {
        kind: [f["path"] for f in told[kind] if f["code"] == "ARGV_FILE_MISSING"] for kind in ("errors", "warnings")
    }


@pytest.mark.parametrize(
    ("argv", "at"),
    [
        (("python3", "gone.py"), "1"),
        (("/usr/bin/python3.11", "-u", "/nowhere/agent.py", "{prompt_file}"), "2"),
        (("bash", "scripts/gone.sh"), "1"),
        (("node", "--no-warnings", "gone.mjs"), "2"),
    ],
)
def test_a_script_that_is_not_there_is_a_fault(tmp_path: Path, argv: tuple[str, ...], at: str) -> None:
    """T26 G14: named with its place, before anybody is paid."""
    assert validated(tmp_path, *argv)["errors"] == [f"ganger.toml:agents.x.argv[{at}]"]


@pytest.mark.parametrize(
    "argv",
    [
        ("python3", "there.py"),
        ("python3", "-m", "app"),
        ("sh", "-c", "gone.sh"),
        ("agent", "--model", "gone"),
        ("cat",),
    ],
)
def test_what_is_there_or_no_file_is_none(tmp_path: Path, argv: tuple[str, ...]) -> None:
    """T26: modules, code and words of other programs."""
    assert validated(tmp_path, *argv) == {"errors": [], "warnings": []}


def test_another_full_path_that_leads_nowhere_is_a_warning(tmp_path: Path) -> None:
    """T26: the agent may be meant to make it."""
    found = validated(tmp_path, "agent", "--settings", "/nowhere/settings.json")
    assert found == {"errors": [], "warnings": ["ganger.toml:agents.x.argv[2]"]}
