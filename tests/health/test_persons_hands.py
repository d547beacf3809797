"""What a person does with a worker at work, in a real run: end it, give its task to another, give it more time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.launchers.connect import KeeperConnection
from tests.engine.run_projects import Project, leading, task, until
from tests.health.behaviour_run import LIMITS, health_of, seen

AGENT = """
case "$GANGER_TASK_ID$GANGER_ATTEMPT" in
  slow1) sleep 16 ;;
  ended1|given1) while :; do echo still at it; sleep 1; done ;;
esac
printf '<<<TASK_RESULT_V2>>>\\n{"contract_version": "2.0", "task_id": "%s", "status": "DONE", ' "$GANGER_TASK_ID"
printf '"summary": "did it"}\\n<<<END_TASK_RESULT_V2>>>\\n'
"""


def project(root: Path) -> Project:
    """`slow` needs more than its time limit and more than the silence that is allowed; both leave a busy machine the
    time to run the command that moves them."""
    (root / "agent.sh").write_text(AGENT)
    tasks = [task("slow", timeout_sec=15), *(task(name, timeout_sec=60) for name in ("ended", "given"))]
    policy = f"concurrency = 3\n{health_of({**LIMITS, 'stall_sec': 13.0})}"
    agent = f'kind = "command"\nargv = ["sh", "{root}/agent.sh"]'
    return Project(root / "project", tasks=[*tasks, task("z", "ended")], agent=agent, policy=policy).make()


@pytest.mark.whole
def test_end_reassign_and_extend_reach_the_worker(tmp_path: Path) -> None:
    """G12 D14 H08: recorded first, then carried out; the ended one waits, the given one begins anew with the hint."""
    made = project(tmp_path)
    with leading(made) as lead:
        until(lambda: len(seen(made, ev.AttemptLaunched)) == 3, beside=lead)
        for words in (("extend", "slow", "30"), ("end", "ended"), ("reassign", "given", "--hint", "look at x.py")):
            told = made.ganger(*words)
            assert told.returncode == 0, told.stderr
        assert lead.wait(40) == 3
    tasks = made.state().tasks
    assert [(e.task, e.verdict) for e in made.find(ev.WorkerEnding)] == [("ended", "ended"), ("given", "reassigned")]
    assert (tasks["slow"].status, tasks["slow"].attempts) == (TaskStatus.DONE, 1)
    assert (tasks["ended"].status, tasks["ended"].block_reason) == (TaskStatus.BLOCKED, BlockReason.PAUSED)
    assert tasks["z"].block_reason is BlockReason.DEPENDENCY_FAILED
    given = tasks["given"]
    assert (given.status, given.attempts, given.counters.worker_attempts, given.counters.respawns) == (
        TaskStatus.DONE,
        2,
        1,
        0,
    )
    assert "> look at x.py" in (made.folder.path / "prompts/given.2.md").read_text()
    assert not made.find(ev.AttemptFailed) and made.processes() == []


ASKS = """{python} -m ganger extend a 60 --project '{root}' > '{root}/told.txt' 2>&1
printf '<<<TASK_RESULT_V2>>>\\n{{"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "did it"}}\\n'
printf '<<<END_TASK_RESULT_V2>>>\\n'
"""


@pytest.mark.whole
@pytest.mark.parametrize(("learnt", "told"), [(True, "may continue for 60 s"), (False, "time limit cannot be moved")])
def test_more_time_is_promised_only_where_the_keeper_can_give_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learnt: bool, told: str
) -> None:
    """D14 H10: a run that goes on under a new version may still have a keeper of the one before."""
    if not learnt:
        monkeypatch.setattr(KeeperConnection, "can", lambda _line, what: what == "hello")
    script = ASKS.format(python=sys.executable, root=tmp_path)
    agent = 'kind = "command"\nargv = ["sh", "agent.sh"]'
    made = Project(tmp_path, [task("a", timeout_sec=60)], agent=agent, files={"agent.sh": script}).make()
    assert made.run() == 0
    assert told in (tmp_path / "told.txt").read_text()
    assert len(made.find(ev.LimitExtended)) == int(learnt)
