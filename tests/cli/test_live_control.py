"""Live control from the command line: what is left for the lead, what it answers, and that a real run obeys."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ganger.app.control import current_lead, still_working, tell
from ganger.app.runs import is_led, newest_run, read_state
from ganger.cli.shell.main import run_command
from ganger.config import load_project
from ganger.core import events as ev
from ganger.core.control.commands import act
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import LeadState, RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import TaskStatus
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Entry
from ganger.stores.lead_lock import leading
from ganger.stores.sqlite import SqliteStore
from tests.cli.cli_project import Answer, ganger, kept, make_project, task
from tests.patience import until

AT = "2026-01-01T00:00:00.000000Z"
BEGUN: tuple[ev.Event, ...] = (
    ev.RunStarted("r1", "digest", Policy(), (TaskSpec("a"), TaskSpec("b", ("a",)))),
    ev.LeadStarted(1, policy=Policy()),
    ev.AttemptStarted("a", 1, "token", "worker", "", "logs/a.worker.1.log"),
    ev.AttemptLaunched("a", 1, 1, 1),
)
SETTLED = ev.TaskSettled("a", TaskStatus.ESCALATED, "unclear")
ASKED = ev.QuestionAsked("q-1", "a", "escalated", "Which port?")


def here(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> Answer:
    """The command line within this process: quick, for what starts no other."""
    code = run_command([*words, "--project", str(root)])
    said = capsys.readouterr()
    return Answer(code, said.out, said.err)


Here = Callable[..., Answer]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    return partial(here, capsys, tmp_path)


class ToyLead:
    """Leads a run as far as commands go: takes them from the store and records what `act` says."""

    def __init__(self, folder: RunFolder) -> None:
        folder.make()
        self.folder, self.store, self.state = folder, SqliteStore(folder.path / "ganger.db"), RunState()

    def record(self, *events: ev.Event, token: str = "") -> None:
        for recorded in self.store.append([Entry(AT, event, token) for event in events]):
            apply(self.state, recorded)

    def take_commands(self) -> None:
        for command in self.store.commands(self.state.lead.commands_taken):
            self.record(*act(self.state, command, time.time()))

    def worker(self, task: str) -> str:
        worker = self.state.tasks[task].worker
        assert worker is not None
        return worker.name

    def kept(self) -> list[tuple[str, dict[str, Any]]]:
        return [(command.kind, dict(command.data)) for command in self.store.commands(0)]


@pytest.fixture
def lead(tmp_path: Path) -> Iterator[ToyLead]:
    """A run with an open question that nobody leads at the moment."""
    make_project(tmp_path, task("a"), task("b", depends_on=["a"]))
    lead = ToyLead(RunFolder(tmp_path / ".ganger" / "r1"))
    with leading(lead.folder.path, lead.store):
        lead.record(*BEGUN[:3])
        lead.record(BEGUN[3], SETTLED, token="token")
        lead.record(ASKED)
    yield lead
    lead.store.close()


@contextmanager
def working(lead: ToyLead) -> Iterator[None]:
    """The lead takes commands until the block ends; its store is used by that one thread alone."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            lead.take_commands()

    with leading(lead.folder.path, lead.store):
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def test_the_inbox_says_what_is_open_and_what_to_type(lead: ToyLead, call: Here) -> None:
    """Z06: for people and programs."""
    said = call("inbox").out
    assert "r1: 1 open question\n" in said and "? q-1  a (escalated)  since 2026-01-01T00:00:00Z" in said
    assert "    Which port?" in said and "> ganger answer q-1 TEXT --run r1" in said
    answer = call("inbox", "--json").json
    assert (answer["schema"], answer["open"], answer["questions"][0]["id"]) == ("ganger.inbox/1", 1, "q-1")
    with leading(lead.folder.path, lead.store):
        lead.record(ev.QuestionAnswered("q-1", "8080"))
    assert call("inbox", "--json").json["questions"] == []
    assert "✓ q-1" in (said := call("inbox", "--all").out) and "answer: 8080" in said


@pytest.mark.parametrize(
    ("words", "kind", "data"),
    [
        (("answer", "a", "use 8080"), "answer", {"question": "q-1", "text": "use 8080"}),
        (("retry", "a", "--hint", "look"), "retry", {"task": "a", "hint": "look", "force": False}),
        (("skip", "b"), "skip", {"task": "b"}),
        (("set", "concurrency=8"), "set", {"key": "policy.concurrency", "value": 8}),
        (("set", "budget.usd=none"), "set", {"key": "budget.usd", "value": None}),
        (("pause",), "pause", {}),
        (("unlock", ".", "--why", "revoked"), "unlock", {"repo": ".", "why": "revoked"}),
    ],
)
def test_a_command_is_kept_for_the_next_lead(
    lead: ToyLead, call: Here, words: tuple[str, ...], kind: str, data: dict[str, object]
) -> None:
    """G12: durable, and honest about who acts on it."""
    answer = call(*words)
    assert (answer.code, answer.out) == (0, "no process leads this run now; the next ganger run applies it\n")
    assert lead.kept() == [(kind, data)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("retry", "c"), "run r1 has no task 'c'"),
        (("skip", "c"), "run r1 has no task 'c'"),
        (("answer", "q-7", "x"), "there is no open question q-7"),
        (("set", "concurrency=0"), "policy.concurrency must be at least 1"),
        (("set", "heal_schedule=off"), "the schedule cannot change"),
        (("pause", "--run", "r2"), "no run 'r2'"),
        (("unlock", "core", "--why", "reverted"), "this run has no repositories"),
        (("unlock", ".", "--why", " "), "it gives no reason"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(lead: ToyLead, call: Here, words: tuple[str, ...], said: str) -> None:
    """G12: nothing is kept."""
    answer = call(*words)
    assert answer.code == 1 and said in answer.err and lead.kept() == []


def test_without_a_lead_there_is_nothing_to_stop(lead: ToyLead, call: Here) -> None:
    """T23: a stop is not left for a lead it was not meant for."""
    answer = call("stop")
    assert (answer.code, answer.out) == (0, "nothing to stop: no process leads run r1 now\n")
    assert lead.kept() == []


def test_the_lead_answers(lead: ToyLead, call: Here) -> None:
    """G12 Z06: its sentence is printed; a refusal is exit 1; programs get one document."""
    with working(lead):
        answered = call("answer", "q-1", "use 8080", "--json")
        refused = call("retry", "b")
        stopped = call("stop", "--drain")
    assert (answered.code, answered.json["ok"], answered.json["taken"], answered.json["led"]) == (0, True, True, True)
    assert answered.json["outcome"] == "q-1 is answered; a runs again with your answer"
    assert (refused.code, refused.err) == (
        1,
        "refused: b is PENDING and starts by itself; ganger why b shows what it waits for\n",
    )
    assert stopped.out == "draining: nothing new starts and the run ends\n" and lead.state.lead.draining


def test_a_lead_that_is_busy_is_not_waited_for(lead: ToyLead) -> None:
    """G12: the command is left with it, and the answer says so."""
    with leading(lead.folder.path, lead.store):
        told = tell(lead.folder, lead.state, "pause", {}, wait_sec=0.1)
        assert told.led and not told.refused and "which is busy" in told.sentence
        lead.take_commands()
    assert lead.state.lead.paused


def test_a_stop_names_the_lead_it_is_meant_for() -> None:
    """T23: while the next lead is still starting, its number is one more."""
    assert (
        current_lead(RunState(lead=LeadState(count=2))),
        current_lead(RunState(lead=LeadState(count=2), finished=True)),
    ) == (2, 3)


def test_agents_that_outlived_their_lead_are_seen(tmp_path: Path) -> None:
    """T23 G01: by process and start time; another process of that number is not one."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    state = RunState()
    for seq, event in enumerate((*BEGUN[:3], ev.AttemptLaunched("a", 1, pid_of_self(), ticks)), 1):
        apply(state, ev.Recorded(seq, AT, event))
    assert still_working(state) == ["a"]
    apply(state, ev.Recorded(5, AT, ev.AttemptLaunched("a", 1, pid_of_self(), ticks + 1)))
    assert still_working(state) == []


def pid_of_self() -> int:
    return int(Path("/proc/self").readlink().name)


# --- a real run --------------------------------------------------------------------------------------------------


@contextmanager
def run_of(root: Path) -> Iterator[Path]:
    """A detached run that is stopped in the end."""
    assert ganger("run", "--detach", cwd=root).code == 0
    try:
        yield root
    finally:
        ganger("stop", cwd=root)
        until(lambda: not is_led(RunFolder(kept(root))))


def state_of(root: Path) -> RunState:
    return read_state(newest_run(load_project(root), "r1"))


def is_status(root: Path, name: str, status: TaskStatus) -> bool:
    return state_of(root).tasks[name].status is status


def did(answer: Answer) -> str:
    assert answer.code == 0, answer.err
    return answer.out


HANG = [{"hang": True}]


def test_a_paused_run_starts_nothing_and_goes_on_when_resumed(tmp_path: Path, call: Here) -> None:
    """G12: the running attempt ends, the next waits for resume; set gives it a place beside the first."""
    script = {"a": HANG, "b": HANG, "c": HANG}
    with run_of(make_project(tmp_path, task("a"), task("b"), task("c"), script=script)) as root:
        until(lambda: state_of(root).index.running)
        assert did(call("pause")).startswith("paused: nothing new starts; 1 running attempt finishes first")
        assert did(call("set", "concurrency=2")) == "policy.concurrency is 2 now (was 1)\n"
        assert state_of(root).index.running == {"a"}
        assert did(call("resume")) == "resumed: the run continues\n"
        until(lambda: state_of(root).index.running == {"a", "b"})


@pytest.mark.whole
def test_a_hint_reaches_the_next_attempt_and_what_was_blocked_follows(tmp_path: Path, call: Here) -> None:
    """G12 Z06: retried while another task keeps the run busy."""
    script = {"a": [{"result": "FAILED"}, {"echo_prompt": True, "result": "DONE"}], "busy": HANG}
    tasks = (task("a", retry_policy={"max_attempts": 1}), task("b", depends_on=["a"]), task("busy"))
    with run_of(make_project(tmp_path, *tasks, script=script)) as root:
        until(lambda: is_status(root, "b", TaskStatus.BLOCKED))
        did(call("set", "concurrency=2"))
        assert "1 task blocked behind it" in did(call("retry", "a", "--hint", "the port is 8080"))
        until(lambda: is_status(root, "b", TaskStatus.DONE))
        assert "the port is 8080" in did(call("logs", "a"))


def test_a_task_that_crashed_twice_asks_and_its_answer_runs_it_again(tmp_path: Path, call: Here) -> None:
    """H04 Z06: paused with a question; exit 4; the answer waits for the next lead and is in its prompt."""
    crashes = {"a": [{"crash": True}, {"crash": True}, {"echo_prompt": True, "result": "DONE"}]}
    root = make_project(tmp_path, task("a"), script=crashes)
    assert ganger("run", cwd=root).code == 4
    question = call("inbox", "--json").json["questions"][0]
    did(call("answer", question["id"], "the library is installed now"))
    assert ganger("run", cwd=root).code == 0
    assert "the library is installed now" in did(call("logs", "a"))
    assert call("inbox", "--json").json["open"] == 0


@pytest.mark.whole
def test_a_skipped_task_stays_out_over_leads(tmp_path: Path, call: Here) -> None:
    """G12: left for the next lead; what needs it is blocked, the rest is done; retry includes it again."""
    root = make_project(tmp_path, task("one"), task("a"), task("b", depends_on=["a"]), task("c"))
    assert ganger("run", "--only", "one", cwd=root).code == 0
    did(call("skip", "a"))
    assert [ganger("run", cwd=root).code for _ in range(2)] == [3, 3]
    assert [is_status(root, name, TaskStatus.BLOCKED) for name in "abc"] == [True, True, False]
    did(call("retry", "a"))
    assert ganger("run", cwd=root).code == 0


@pytest.mark.whole
def test_drain_lets_the_running_attempt_finish(tmp_path: Path, call: Here) -> None:
    """T23: nothing new starts, nothing is interrupted, the run can be continued."""
    root = make_project(tmp_path, task("a"), task("b"), script={"a": [{"delay": 4, "result": "DONE"}]})
    with run_of(root):
        until(lambda: state_of(root).index.running)
        assert did(call("stop", "--drain")).startswith("draining: nothing new starts")
        until(lambda: state_of(root).finished)
    assert is_status(root, "a", TaskStatus.DONE) and is_status(root, "b", TaskStatus.PENDING)
    assert ganger("run", cwd=root).code == 0


@pytest.mark.whole
def test_stop_ends_the_agent_and_leaves_a_run_to_continue(tmp_path: Path, call: Here) -> None:
    """T23: as Ctrl-C does."""
    with run_of(make_project(tmp_path, task("a"), script={"a": [{"hang": True}]})) as root:
        until(lambda: state_of(root).index.running)
        assert did(call("stop")).startswith("stopping: 1 running attempt will be stopped")
        until(lambda: state_of(root).finished)
    assert is_status(root, "a", TaskStatus.PENDING) and not state_of(root).index.running


@pytest.mark.whole
def test_a_stop_ends_the_agents_of_a_dead_lead_once_they_are_adopted(tmp_path: Path, call: Here) -> None:
    """T23 G01: it is kept although nobody leads, because somebody still works."""
    root = make_project(tmp_path, task("a"), script={"a": HANG})
    lead = ganger("run", "--detach", "--json", cwd=root).json["pid"]
    until(lambda: still_working(state_of(root)))
    os.kill(lead, signal.SIGKILL)
    until(lambda: not is_led(RunFolder(kept(root))))
    answer = call("stop")
    assert (answer.code, answer.out) == (0, "no process leads this run now; the next ganger run applies it\n")
    assert "1 agent of it still works; ganger run adopts" in answer.err
    assert ganger("run", cwd=root).code == 130 and not still_working(state_of(root))
    assert state_of(root).tasks["a"].attempts == 1


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[ToyLead]:
    """A run whose task a is worked on, and asks."""
    make_project(tmp_path, task("a"), task("b", depends_on=["a"]))
    lead = ToyLead(RunFolder(tmp_path / ".ganger" / "r1"))
    with leading(lead.folder.path, lead.store):
        lead.record(*BEGUN[:3])
        beat = ev.WorkerBeat("a", 1, "r1", "write\n\x1b[31mtests", 40.0)
        lead.record(BEGUN[3], beat, token="token")
        lead.record(ev.QuestionAsked("q-1", "a", "ambiguous_spec", "Which?", 1, "r2", "two", ("left", "right")))
        lead.record(ev.AccountPaused("work", time.time() + 600, "quota"))
    yield lead
    lead.store.close()


def test_an_option_is_answered_by_its_number(at_work: ToyLead, call: Here) -> None:
    """Z06: what is left for the lead is what was meant."""
    assert call("answer", "q-1", "3", "--json").json["error"]["message"].startswith("q-1 has options 1 to 2, not 3")
    assert call("answer", "q-1", "2").code == 0
    assert at_work.kept() == [("answer", {"question": "q-1", "text": "right"})]


@pytest.mark.parametrize(
    ("words", "kind", "data"),
    [
        (("extend", "a", "90"), "extend", {"task": "a", "sec": 90.0}),
        (("end", "a"), "end", {"task": "a"}),
        (("reassign", "a", "--hint", "anew"), "reassign", {"task": "a", "hint": "anew"}),
    ],
)
def test_a_worker_at_work_is_steered(at_work: ToyLead, call: Here, words: Any, kind: str, data: Any) -> None:
    """G12: left for the lead; nobody works on b, so that is refused at once."""
    assert call(*words).code == 0 and at_work.kept() == [(kind, data)]
    refused = call(words[0], "b", *words[2:])
    assert refused.code == 1 and "b is PENDING: no worker is running" in refused.err


def test_status_and_workers_show_who_works_and_which_account_waits(at_work: ToyLead, call: Here) -> None:
    """Z09 D11: for people and programs; no word of a worker steers the terminal."""
    said, own = call("status").out, at_work.worker("a")
    assert f"a #1 {own}: EXECUTING since" in said and "write [31mtests, 40 %" in said and "\x1b" not in said
    assert "account work is out of quota until " in said
    document = call("status", "--json").json
    (row,), (account,) = document["workers"], document["accounts"]
    assert (row["worker"], row["task"], row["percent"], account["account"]) == (own, "a", 40.0, "work")
    assert "run r1: 1 worker at work" in call("workers").out
    assert call("workers", "--past", "--json").json["workers"] == [row]


def test_the_inbox_shows_context_and_options(at_work: ToyLead, call: Here) -> None:
    """Z06: what a person needs to decide."""
    said = call("inbox").out
    assert all(part in said for part in ("| two", "1) left", "2) right", f"its worker {at_work.worker('a')} is"))
