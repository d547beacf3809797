"""What needs a person is seen at once: on a pipe, on a plain terminal, in the live view, and when a run goes on."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task

pytestmark = pytest.mark.whole

SCRIPT = {"api": [{"crash": True}], "free": [{"result": "DONE"}]}
TASKS = (task("api"), task("ui", depends_on=["api"]), task("free"))
COLOUR = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
TYPE = "> ganger answer q-1 TEXT --run r1"


def on_a_terminal(root: Path, term: str) -> str:
    """What `ganger run` prints on a terminal of this kind."""
    lead, screen = pty.openpty()
    env = {**os.environ, "TERM": term, "COLUMNS": "120"}
    env.pop("CI", None)
    run = subprocess.Popen(
        [sys.executable, "-m", "ganger", "run"],
        cwd=root,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=screen,
        stderr=screen,
    )
    os.close(screen)
    said = b""
    while True:
        try:
            part = os.read(lead, 65536)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(lead)
    assert run.wait(60) == 4
    return COLOUR.sub("", said.decode("utf-8", "replace"))


def test_a_pipe_gets_the_question_and_what_to_type_and_no_bell(tmp_path: Path) -> None:
    """Z06 H04: the second crash asks; what waits behind it is named."""
    root = make_project(tmp_path, *TASKS, script=SCRIPT)
    answer = ganger("run", cwd=root)
    asked = [line[9:] for line in answer.out.splitlines() if " q-1" in line or "waits for it" in line]
    assert answer.code == 4 and asked[0].startswith("question q-1 (crash, api): ")
    assert "  1 task waits for it: ui" in asked and f"  {TYPE}" in asked and "\a" not in answer.out
    again = ganger("run", cwd=root)
    assert "  open    q-1 (crash, api): " in again.out and f"          {TYPE}" in again.out


@pytest.mark.parametrize(
    ("term", "mark"), [("dumb", "question q-1 (crash, api)"), ("xterm", "? QUESTION q-1 api (crash)")]
)
def test_a_terminal_rings(tmp_path: Path, term: str, mark: str) -> None:
    """Z06: plain lines and the live view."""
    said = on_a_terminal(make_project(tmp_path, *TASKS, script=SCRIPT), term)
    assert mark in said and TYPE in said and said.count("\a") == 1
