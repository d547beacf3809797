"""A small project folder and the real command line, for black-box tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganger.app.run_places import place_of
from ganger.config import load_project
from tests.cli.in_process import call, can_be_called
from tests.patience import stretched

CONFIG = """
[policy]
heal_schedule = "off"
[agents.worker]
kind = "scripted"
script = "script.json"
[roles.worker]
agent = "worker"
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def ganger(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Answer:
    """Runs the command line as a user would; a traceback is never acceptable.

    Commands that say something are called in this process; tests/cli/test_called.py holds that a program says the same.
    """
    if can_be_called(words):
        return _sound(*call(words, cwd, env))
    return as_program(*words, cwd=cwd, env=env)


def as_program(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Answer:
    """The same, always in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "ganger", *words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=stretched(60),
        check=False,
    )
    return _sound(done.returncode, done.stdout, done.stderr)


def _sound(code: int, out: bytes, err: bytes) -> Answer:
    answer = Answer(code, out.decode(), err.decode("utf-8", "replace"))
    # Of its own: what a check printed may hold one, and is quoted.
    assert not re.search(r"^Traceback", answer.err + "\n" + answer.out, re.MULTILINE)
    return answer


def kept(root: Path, run: str = "r1") -> Path:
    """Where Ganger keeps a run, whatever the project shows of it."""
    return place_of(load_project(root), run).path


def task(name: object = "one", **changes: object) -> dict[str, object]:
    base = {"id": name, "prompt_ref": "prompt.md", "depends_on": [], "timeout_sec": 20, "verify_profile": "check"}
    return {**base, **changes}


def manifest(*tasks: dict[str, object], **changes: object) -> dict[str, object]:
    return {"manifest_version": "2.0", "run_id": "r1", "tasks": list(tasks), **changes}


def make_project(
    root: Path, *tasks: dict[str, object], script: object = None, steps: list[dict[str, object]] | None = None
) -> Path:
    """Everything a run needs; `script` is what the scripted agent does, by task id."""
    (root / "ganger.toml").write_text(CONFIG)
    (root / "prompt.md").write_text("Do it.\n")
    (root / "script.json").write_text(json.dumps({"tasks": script or {}}))
    profiles = {"profiles": {"check": {"steps": steps or [{"name": "test", "cmd": "true"}]}}}
    (root / "verify.json").write_text(json.dumps(profiles))
    (root / "manifest.json").write_text(json.dumps(manifest(*(tasks or (task(),)))))
    return root
