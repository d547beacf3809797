"""Sessions that the model does not take up again: begun afresh once, from where they stood, and said in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.dev.server import ModelServer
from tests.agents.matrix import ROWS, Row, params
from tests.agents.runs import RealProject, plays, until, writes_file
from tests.agents.test_sessions import FIRST, SLEEP, sleepers

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]
TASK = "long"
RESUMING = [name for name, row in ROWS.items() if not row.stands_in and name != "acp-gemini"]
# What a model says of a conversation it does not take, by what is wrong with it: a word that must be shown.
WRONG = {"pairing": "tool|function", "context": "too long|context|token", "signature": "signature|encrypted"}


def scenario(wrong: str) -> dict[str, object]:
    """At work until it is killed; then refused; a new conversation is led to its end."""
    begins = {"write": {"path": FIRST, "content": "begun\n"}}
    hangs = {"run": f"python3 -c '{SLEEP}'", "times": 1}
    return {
        "steps": [begins, hangs, writes_file(TASK), {"result": {}}],
        "resumed": [{"error": wrong}],
        "again": "continued",
    }


# These shorten a conversation that is too long by themselves, and go on with what is left of it.
SHORTEN = (("context", "opencode"), ("context", "qwen"))
EVERY = params(RESUMING, ["claude"], ["codex", "opencode"])


def refused() -> list[Any]:
    """Every agent with every fault; one fault of one agent in the usual tests."""
    found = [pytest.param(*row.values, "pairing", id=f"{row.id}-pairing", marks=row.marks) for row in EVERY]
    more = [(row, wrong) for row in EVERY for wrong in ("context", "signature")]
    more = [(row, wrong) for row, wrong in more if (wrong, row.id) not in SHORTEN]
    return found + [pytest.param(*r.values, w, id=f"{r.id}-{w}", marks=pytest.mark.agents_full) for r, w in more]


@pytest.mark.parametrize(("row", "wrong"), refused())
def test_a_session_that_the_model_refuses_is_begun_afresh(
    row: Row, wrong: str, tmp_path: Path, record_property: Note
) -> None:
    """G22 H05: tried once, no worker attempt paid for it, and its program's own words are shown."""
    with ModelServer(plays({TASK: scenario(wrong)})) as server:
        project = RealProject(tmp_path / "project", row, server, (TASK,), agent={"retries": 0}).make()
        with project.leading() as lead:
            until(lambda: lead.poll() is not None or sleepers(project))
            project.kill_agents()
            assert lead.wait(100) == 0, project.task(TASK).detail
        task, started = project.task(TASK), project.find(ev.AttemptStarted, TASK)
        assert task.status is TaskStatus.DONE and [bool(event.session) for event in started] == [False, True, False]
        assert (task.counters.worker_attempts, task.counters.respawns) == (1, 1)
        assert any(word in task.next_start.lost_session.lower() for word in WRONG[wrong].split("|")), (
            task.next_start.lost_session
        )
        assert task.next_start.lost_session in project.ganger("why", TASK).stdout
        assert project.merged(FIRST) == "begun\n"
    record_property(f"{row.name}: a session that is refused", "a new session")
