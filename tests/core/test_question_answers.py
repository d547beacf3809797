"""Every option of every kind of question acts, an answer goes with its question, a question names its matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.control import reviews
from ganger.core.control.answers import CASCADE, OPTIONS, PACKAGES, PACKAGES_SIGNAL, REFS, REQUEST, given
from ganger.core.control.commands import act
from ganger.core.control.questions import answers_of, chosen
from ganger.core.control.removals import REMOVED
from ganger.core.control.worker_commands import SKIPPED
from ganger.core.delivery.upstream import culprit_of, question as cascade_question
from ganger.core.model.ledger import Delivery, RepoRules, RepoVerdict
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import budget_named
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, HealSchedule, TaskStatus
from ganger.views.run.inbox import inbox

AT = "2026-01-01T00:00:00.000000Z"
NOW = 1_000_000.0
OFF = Policy(heal_schedule=HealSchedule.OFF)
P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
SHA = "0123456789abcdef" * 2 + "01234567"
LIB = RepoRules("lib", (), "exclusive", completion=("verified", "pushed", "ci"), branch="main")
APP = RepoRules("app", ("lib",), "exclusive", completion=("verified", "pushed", "ci"), branch="main")


class Run:
    """lib-1 is done in lib; app-1 in app builds on it."""

    def __init__(self) -> None:
        specs = (TaskSpec("lib-1", repo="lib"), TaskSpec("app-1", repo="app"), TaskSpec("other", repo="app"))
        self.state, self.seq = RunState(), 0
        self.record(ev.RunStarted("r", "digest", OFF, specs), ev.LeadStarted(1, policy=OFF, repos=(LIB, APP)))
        self.state.pushes.verdicts.append(RepoVerdict("lib", SHA, "lib-1", True, AT))

    def record(self, *events: ev.Event) -> None:
        for event in events:
            self.seq += 1
            apply(self.state, ev.Recorded(self.seq, AT, event))
        assert self.state.log.refused == []

    def start(self, name: str) -> None:
        number = self.state.tasks[name].attempts + 1
        self.record(ev.AttemptStarted(name, number, f"{name}.{number}", "agent", "", "log"))

    def put(self, name: str, status: TaskStatus, reason: BlockReason | None = None) -> None:
        self.start(name)
        if status is not R:
            self.record(ev.TaskSettled(name, status, "so it ended", reason))

    def ask(self, kind: str, task: str = "", options: tuple[str, ...] = (), text: str = "what now?") -> None:
        attempt = self.state.tasks[task].attempts if task else 0
        self.record(ev.QuestionAsked("q-1", task, kind, text, attempt, options=options))

    def answer(self, text: str, question: str = "q-1") -> str:
        command = _Command(self.state.lead.commands_taken + 1, {"question": question, "text": text})
        events = act(self.state, command, NOW)
        self.record(*events)
        last = events[-1]
        assert isinstance(last, ev.CommandTaken)
        return last.outcome


class _Command:
    kind = "answer"

    def __init__(self, number: int, data: dict[str, object]) -> None:
        self.number, self.data = number, data


def red_app(run: Run, status: TaskStatus) -> None:
    run.put("app-1", status)
    run.state.pushes.verdicts.append(RepoVerdict("app", "a" * 40, "app-1", False, AT, (("lib", SHA),)))
    asked = cascade_question(run.state, "app", "a" * 40)
    assert asked is not None and len(asked.options) == 3
    run.ask(CASCADE, "app-1", asked.options, asked.text)


def done_lib(run: Run) -> None:
    run.start("lib-1")
    run.record(ev.TaskSettled("lib-1", TaskStatus.FAILED, "stands for what was delivered"))
    run.record(ev.RepoUnlocked("lib", "it is delivered", ("lib-1",)))


def red_and_over(run: Run) -> None:
    done_lib(run)
    red_app(run, TaskStatus.ESCALATED)


def red_and_running(run: Run) -> None:
    done_lib(run)
    red_app(run, R)


def lacking(run: Run) -> None:
    run.start("other")
    signature = f"blocked_external:{PACKAGES_SIGNAL}"
    run.record(
        ev.AttemptFailed("other", 1, "blocked_external", signature, "packages", "none"),
        ev.TaskSettled("other", TaskStatus.BLOCKED, "packages", BlockReason.EXTERNAL),
    )
    run.ask(PACKAGES, options=OPTIONS[PACKAGES])


def moved_refs(run: Run) -> None:
    run.ask(REFS, options=OPTIONS[REFS])


def reviewed(run: Run) -> None:
    run.start("other")
    run.record(
        ev.ReviewAsked("other", 1, "person", SHA),
        ev.TaskSettled("other", TaskStatus.BLOCKED, "review", BlockReason.AWAITING_REVIEW, final=False),
    )
    run.ask(reviews.REVIEW, "other", OPTIONS[reviews.REVIEW])


def closed(run: Run) -> None:
    run.start("other")
    run.record(ev.TaskSettled("other", TaskStatus.BLOCKED, "closed", BlockReason.EXTERNAL, final=False))
    run.ask(REQUEST, "other", OPTIONS[REQUEST])


def removed(run: Run) -> None:
    run.start("other")
    run.record(
        ev.CommitsRemoved("app", SHA, ("other",)),
        ev.TaskSettled("other", TaskStatus.BLOCKED, "removed", BlockReason.EXTERNAL, final=False),
    )
    change = replace(
        run.state.tasks["other"],
        work=replace(run.state.tasks["other"].work, merged=SHA),
        delivery=Delivery(repo="app", commit=SHA, pending=True),
    )
    run.state.tasks["other"] = change
    run.ask(REMOVED, "other", OPTIONS[REMOVED])


def hinted(state: RunState, name: str) -> str:
    return "".join(state.tasks[name].next_start.hints)


# kind of question, how it comes about, which option, and what is different afterwards
EFFECTS: dict[str, tuple[Callable[[Run], None], int, Callable[[RunState], bool]]] = {
    "refs: it was me": (moved_refs, 1, lambda s: not s.lead.paused and s.inbox.questions["q-1"].answer is not None),
    "refs: it was not me": (moved_refs, 2, lambda s: s.lead.paused),
    "packages: they are right again": (lacking, 1, lambda s: s.tasks["other"].status is P),
    "request: once more": (closed, 1, lambda s: s.tasks["other"].status is P),
    "request: leave it out": (closed, 2, lambda s: s.tasks["other"].detail == SKIPPED),
    "removed: leave it out": (
        removed,
        1,
        lambda s: s.tasks["other"].detail == SKIPPED and s.branches.removals["app"].leaves_out,
    ),
    "removed: put it back": (
        removed,
        2,
        lambda s: s.tasks["other"].status is P and not s.branches.removals and s.pushes.tips["app"] == SHA,
    ),
    "review: approve": (reviewed, 1, lambda s: _delivery(s) == "approved" and s.tasks["other"].status is P),
    "cascade: revert": (
        red_and_over,
        1,
        lambda s: (
            "Revert what" in "".join(s.tasks["lib-1"].next_start.hints)
            and s.tasks["lib-1"].status is P
            and not s.index.locks.get("app")
        ),
    ),
    "cascade: fix": (
        red_and_over,
        2,
        lambda s: (
            s.tasks["app-1"].status is P
            and "fix" in "".join(s.tasks["app-1"].next_start.hints)
            and not s.tasks["lib-1"].next_start.hints
        ),
    ),
    "cascade: both": (
        red_and_over,
        3,
        lambda s: all(s.tasks[name].status is P and s.tasks[name].next_start.hints for name in ("lib-1", "app-1")),
    ),
    "cascade while its worker runs: revert": (
        red_and_running,
        1,
        lambda s: (
            s.tasks["lib-1"].status is P and not s.tasks["app-1"].locked and bool(s.tasks["app-1"].next_start.hints)
        ),
    ),
}


def _delivery(state: RunState) -> str:
    found = state.tasks["other"].delivery
    return found.review if found is not None else ""


@pytest.mark.parametrize("case", EFFECTS)
def test_every_option_acts(case: str) -> None:
    """Z06 D13 W08: by its number, as a person types it."""
    arrange, number, acted = EFFECTS[case]
    run = Run()
    arrange(run)
    assert not acted(run.state) or case == "refs: it was me"
    outcome = run.answer(str(number))
    assert acted(run.state), outcome
    assert outcome.startswith(("q-1 is answered", "other is approved")) and run.state.inbox.questions["q-1"].answer


@pytest.mark.parametrize(
    ("arrange", "option", "acted"),
    [
        (moved_refs, "it was not me: pause the run, I look at it", lambda s: s.lead.paused),
        (lacking, "they are as they shall be again", lambda s: s.tasks["other"].status is P),
        (
            closed,
            "bring it there once more",
            lambda s: s.tasks["other"].status is P and not s.tasks["other"].next_start.hints,
        ),
    ],
)
def test_an_option_of_an_earlier_version_still_acts(
    arrange: Callable[[Run], None], option: str, acted: Callable[[RunState], bool]
) -> None:
    """Z06: an open question of an old run keeps the options it was asked with."""
    run = Run()
    arrange(run)
    run.answer(option)
    assert acted(run.state) and run.state.inbox.questions["q-1"].answer == option


def test_no_kind_of_question_offers_options_that_are_not_shown_to_act() -> None:
    """Z06: the options of a kind stand in one table, or come from a cascade, or from whoever asks."""
    sources = Path(__file__).parents[2] / "src" / "ganger"
    asked = [
        line.strip()
        for path in sources.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"\boptions=(?!\(\)|event\.options|question\.options|given\.many|waits\.)", line)
    ]
    known = ("options=OPTIONS[", "options=options", "options=OPTIONS[REVIEW]")
    assert all(any(word in line for word in known) for line in asked), asked
    shown = {case.partition(":")[0].partition(" ")[0] for case in EFFECTS}
    assert shown == {*OPTIONS, CASCADE}


def test_an_upstream_task_that_is_not_in_the_run_is_not_offered() -> None:
    """D13: nobody could act on it."""
    run = Run()
    run.put("app-1", TaskStatus.ESCALATED)
    run.state.pushes.verdicts[:] = [RepoVerdict("lib", SHA, "gone", True, AT)]
    run.state.pushes.verdicts.append(RepoVerdict("app", "a" * 40, "app-1", False, AT, (("lib", SHA),)))
    asked = cascade_question(run.state, "app", "a" * 40)
    assert asked is not None and [option.split()[0] for option in asked.options] == ["fix"]


@pytest.mark.parametrize("task", ["lib-1", "a (b) c", "x (task y)", "weird\nname"])
def test_whom_a_cascade_names_is_read_back_from_its_options(task: str) -> None:
    """D13: whatever its task is called."""
    run = Run()
    run.state.pushes.verdicts[:] = [RepoVerdict("lib", SHA, task, True, AT)]
    run.state.pushes.verdicts.append(RepoVerdict("app", "a" * 40, "app-1", False, AT, (("lib", SHA),)))
    run.state.tasks[task] = run.state.tasks["lib-1"]
    asked = cascade_question(run.state, "app", "a" * 40)
    assert asked is not None
    found = culprit_of(asked.options)
    assert found is not None and (found.repo, found.task, found.commit) == ("lib", task, SHA[:12])


def test_words_of_ones_own_are_told_whatever_the_kind() -> None:
    """Z06: a person is not held to the options."""
    run = Run()
    done_lib(run)
    red_app(run, TaskStatus.ESCALATED)
    run.answer("ask Ada first")
    assert (
        run.state.tasks["app-1"].next_start.hints == ("ask Ada first",)
        and run.state.tasks["lib-1"].next_start.hints == ()
    )


def test_an_answer_goes_with_what_was_asked() -> None:
    """Z06: for whoever works next and never saw the question."""
    run = Run()
    run.put("other", TaskStatus.ESCALATED)
    run.ask("ambiguous_spec", "other", text="Which port?")
    run.answer("8080")
    assert answers_of(run.state, "other") == ("Asked (ambiguous_spec): Which port?\nAnswered: 8080",)


def test_a_worker_that_did_not_ask_is_told_the_question_with_the_answer() -> None:
    """Z06 D06: Ganger asked about CI, and somebody else works by now."""
    run = Run()
    run.put("other", R)
    run.ask("ci", "other", text="CI is red after 3 attempts")
    run.answer("pin the compiler")
    worker = run.state.tasks["other"].worker
    assert worker is not None and "CI is red after 3 attempts" in worker.messages[-1].text
    (told,) = answers_of(run.state, "other")
    assert "CI is red after 3 attempts" in told and "pin the compiler" in told


def asked_twice(run: Run, status: TaskStatus = TaskStatus.ESCALATED) -> None:
    """A worker asked two things and ended."""
    run.put("other", R)
    for name, text in (("q-1", "Which port?"), ("q-2", "Which colour?")):
        run.record(ev.QuestionAsked(name, "other", "ambiguous_spec", text, 1, report=f"escalate-{name}"))
    run.record(ev.TaskSettled("other", status, "it asked"))


def test_one_answer_is_none_to_another_question_of_the_same_worker() -> None:
    """Z06: its task waits for both, and the next worker gets each with what was asked."""
    run = Run()
    asked_twice(run)
    assert "waits for the answer to q-1" in run.answer("red", "q-2")
    assert run.state.tasks["other"].status is TaskStatus.ESCALATED and run.state.inbox.questions["q-1"].answer is None
    assert "other runs again" in run.answer("8080")
    assert [run.state.inbox.questions[name].answer for name in ("q-1", "q-2")] == ["8080", "red"]
    (told,) = answers_of(run.state, "other")
    assert "Which colour?\nAnswered: red" in told and "Which port?\nAnswered: 8080" in told


def test_a_task_that_waits_for_no_answer_runs_again_with_the_first_and_keeps_the_other_question() -> None:
    """Z06: what Ganger asked about it is answered by that, what the worker asked is not."""
    run = Run()
    asked_twice(run, TaskStatus.BLOCKED)
    run.record(ev.QuestionAsked("q-3", "other", "crash", "it crashed twice", 1))
    run.answer("red", "q-2")
    assert run.state.tasks["other"].status is P and run.state.inbox.questions["q-1"].answer is None
    assert run.state.inbox.questions["q-3"].answer == "red"
    run.answer("8080")
    colour, port = answers_of(run.state, "other")
    assert "Which port?" not in colour and "Answered: red" in colour
    assert port == "Asked (ambiguous_spec): Which port?\nAnswered: 8080"


def test_a_hint_that_answers_nothing_stands_alone() -> None:
    """G12: `ganger retry --hint` is no answer."""
    run = Run()
    run.put("other", TaskStatus.FAILED)
    run.record(ev.TaskRequeued("other", "retried", hint="use tabs", by_person=True, granted=1))
    assert answers_of(run.state, "other") == ("use tabs",)


def test_a_fatal_halt_names_unlock_among_its_commands() -> None:
    """D12: nothing else lifts it."""
    run = Run()
    run.put("app-1", TaskStatus.FAILED)
    run.record(ev.ChainHalted("app", "app-1", "a key leaked"))
    run.ask("fatal", "app-1")
    (row,) = inbox(run.state)
    assert row.commands[0] == "ganger unlock app --why TEXT --run r"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("budget.tokens: 900 of 1000 tokens are used; raise it", "budget.tokens"),
        ("a: budget.task_wall_sec: 60 of 60 s are used", "budget.task_wall_sec"),
        ("budget: the limit is in dollars, but the cost of an attempt is unknown", "budget.attempt_usd"),
    ],
)
def test_a_question_of_budget_names_the_limit_that_is_out(text: str, key: str) -> None:
    """G04: in its words and in what to type."""
    run = Run()
    run.ask("budget", text=text)
    (row,) = inbox(run.state)
    assert budget_named(text) == key and f"--set {key}=AMOUNT" in row.commands[0]


def test_the_number_of_an_option_is_that_option() -> None:
    """Z06: `chosen` is what `given` gets."""
    run = Run()
    moved_refs(run)
    question = run.state.inbox.questions["q-1"]
    effect = given(run.state, question, chosen(question, "2"), NOW)
    assert any(isinstance(event, ev.RunPaused) for event in effect.events)
