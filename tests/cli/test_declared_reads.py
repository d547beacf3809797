"""A task that declares what it reads is shown that and no more, where the sandbox can; elsewhere that is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task

pytestmark = pytest.mark.whole

AGENT = """
import json
from pathlib import Path
def text(name):
    try:
        return Path(name).read_text()
    except OSError as error:
        return type(error).__name__
seen = {name: text(name) for name in ("src/a.py", "src/b.py", "docs/deep/c.md", "top.txt", "kept/d.txt")}
Path("out.txt").write_text(json.dumps(seen))
result = {"contract_version": "2.0", "task_id": "one", "status": "DONE", "summary": json.dumps(seen)}
print("<<<TASK_RESULT_V2>>>", json.dumps(result), "<<<END_TASK_RESULT_V2>>>", sep="\\n")
"""
CONFIG = """
[policy]
heal_schedule = "off"
[agents.worker]
kind = "command"
argv = [{python}, "{agent}"]
[roles.worker]
agent = "worker"
[workspace]
mode = "{mode}"
"""
WALLED, BARE = {"GANGER_SANDBOX_USE": "auto"}, {"GANGER_SANDBOX_USE": "off"}
READS = {"files_read": ["src/a.py", "kept"], "files_create": ["out.txt"]}


def project(folder: Path, mode: str, **metadata: object) -> Path:
    root = folder / "p"
    root.mkdir()
    make_project(root, task(metadata={**READS, **metadata}))
    agent = folder / "agent.py"
    agent.write_text(AGENT)
    words = CONFIG.format(python=json.dumps(sys.executable), agent=agent, mode=mode)
    (root / "ganger.toml").write_text(words)
    for name in ("src/a.py", "src/b.py", "docs/deep/c.md", "top.txt", "kept/d.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for call in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "begin"]):
        subprocess.run(["git", *call], cwd=root, check=True)
    return root


def seen(root: Path) -> dict[str, str]:
    told = [row for row in ganger("events", "--json", cwd=root).lines if row["type"] == "result_accepted"]
    found: dict[str, str] = json.loads(told[0]["summary"])
    return found


def first_prompt(root: Path) -> str:
    return next((root / ".ganger").glob("*/prompts/one.1.md")).read_text()


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("mode", ["direct", "local-git"])
def test_other_files_of_the_workspace_are_not_shown(tmp_path: Path, mode: str) -> None:
    """Z08 G24: what is declared is read, folders whole; the rest is empty or not there, and stays as it is."""
    root = project(tmp_path, mode)
    answer = ganger("run", cwd=root, env=WALLED)
    assert answer.code == 0, answer.out + answer.err
    text = seen(root)
    assert text["src/a.py"] == "src/a.py\n" and text["kept/d.txt"] == "kept/d.txt\n"
    assert {text[name] for name in ("src/b.py", "top.txt")} == {""} and "c.md" not in text["docs/deep/c.md"]
    assert (root / "top.txt").read_text() == "top.txt\n" and (root / "docs/deep/c.md").exists()
    assert "files_read" not in answer.out + answer.err
    assert "appear empty" in first_prompt(root) and "\n- src/a.py\n- kept\n" in first_prompt(root)


def test_without_such_a_sandbox_it_is_told(tmp_path: Path) -> None:
    """Z08 G24: by validate and by the run, which goes on."""
    root = project(tmp_path, "local-git")
    told = ganger("validate", "--json", cwd=root, env=BARE).json["warnings"]
    assert [one["path"] for one in told] == ["tasks[0].metadata.files_read"]
    answer = ganger("run", cwd=root, env=BARE)
    assert answer.code == 0 and "metadata.files_read" in answer.err
    assert seen(root)["top.txt"] == "top.txt\n"


@pytest.mark.needs("bwrap")
def test_a_task_that_declares_nothing_sees_everything(tmp_path: Path) -> None:
    """Z08: an empty list declares nothing."""
    root = project(tmp_path, "local-git", files_read=[])
    assert ganger("run", cwd=root, env=WALLED).code == 0
    assert seen(root)["top.txt"] == "top.txt\n"
