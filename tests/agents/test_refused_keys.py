"""A key that the model's vendor refuses: real agents meet it, one question is asked, and all go on when it works."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.dev.play import Player
from ganger.dev.scenario import scenarios
from ganger.dev.server import ModelServer
from tests.agents.matrix import ROWS, Row, params
from tests.agents.runs import RealProject, plays, writes_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]
NAMES = tuple(f"t{n}" for n in range(1, 5))
AT_ONCE = 2
REAL = [name for name, row in ROWS.items() if not row.stands_in]
GOOD = scenarios(plays({name: [writes_file(name), {"result": {}}] for name in NAMES}))


def starts(project: RealProject) -> list[ev.Event]:
    return [recorded.event for recorded in project.events() if isinstance(recorded.event, ev.AttemptStarted)]


def met(project: RealProject) -> None:
    """Those that ran at once met it, nobody else; nobody pays, and one question names account, key and words."""
    state = project.state()
    assert len(starts(project)) <= AT_ONCE
    waits = {(task.status, task.block_reason) for task in state.tasks.values()}
    assert waits <= {(TaskStatus.BLOCKED, BlockReason.EXTERNAL), (TaskStatus.PENDING, None)}
    assert {task.counters.worker_attempts for task in state.tasks.values()} == {0}
    (asked,) = json.loads(project.ganger("inbox", "--json").stdout)["questions"]
    assert (asked["kind"], asked["account"], asked["task"]) == ("account", "worker", None)
    assert project.row.key in asked["text"], asked["text"]
    assert set(asked["blocks"]) == set(NAMES)
    told = project.ganger("why", NAMES[-1]).stdout
    assert asked["id"] in told and "account worker" in told


def tried_first(project: RealProject) -> int:
    """How many were started between the answer and the proof that the account works."""
    rows = [recorded.event for recorded in project.events()]
    tried = max(n for n, event in enumerate(rows) if isinstance(event, ev.AccountTried))
    works = next(n for n, event in enumerate(rows) if isinstance(event, ev.AccountWorks))
    return sum(isinstance(event, ev.AttemptStarted) for event in rows[tried:works])


@pytest.mark.parametrize("row", params(REAL, ["claude", "codex"], ["opencode"]))
@pytest.mark.parametrize("status", [401, pytest.param(403, marks=pytest.mark.agents_full)])
def test_a_refused_key_asks_once_and_an_answer_takes_the_run_up_again(
    row: Row, status: int, tmp_path: Path, record_property: Note
) -> None:
    """G14 G04 Z06: it rests the account as a limit does; the answer lets one worker try, then the others."""
    refused = plays({name: [{"error": status}] for name in NAMES})
    with ModelServer(refused) as server:
        policy = f"concurrency = {AT_ONCE}\nquota_spread_sec = 0"
        project = RealProject(tmp_path / "project", row, server, NAMES, agent={"retries": 0}, policy=policy).make()
        assert project.ganger("run").returncode == 4
        if status == 401:
            met(project)
        server.player = Player(GOOD)
        (asked,) = project.state().inbox.questions
        project.ganger("answer", asked, "the key is valid again")
        ended = project.ganger("run")
        assert ended.returncode == 0, ended.stdout
        assert {task.status for task in project.state().tasks.values()} == {TaskStatus.DONE}
        assert {task.counters.worker_attempts for task in project.state().tasks.values()} == {1}
        assert (
            tried_first(project) == 1 and project.state().quota.shut == {} and len(project.state().inbox.questions) == 1
        )
    record_property(f"{row.name}: {status}", "one question; one worker tries first")
