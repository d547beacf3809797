"""What each command does to a task of each status: the events fit the run, and the sentence says what came of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import pytest

from ganger.core import events as ev
from ganger.core.control.commands import KINDS, SETTINGS, act, is_skipped, was_refused
from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.planning.dependents import behind_failed
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, HealSchedule, RunStatus, TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
B, F, E = TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.ESCALATED
NOW = 1_000_000.0
AT = "2026-01-01T00:00:00.000000Z"
OFF = Policy(heal_schedule=HealSchedule.OFF)


@dataclass(frozen=True)
class Asked:
    number: int
    kind: str
    data: Mapping[str, object] = field(default_factory=dict)


class Run:
    """Tasks a, b (after a), c (after b) and x, d (after a and x), changed by recorded events only."""

    def __init__(self) -> None:
        needs = {"a": (), "x": (), "b": ("a",), "c": ("b",), "d": ("a", "x")}
        specs = tuple(TaskSpec(name, need) for name, need in needs.items())
        self.state = RunState()
        self.seq = 0
        self.record(ev.RunStarted("r", "digest", OFF, specs), ev.LeadStarted(1, policy=OFF))

    def record(self, *events: ev.Event) -> None:
        for event in events:
            self.seq += 1
            apply(self.state, ev.Recorded(self.seq, AT, event))
        assert self.state.log.refused == []

    def put(self, name: str, status: TaskStatus, reason: BlockReason | None = None) -> None:
        """Brings a pending task to a status as an attempt would."""
        if status is P:
            return
        number = self.state.tasks[name].attempts + 1
        self.record(ev.AttemptStarted(name, number, f"{name}.{number}", "agent", "", "log"))
        if status is D:
            self.record(ev.VerifyFinished(name, number, True, "log", 0.0, ()))
        if status is not R:
            self.record(ev.TaskSettled(name, status, "so it ended", reason))

    def block_behind(self, *names: str) -> None:
        for name in names:
            self.record(ev.TaskSettled(name, B, "waits", BlockReason.DEPENDENCY_FAILED))

    def ask(self, question: str, task: str = "", kind: str = "crash") -> None:
        self.record(ev.QuestionAsked(question, task, kind, "what now?"))

    def do(self, kind: str, **data: object) -> str:
        """Takes a command as the lead does; its outcome."""
        events = act(self.state, Asked(self.state.lead.commands_taken + 1, kind, data), NOW)
        self.record(*events)
        last = events[-1]
        assert isinstance(last, ev.CommandTaken) and (last.number, last.kind) == (self.state.lead.commands_taken, kind)
        return last.outcome

    def statuses(self, names: str) -> list[TaskStatus]:
        return [self.state.tasks[name].status for name in names]


def run_with(status: TaskStatus) -> Run:
    run = Run()
    run.put("a", status, BlockReason.EXTERNAL if status is B else None)
    if status in (B, F, E):
        run.block_behind("b", "c", "d")
    return run


ON_WORKERS = ("extend", "end", "reassign")
TABLE = [
    ("retry", P, P, "refused: a is PENDING and starts by itself"),
    ("retry", R, R, "refused: a is RUNNING (attempt 1); wait for its end, or ganger retry a --force stops it"),
    ("retry", D, D, "refused: a is DONE; ganger retry a --force runs it again"),
    ("retry", B, P, "a runs again; 3 tasks blocked behind it may run too"),
    ("retry", F, P, "a runs again; 3 tasks"),
    ("retry", E, P, "a runs again; 3 tasks"),
    ("skip", P, B, "a is left out, and so are 3 tasks that need it; ganger retry a includes it again"),
    ("skip", R, R, "the attempt on a is stopped and a is left out; ganger retry a includes it again"),
    ("skip", D, D, "refused: a is DONE"),
    ("skip", B, B, "a is left out; ganger retry a includes it again"),
    ("skip", F, B, "a is left out;"),
    ("skip", E, B, "a is left out;"),
    ("answer", P, P, "q-1 is answered; a runs again with your answer"),
    ("answer", R, R, "q-1 is answered; a is RUNNING: its worker and every later attempt get the answer"),
    ("answer", D, D, "q-1 is answered; a is already DONE"),
    ("answer", B, P, "q-1 is answered; a runs again with your answer; 3 tasks"),
    ("answer", F, P, "q-1 is answered; a runs again with your answer; 3 tasks"),
    ("answer", E, P, "q-1 is answered; a runs again with your answer; 3 tasks"),
    ("extend", R, R, "the worker of a may continue for 600 s from now"),
    ("end", R, R, "the worker of a is stopped; a is BLOCKED (paused) until ganger retry a"),
    ("reassign", R, R, "the worker of a is stopped and another one starts over; no attempt is used up"),
    *[
        (kind, s, s, f"refused: a is {s.value}: no worker is running")
        for kind in ON_WORKERS
        for s in TaskStatus
        if s is not R
    ],
    *[("pause", s, s, "paused: nothing new starts") for s in TaskStatus],
    *[("resume", s, s, "the run is not paused; nothing to do") for s in TaskStatus],
    *[("stop", s, s, "stopping: ") for s in TaskStatus],
    *[("set", s, s, "policy.concurrency is 8 now (was 1)") for s in TaskStatus],
    *[("undo_patch", s, s, "refused: there is no patch p-1") for s in TaskStatus],
    *[("unlock", s, s, "refused: this run has no repositories") for s in TaskStatus],
    *[
        (kind, s, s, f"refused: a is {s.value} and no change of it awaits a review: none was requested")
        for kind in ("approve", "rework")
        for s in TaskStatus
    ],
]
DATA: dict[str, dict[str, object]] = {
    "retry": {"task": "a"},
    "skip": {"task": "a"},
    "answer": {"question": "q-1", "text": "use the v2 endpoint"},
    "extend": {"task": "a", "sec": "600"},
    "end": {"task": "a"},
    "reassign": {"task": "a"},
    "set": {"key": "concurrency", "value": "8"},
    "undo_patch": {"patch": "p-1"},
    "approve": {"task": "a"},
    "rework": {"task": "a", "text": "the port must stay 8080"},
    "unlock": {"repo": "core", "why": "it was reverted"},
}


def test_the_table_has_every_kind_and_every_status() -> None:
    """G12: nothing is left out."""
    assert {(kind, status) for kind, status, _, _ in TABLE} == {(kind, s) for kind in KINDS for s in TaskStatus}


@pytest.mark.parametrize(("kind", "status", "after", "said"), TABLE, ids=lambda value: str(value).partition(":")[0])
def test_every_command_on_every_status(kind: str, status: TaskStatus, after: TaskStatus, said: str) -> None:
    """G12 Z06: no event of it is refused by the state, and a refused command changes no task."""
    run = run_with(status)
    run.ask("q-1", "a")
    before = dict(run.state.tasks)
    outcome = run.do(kind, **DATA.get(kind, {}))
    assert outcome.startswith(said) and run.state.tasks["a"].status is after
    assert not was_refused(outcome) or before == run.state.tasks


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_is_taken_once(kind: str) -> None:
    """G12: the same number again, after a crash of the lead, is nothing."""
    run = run_with(F)
    run.ask("q-1", "a")
    run.do(kind, **DATA.get(kind, {}))
    assert act(run.state, Asked(run.state.lead.commands_taken, kind, DATA.get(kind, {})), NOW) == []


def test_a_run_that_has_ended_takes_nothing() -> None:
    """G12: what comes between its last event and its exit is left for the next lead."""
    run = run_with(F)
    run.record(ev.RunFinished(RunStatus.ABORTED, "a FAILED", {}))
    assert act(run.state, Asked(1, "retry", {"task": "a"}), NOW) == []
    run.record(ev.LeadStarted(2, policy=OFF))
    assert run.do("retry", task="a").startswith("a runs again")


def test_a_command_nobody_knows_is_refused_and_counted() -> None:
    """G12: a newer version's command does not stop the ones behind it."""
    run = Run()
    assert run.do("dance").startswith("refused: there is no command 'dance'; known are pause, resume")
    assert run.state.lead.commands_taken == 1 and not was_refused(run.do("pause"))


def test_a_retry_grants_one_attempt_and_its_hint_is_kept() -> None:
    """G12 H04: the hint reaches the next prompt; crashes are counted anew."""
    run = run_with(R)
    run.record(ev.AttemptFailed("a", 1, "crash", "crash:x", "it died", "respawns"), ev.TaskSettled("a", F, "it died"))
    run.ask("q-1", "a")
    assert run.do("retry", task="a", hint=" look in src/ \n") == "a runs again with your hint"
    task = run.state.tasks["a"]
    assert (task.counters.granted_by_person, task.next_start.hints, task.counters.respawns) == (1, ("look in src/",), 0)
    assert run.state.inbox.questions["q-1"].answer == "look in src/"


def test_a_hint_for_a_pending_task_costs_nothing() -> None:
    """G12: kept for the attempt to come, no attempt is granted."""
    run = Run()
    assert run.do("retry", task="a", hint="look in src/") == "a runs with your hint"
    assert (run.state.tasks["a"].counters.granted_by_person, run.state.tasks["a"].next_start.hints) == (
        0,
        ("look in src/",),
    )


def test_what_waits_for_another_failure_stays_blocked() -> None:
    """G12: d needs x too; b and c come back in plan order."""
    run = Run()
    run.put("a", F)
    run.put("x", E)
    run.block_behind("b", "c", "d")
    assert run.do("retry", task="a").endswith("; 2 tasks blocked behind it may run too")
    assert run.statuses("abcd") == [P, P, P, B]
    assert run.do("retry", task="x").endswith("; 1 task blocked behind it may run too")
    assert run.statuses("abcdx") == [P] * 5


def test_a_task_behind_a_failed_one_is_not_retried_alone() -> None:
    """G12: the sentence names the one to retry."""
    assert run_with(F).do("retry", task="c") == "refused: c needs b, which is BLOCKED: retry b, and c follows"


def test_an_answer_for_a_task_behind_a_failed_one_is_kept() -> None:
    """Z06: it waits, and the answer is in the prompt when it runs."""
    run = run_with(F)
    run.ask("q-1", "b")
    assert (
        run.do("answer", question="q-1", text="yes") == "q-1 is answered; kept for b: it waits for a, which is FAILED"
    )
    assert run.state.tasks["b"].next_start.hints == ("yes",)
    run.do("retry", task="a")
    assert run.statuses("abc") == [P, P, P]


def test_done_work_is_repeated_only_by_force() -> None:
    """G12: T20 keeps DONE as it is."""
    run = run_with(D)
    assert run.do("retry", task="a", force=True) == "a runs again" and run.statuses("a") == [P]


def test_a_skipped_task_is_known_as_such_and_can_be_taken_in_again() -> None:
    """G12: skip, again, and back."""
    run = Run()
    run.do("skip", task="a")
    assert is_skipped(run.state, "a") and run.statuses("abcd") == [B, B, B, B]
    assert run.do("skip", task="a") == "a is already left out; ganger retry a includes it again"
    run.do("retry", task="a")
    assert run.statuses("abcd") == [P] * 4 and not is_skipped(run.state, "a")


def test_a_question_is_found_by_its_task_where_there_is_only_one() -> None:
    """Z06: otherwise the ids are named."""
    run = run_with(E)
    run.ask("q-1", "a")
    run.ask("q-2", "a")
    assert run.do("answer", question="a", text="x").startswith("refused: a has 2 open questions: q-1, q-2")
    assert not was_refused(run.do("answer", question="q-2", text="x"))
    assert [q.answer for q in run.state.inbox.questions.values()] == ["x", "x"]
    assert (
        run.do("answer", question="q-1", text="y")
        == "refused: q-1 is already answered; ganger inbox shows what is open"
    )
    assert run.do("answer", question="a", text="y").startswith("refused: there is no open question a")
    assert run.do("answer", question="q-9", text=" ").startswith("refused: there is no open question q-9")


def test_an_answer_reaches_the_worker_that_asked_and_every_later_attempt() -> None:
    """Z06: as a message now, as a hint in later prompts; the other question stays open."""
    run = run_with(R)
    run.record(ev.QuestionAsked("q-1", "a", "ambiguous_spec", "Which port?", attempt=1, report="r1"))
    run.do("answer", question="q-1", text="8080")
    run.record(ev.QuestionAsked("q-2", "a", "ambiguous_spec", "Which host?", attempt=1, report="r2"))
    run.do("answer", question="a", text="localhost")
    task = run.state.tasks["a"]
    assert task.worker is not None and [m.text for m in task.worker.messages] == ["8080", "q-2: localhost"]
    assert task.next_start.hints == ("8080", "q-2: localhost") and task.status is R


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2", "9090"),
        ("9090", "9090"),
        ("7070", "7070"),
        ("none of them", "none of them"),
        ("3 of them", "3 of them"),
        ("0", "refused: q-1 has options 1 to 3, not 0; any other answer must be text"),
        ("9" * 5000, "refused: q-1 has options 1 to 3, not 99999999999999999999;"),
    ],
)
def test_an_option_is_chosen_by_its_number(text: str, meant: str) -> None:
    """Z06: an option that is a number itself comes first."""
    run = run_with(E)
    run.record(ev.QuestionAsked("q-1", "a", "ambiguous_spec", "Which?", options=("8080", "9090", "7070")))
    outcome = run.do("answer", question="q-1", text=text)
    assert outcome.startswith(meant) if was_refused(outcome) else run.state.inbox.questions["q-1"].answer == meant


def test_ending_a_worker_is_an_intent_that_holds() -> None:
    """G12 H08: what was decided first counts; the tree is ended by the lead."""
    run = run_with(R)
    run.do("end", task="a")
    worker = run.state.tasks["a"].worker
    assert worker is not None and (worker.verdict, worker.why) == ("ended", "ended by a person")
    assert run.do("reassign", task="a", hint="x") == "the worker of a is already being stopped: ended by a person"
    assert run.do("extend", task="a", sec=5).startswith("refused: the worker of a is already being stopped")


def test_the_hint_of_a_reassignment_reaches_the_next_worker() -> None:
    """G12: the one that is ended need not hear it."""
    run = run_with(R)
    assert "with your hint" in run.do("reassign", task="a", hint="start with the tests")
    task = run.state.tasks["a"]
    assert (
        task.next_start.hints == ("start with the tests",)
        and task.worker is not None
        and task.worker.verdict == "reassigned"
    )


def test_more_time_is_recorded_with_its_end() -> None:
    """D14 G12: counted, and until when."""
    run = run_with(R)
    events = act(run.state, Asked(1, "extend", {"task": "a", "sec": 90}), NOW)
    assert events[0] == ev.LimitExtended("a", 1, "person", NOW + 90, "extended by a person")
    run.do("extend", task="a", sec=90)
    worker = run.state.tasks["a"].worker
    assert worker is not None and worker.extended == 1


@pytest.mark.parametrize("sec", [0, -5, "soon", None, True, float("inf"), 8 * 86_400])
def test_more_time_must_be_a_sensible_number_of_seconds(sec: object) -> None:
    """G12: whatever wrote it."""
    assert run_with(R).do("extend", task="a", sec=sec).startswith("refused: it needs more than 0 and at most 604800 s")


@pytest.mark.parametrize("kind", ["extend", "reassign"])
def test_a_worker_that_is_through_cannot_be_steered(kind: str) -> None:
    """G12: its change is being judged; there is nobody to tell."""
    run = run_with(R)
    run.record(ev.AttemptExited("a", 1, 0, None, False, 1.0))
    assert run.do(kind, task="a", sec=5).startswith(
        f"refused: the worker of a has finished, there is nothing to {kind}"
    )


@pytest.mark.parametrize(("kind", "verdict"), [("end", "ended"), ("skip", "skipped"), ("retry", "reassigned")])
@pytest.mark.parametrize("step", ["agent", "parse"])
def test_there_is_a_way_out_of_running_from_every_step(kind: str, verdict: str, step: str) -> None:
    """G12: whatever its worker is at, or was."""
    run = run_with(R)
    if step == "parse":
        run.record(ev.AttemptExited("a", 1, 0, None, False, 1.0))
    assert not was_refused(run.do(kind, task="a", force=True))
    worker = run.state.tasks["a"].worker
    assert worker is not None and worker.verdict == verdict


def test_a_question_of_the_run_is_closed_by_its_answer_or_by_more_budget() -> None:
    """Z06 G04: without a task there is nothing to run again."""
    run = Run()
    run.ask("q-1", kind="budget")
    run.ask("q-2", kind="budget")
    assert run.do("answer", question="q-1", text="leave it") == "q-1 is answered"
    run.do("set", key="budget.usd", value=20)
    assert run.state.inbox.questions["q-2"].answer == "budget.usd is 20 now (was without a limit)"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "it names no task"),
        ({"task": "ghost"}, "there is no task ghost; ganger tasks lists them"),
        ({"task": 7}, "it names no task"),
        ({"task": "a", "hint": 7}, "the hint is not text"),
        ({"task": "a", "hint": "x" * 20_001}, "the hint has 20001 characters"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_in_words(data: dict[str, object], said: str) -> None:
    """G12: whatever wrote it."""
    assert run_with(F).do("retry", **data).startswith(f"refused: {said}")


def test_pause_and_resume() -> None:
    """G12: twice is no mistake."""
    run = run_with(R)
    assert run.do("pause") == "paused: nothing new starts; 1 running attempt finishes first; ganger resume continues"
    assert run.state.lead.paused and run.do("pause") == "the run is already paused; ganger resume continues"
    assert run.do("resume") == "resumed: the run continues" and not run.state.lead.paused


def test_stop_and_drain() -> None:
    """T23: a drain can be hastened by a stop; a pause then makes no sense."""
    run = run_with(R)
    assert run.do("stop", drain=True).startswith("draining: nothing new starts and the run ends; 1 running attempt")
    assert run.state.lead.draining and run.do("stop", drain=True).startswith("the run is already draining")
    assert run.do("pause").startswith("refused: the run is already ending")
    assert run.do("stop") == "stopping: 1 running attempt will be stopped; ganger run continues the run"
    assert run.state.lead.stopping and run.do("stop") == "the run is already stopping"


def test_a_stop_for_an_earlier_lead_does_not_end_the_next() -> None:
    """T23: it came when that one had just ended."""
    run = Run()
    run.record(ev.LeadStarted(2, policy=OFF))
    assert run.do("stop", lead=1).startswith("refused: it was meant for lead 1") and not run.state.lead.stopping
    assert run.do("stop", lead=2).startswith("stopping")


def test_the_sentence_says_what_a_retried_task_still_waits_for() -> None:
    """G12 G04: a pause, --only, or an account's quota."""
    run = run_with(F)
    run.do("pause")
    assert run.do("retry", task="a").startswith("a runs again, once the run is resumed;")
    run = run_with(F)
    run.record(ev.AccountPaused("", NOW + 90, "quota"))
    assert run.do("retry", task="a").startswith("a runs again, when its account's quota is back in 90 s;")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("policy.concurrency", 8, "policy.concurrency is 8 now (was 1)"),
        ("concurrency", 1, "policy.concurrency is already 1"),
        ("failure_threshold", "0.5", "policy.failure_threshold is 0.5 now (was 0.2)"),
        ("budget.tokens", "2e6", "budget.tokens is 2000000 now (was without a limit)"),
        ("budget.usd", "none", "budget.usd is already without a limit"),
        ("concurrency", 0, "refused: policy.concurrency must be at least 1 and at most 1024, not 0"),
        ("concurrency", 2.5, "refused: policy.concurrency needs a whole number, not 2.5"),
        ("concurrency", True, "refused: policy.concurrency needs a number, not 'True'"),
        ("concurrency", None, "refused: policy.concurrency needs a number"),
        ("budget.usd", "nan", "refused: budget.usd needs a number or none, not 'nan'"),
        ("budget.usd", -1, "refused: budget.usd must be at least 0, not -1"),
        ("budget.usd", [1], "refused: budget.usd needs a number or none"),
        ("heal_schedule", "off", "refused: the schedule cannot change during a run"),
        ("sandbox.use", "off", "refused: sandbox.use cannot be set during a run; these can: policy.concurrency"),
        ("", 1, "refused: it names no setting"),
    ],
)
def test_settings_are_checked_before_they_change(key: str, value: object, said: str) -> None:
    """G12 G04: concurrency and budget while running."""
    assert Run().do("set", key=key, value=value).startswith(said)


def test_a_number_that_does_nothing_in_this_run_says_so() -> None:
    """G12 G24: there are no windows without a schedule, and nothing is merged in direct mode."""
    run = Run()
    for key, why in (
        ("batch_size", "heal_schedule"),
        ("merge_retries", "direct mode"),
        ("max_total_heal_rounds", "healed"),
    ):
        said = run.do("set", key=key, value=7)
        assert f"policy.{key} is 7 now" in said and ", without effect: " in said and why in said
    assert "without effect" not in run.do("set", key="concurrency", value=3)


def test_every_number_of_policy_and_budget_can_be_set() -> None:
    """G12: a new one must be given its range."""
    own = {f"policy.{f.name}" for f in fields(Policy)} | {f"budget.{f.name}" for f in fields(Budget)}
    assert set(SETTINGS) == own - {"policy.heal_schedule", "policy.exhausted"}


def test_a_patch_is_undone_once() -> None:
    """T14: each patch has an id and an undo."""
    run = run_with(F)
    run.record(
        ev.HealStarted(1, 1, ("a",), ("a",), "healer", "log", "token"),
        ev.PatchApplied("p-1", 1, "prompt", "append", ("a",)),
    )
    assert run.do("undo_patch", patch="p-1").startswith("p-1 is undone;") and run.state.healing.patches["p-1"].undone
    assert run.do("undo_patch", patch="p-1") == "p-1 is already undone"


def some_command(run: Run, chance: random.Random) -> tuple[str, dict[str, object]]:
    kind, task = chance.choice(sorted(set(KINDS) - {"stop"})), chance.choice("abcdx")
    return kind, {
        "task": task,
        "hint": chance.choice(("", "look")),
        "force": chance.random() < 0.5,
        "question": chance.choice((task, *run.state.inbox.questions)),
        "text": "so",
        "key": chance.choice(tuple(SETTINGS)),
        "value": chance.choice((0, 1, 2, 0.5, None)),
        "sec": 60,
    }


def some_work(run: Run, chance: random.Random) -> None:
    """One attempt of a task that may run; one that ended badly may ask, and blocks what needs it."""
    ready = [n for n in "axbcd" if run.state.tasks[n].status is P and not run.state.index.unmet[n]]
    if not ready:
        return
    name, status = chance.choice(ready), chance.choice((D, D, F, E, B, R))
    run.put(name, status, BlockReason.EXTERNAL if status is B else None)
    if status in (F, E, B):
        run.block_behind(*behind_failed(run.state, name))
        run.ask(f"q-{len(run.state.inbox.questions) + 1}", name)


@pytest.mark.parametrize("seed", range(30))
def test_no_row_of_commands_breaks_a_run(seed: int) -> None:
    """G12: every event of every command fits, and a pending task is never stuck behind a bad one."""
    run, chance = Run(), random.Random(seed)
    for _ in range(80):
        some_work(run, chance)
        kind, data = some_command(run, chance)
        run.do(kind, **data)
        for name, spec in run.state.specs.items():
            bad = any(run.state.tasks[need].status in (B, F, E) for need in spec.depends_on)
            assert not (bad and run.state.tasks[name].status is P)
