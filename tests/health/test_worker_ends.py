"""What a worker's exit code means, who goes on after it, and what that one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, leading, task, until
from tests.health.behaviour_run import LIMITS, Book, health_of, seen

pytestmark = pytest.mark.whole

BLOCK = """
printf '<<<TASK_RESULT_V2>>>\\n{"contract_version": "2.0", "task_id": "%s", ' "$GANGER_TASK_ID"
printf '"status": "DONE", "summary": "did it"}\\n'
printf '<<<END_TASK_RESULT_V2>>>\\n'
"""
ASK = "ganger worker escalate ambiguous_spec 'Which port?' --option 80 --option 8080\n"
HAND_OVER = """
echo half > half.txt
ganger worker checkpoint --summary 'the parser is there' --done parser --remaining tests --last-action 'wrote parser' \
  --next-action 'write tests' --percent 40 --context 82
exit 2
"""


def project(root: Path, first: str, then: str = BLOCK, *, git: bool = False, names: tuple[str, ...] = ("a",)) -> Any:
    """The agent is a shell script: `first` in its first attempt, `then` in every other one."""
    root.mkdir(exist_ok=True)
    script = root / "agent.sh"
    script.write_text(f'if [ "$GANGER_ATTEMPT" = 1 ]; then\n{first}\nelse\n{then}\nfi\n')
    agent = f'kind = "command"\nargv = ["sh", "{script}"]'
    kind = GitProject if git else Project
    # Looking for a file again and again is neither silence nor idle work: the person is on the way.
    policy = f"concurrency = 3\n{health_of({**LIMITS, 'stall_sec': 30.0, 'busy_sec': 30.0})}"
    return kind(root / "project", tasks=[task(name) for name in names], agent=agent, policy=policy).make()


def prompt(made: Project, attempt: int, name: str = "a") -> str:
    return (made.folder.path / f"prompts/{name}.{attempt}.md").read_text()


def failures(made: Project) -> list[tuple[str, str]]:
    return [(failed.failure_class, failed.counter) for failed in made.find(ev.AttemptFailed)]


def test_a_checkpoint_and_exit_code_2_hand_the_task_on(tmp_path: Path) -> None:
    """Z05 Z07 H01 H05: no counter pays; a fresh worker is told what is done and finds the work as a WIP commit."""
    made = project(tmp_path, HAND_OVER, git=True)
    assert made.run() == 0
    now, told = made.state().tasks["a"], prompt(made, 2)
    counters = now.counters
    assert (now.attempts, counters.worker_attempts, counters.respawns, counters.checkpoints) == (2, 1, 0, 1)
    assert [e.attempt for e in made.find(ev.AttemptCheckpointed)] == [1] and not made.find(ev.AttemptFailed)
    assert "> Done:\n> - parser\n> Remaining:\n> - tests" in told and "> Last action: wrote parser" in told
    saved = made.find(ev.WorkSaved)[0].place
    message = made.in_store("log", "-1", "--format=%B", saved)
    assert message.startswith("WIP: GANGER [worker-1] checkpoint during a\n\nStatus: 40% complete\nFiles modified:\n")
    assert "- half.txt" in message and "Next action: write tests" in message and "Context-Usage: 82%" in message
    assert saved in told
    progress = (made.folder.path / "progress.md").read_text()
    assert "exit code: 2 (it saved its state)" in progress and " ERROR" not in progress
    assert not made.find(ev.ResultRefused)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("exit 2", "exit code 2"),
        ("exit 3", "exit code 3"),
        ("exit 4", "exit code 4"),
        ("exit 130", "exit code 130"),
        ("kill -INT $$; sleep 9", "signal 2"),
        ("exit 1", "exit code 1"),
    ],
)
def test_an_exit_code_alone_says_nothing(tmp_path: Path, first: str, said: str) -> None:
    """Z07 H04: without a word over the protocol it is a crash, and the respawn pays."""
    made = project(tmp_path, first)
    assert made.run() == 0
    assert failures(made) == [("crash", "respawns")] and said in made.find(ev.AttemptFailed)[0].detail


def test_exit_code_3_after_a_word_is_blocked(tmp_path: Path) -> None:
    """Z07: what it last said is why; no counter pays."""
    made = project(tmp_path, "ganger worker progress --note 'no database here'; exit 3")
    assert made.run() == 3
    now = made.state().tasks["a"]
    assert (now.status, now.block_reason, now.detail) == (
        TaskStatus.BLOCKED,
        "external",
        "the worker is blocked: no database here",
    )
    assert failures(made) == [("blocked_external", "none")]


def test_a_question_waits_for_its_answer_and_the_next_worker_has_it(tmp_path: Path) -> None:
    """Z06 Z07: exit code 4; the run ends with 4, the answer wakes it, and is in the prompt."""
    made = project(tmp_path, f"{ASK}exit 4")
    assert made.run() == 4
    assert made.status() is TaskStatus.ESCALATED and failures(made) == [("blocked_external", "none")]
    assert made.ganger("answer", "q-1", "take 8080").returncode == 0
    assert made.run() == 0
    assert "> Answered: take 8080" in prompt(made, 2) and len(made.find(ev.QuestionAsked)) == 1


ASKING = f"""
case $GANGER_TASK_ID in
  waits) [ "$({ASK.strip()} --wait 30)" = 8080 ] || exit 7 ;;
  leaves) {ASK}while ! [ -e FOLDER/answered ]; do sleep 0.1; done; exit 4 ;;
  crashes) {ASK}while ! [ -e FOLDER/answered ]; do sleep 0.1; done; exit 1 ;;
esac
"""


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """Three workers ask, and are answered while they run."""
    root = tmp_path_factory.mktemp("asking")
    names = ("waits", "leaves", "crashes")
    made = project(root, ASKING.replace("FOLDER", str(root)) + BLOCK, names=names)
    with leading(made) as lead:
        until(lambda: len(seen(made, ev.QuestionAsked)) == 3, beside=lead)
        for question in ("q-1", "q-2", "q-3"):
            assert made.ganger("answer", question, "8080").returncode == 0
        (root / "answered").touch()
        assert lead.wait(30) == 0
    return Book(made)


def test_an_answer_reaches_the_worker_that_waits_for_it(answered: Book) -> None:
    """Z06: while it runs; it needs no second attempt."""
    assert answered.state.tasks["waits"].attempts == 1


def test_who_ends_with_an_answered_question_leaves_no_second_one(answered: Book) -> None:
    """Z06: the next worker begins at once and has the answer; no counter pays, and nobody is asked again."""
    now = answered.state.tasks["leaves"]
    assert (now.attempts, now.counters.worker_attempts, now.counters.respawns) == (2, 1, 0)
    assert not answered.of("leaves", ev.AttemptFailed) and len(answered.of("leaves", ev.QuestionAsked)) == 1
    assert "> Answered: 8080" in prompt(answered.project, 2, "leaves")


def test_a_crash_after_an_answer_is_a_crash(answered: Book) -> None:
    """H04: that somebody answered excuses nothing that happened later."""
    assert answered.counters("crashes")["respawns"] == "1 of 1" and len(answered.of("crashes", ev.AttemptFailed)) == 1


def test_who_asks_the_same_again_and_again_is_not_started_for_ever(tmp_path: Path) -> None:
    """H04: a default answers it each time, it asks again each time; a bound holds."""
    asks = f"{ASK.strip()} --default 80 --deadline 0.2 --wait 3; exit 4"
    made = project(tmp_path, asks, asks)
    assert made.run() in (1, 3, 4)
    assert made.state().tasks["a"].attempts <= 4


CONTEXT = [
    {"sign": {"is": "Session", "id": "s-1"}},
    {"sign": {"is": "Context", "used": 80, "window": 100}},
    {"sign": {"is": "ToolStarted", "id": "1", "name": "bash", "about": "make"}},
    {"delay": 2.5},
    {"sign": {"is": "ToolEnded", "id": "1"}},
    {"hang": True},
]


def test_a_full_context_is_handed_on_between_two_tool_calls(tmp_path: Path) -> None:
    """Z05 H01: warned of and asked, ended when no tool runs; a fresh session goes on, and no counter pays."""
    made = Project(tmp_path, script={"a": [CONTEXT, {"result": "DONE"}]}, policy=health_of()).make()
    assert made.run() == 0
    book, now = Book(made), made.state().tasks["a"]
    assert [(e.limit, e.text) for e in made.find(ev.LimitWarned)] == [("context", "its context is 80 % full")]
    assert [m.kind for m in made.find(ev.MessageLeft)] == ["checkpoint"]
    assert [e.verdict for e in made.find(ev.WorkerEnding)] == ["context"]
    assert book.at("a", ev.WorkerEnding) - book.at("a", ev.LimitWarned) > 2
    assert (now.attempts, now.counters.worker_attempts, now.counters.checkpoints, now.agent.continued) == (2, 1, 1, "")


def test_a_task_is_not_handed_on_for_ever(tmp_path: Path) -> None:
    """Z05: [policy] checkpoints bounds it; then it is a worker's failure."""
    script = {"a": [[*CONTEXT[:2], {"hang": True}]]}
    policy = f"checkpoints = 1\nmax_worker_attempts_per_task = 1\n{health_of()}"
    made = Project(tmp_path, script=script, policy=policy).make()
    assert made.run() == 1
    assert len(made.find(ev.AttemptCheckpointed)) == 1 and failures(made) == [("timeout", "worker_attempts")]
    assert "after 1 checkpoints the task is still not done" in made.state().tasks["a"].detail
