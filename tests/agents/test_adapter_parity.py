"""The same answers on every kind of agent: one table of answers, one outcome for each, whoever brought it.

A session that asks for its tasks (`pull`) hands in a checked record instead of a text; tests/worker has its rows.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.dev.server import ModelServer
from tests.agents import told_answers
from tests.agents.matrix import ROWS
from tests.agents.runs import MADE, RealProject, made_file, plays

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]
START, END = "<<<TASK_RESULT_V2>>>", "<<<END_TASK_RESULT_V2>>>"
D, F, B = TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.BLOCKED


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the task stands, of what class its failure is, and with which code an answer was refused."""

    status: TaskStatus
    failure_class: str = ""
    code: str = ""


def block(name: str, content: str = MADE, path: str = "", **more: object) -> str:
    write = {"path": path or made_file(name), "op": "create", "encoding": "utf8", "content": content}
    fields = {"contract_version": "2.0", "task_id": name, "status": "DONE", "summary": "did it", "writes": [write]}
    return f"{START}\n{json.dumps({**fields, **more})}\n{END}"


ANSWERS: dict[str, tuple[str, Outcome]] = {
    "valid": (f"Done.\n\n{block('valid')}\n", Outcome(D)),
    "echo": (f"As asked:\n{START}\n{{ ...json... }}\n{END}\nMine:\n{block('echo')}", Outcome(D)),
    "stray": (f"{block('stray')}\n{END}\n", Outcome(D)),
    "again": (f"{block('again')}\n{START}\n{{", Outcome(D)),
    "fence": ("All is done, all tests pass.", Outcome(F, "contract_error", "NO_SENTINEL")),
    "json": (f"{START}\n{{broken\n{END}", Outcome(F, "contract_error", "INVALID_JSON")),
    "schema": (block("schema", status="OK"), Outcome(F, "contract_error", "SCHEMA_VIOLATION")),
    "other": (block("other", task_id="valid"), Outcome(F, "contract_error", "SCHEMA_VIOLATION")),
    "version": (block("version", contract_version="1.0"), Outcome(F, "contract_error", "UNSUPPORTED_VERSION")),
    "failed": (block("failed", status="FAILED", failure_class="real_bug", writes=[]), Outcome(F, "real_bug")),
    "blocked": (block("blocked", status="BLOCKED", writes=[]), Outcome(B, "blocked_external")),
    "red": (block("red", content="wrong\n"), Outcome(F, "test_error")),
    "outside": (block("outside", path="../outside.txt"), Outcome(F, "policy_violation")),
}
# Of the real programs that run in every test, enough to see each way an answer can take.
FEW = ("valid", "stray", "fence", "failed")


@dataclass(frozen=True, slots=True)
class StandIn:
    """A kind whose program is ours: it says what its prompt holds."""

    name: str
    settings: str

    def section(self, _url: str, **_more: object) -> str:
        return self.settings.replace("PROGRAM", json.dumps([sys.executable, told_answers.__file__])[1:-1])

    def environ(self, _url: str, home: Path) -> dict[str, str]:
        key = {"CURSOR_API_KEY": "a key of no use"}
        return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", **key}


_TERMINAL = (
    f'ready = "task>", submit = "\\r.\\r", done = "{told_answers.END}", idle_sec = 2.0, settle_sec = 0.3, rescues = 0'
)
OURS = {
    one.name: one
    for one in (
        StandIn("command", 'kind = "command"\nargv = [PROGRAM, "plain"]'),
        StandIn("scripted", 'kind = "scripted"\nscript = "script.json"'),
        StandIn("agent", 'kind = "agent"\nargv = [PROGRAM, "agent"]'),
        StandIn("acp", 'kind = "acp"\nargv = [PROGRAM, "acp"]'),
        StandIn("pty", f'kind = "pty"\nargv = [PROGRAM, "pty"]\nterminal = {{{_TERMINAL}}}'),
    )
}
REAL = [name for name, row in ROWS.items() if not row.stands_in]
USUAL = ("claude", "codex", "opencode")


def played(root: Path, who: Any, names: tuple[str, ...]) -> dict[str, Outcome]:
    texts = {name: ANSWERS[name][0] for name in names}
    orders = {name: f"PLAY: {base64.b64encode(text.encode()).decode()}" for name, text in texts.items()}
    with ModelServer(plays({name: [{"text": text}] for name, text in texts.items()})) as server:
        policy = "concurrency = 4\nmax_worker_attempts_per_task = 1\nformat_retries = 0"
        mine = orders if isinstance(who, StandIn) else {}
        project = RealProject(root, who, server, names, policy=policy, orders=mine).make()
        script = {name: {"text": text} for name, text in texts.items()}
        (project.root / "script.json").write_text(json.dumps({"tasks": script}))
        project.ganger("run", seconds=170)
        return {name: outcome(project, name) for name in names}


def outcome(project: RealProject, name: str) -> Outcome:
    task, refused = project.task(name), project.find(ev.ResultRefused, name)
    assert len(project.find(ev.AttemptStarted, name)) == 1, name
    return Outcome(task.status, task.failure.failure_class or "", refused[0].code if refused else "")


def expected(names: tuple[str, ...]) -> Mapping[str, Outcome]:
    return {name: ANSWERS[name][1] for name in names}


@pytest.mark.parametrize("name", OURS)
def test_every_answer_means_the_same_on_every_kind(name: str, tmp_path: Path) -> None:
    """T28 adapter-parity T24 T07: refused with one code, done by one proof, failed in one class."""
    names = tuple(ANSWERS)
    assert played(tmp_path / "project", OURS[name], names) == expected(names)


@pytest.mark.parametrize("name", USUAL)
def test_an_answer_of_a_real_agent_means_what_it_means_everywhere(name: str, tmp_path: Path) -> None:
    """T28 adapter-parity T24: the real program, and a played model that says the very same text."""
    assert played(tmp_path / "project", ROWS[name], FEW) == expected(FEW)


@pytest.mark.agents_full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", REAL)
def test_every_answer_of_a_real_agent_means_the_same(name: str, tmp_path: Path, record_property: Note) -> None:
    """T28 adapter-parity T24: every line of the table with every program that can be had."""
    names = tuple(ANSWERS)
    assert played(tmp_path / "project", ROWS[name], names) == expected(names)
    record_property(f"{name}: answers", f"{len(names)} of {len(names)} as everywhere")
