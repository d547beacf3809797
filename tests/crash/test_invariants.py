"""The one judge of all harnesses: content with a good run, and every rule of it can be broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checker.invariants import HEALER, Seen, broken
from ganger.core import events as ev
from ganger.core.vocabulary import RunStatus, TaskStatus
from tests.crash.good_run import BUDGET, GOOD, POLICY, Tale, done, failed, heal, start, verdict, worked, wrote

STARTS = {("a", 1): 1, ("b", 1): 1, ("b", 2): 1, ("c", 1): 1, (HEALER, 1): 1}
ENDED = Seen(exact=True, finished=True, agent_starts=STARTS, changed=("a.txt", "b.txt", "c.txt"))
DONE, FAILED = TaskStatus.DONE, TaskStatus.FAILED
REFUSED = ev.ResultRefused("a", 1, "NO_SENTINEL", "gone")
AGAIN = ev.TaskRequeued("c", "once more")


def handed_to(*workers: str) -> Tale:
    """The good run, done by sessions that asked; in turn, as often as there are attempts."""
    names = [workers[n % len(workers)] for n in range(len(GOOD.events))]
    events = [
        replace(event, worker=names.pop(0)) if isinstance(event, ev.AttemptStarted) else event for event in GOOD.events
    ]
    return Tale(tuple(events))


def rules(tale: Tale, seen: Seen) -> list[str]:
    return [problem.partition(":")[0] for problem in broken(tale.recorded(), seen)]


def test_a_good_run_breaks_no_rule() -> None:
    """T19 H09: finished, with everything the outside can show."""
    assert broken(GOOD.recorded(), replace(ENDED, state_text=GOOD.state_text())) == []


def test_sessions_that_ask_take_no_place_from_agents() -> None:
    """W03 T04: two of them work side by side where one agent may run."""
    tale = handed_to("one", "two").with_lead(policy=replace(POLICY, concurrency=1))
    assert broken(tale.recorded(), replace(ENDED, state_text=tale.state_text())) == []


@pytest.mark.parametrize("length", range(2, len(GOOD.events)))
def test_a_good_run_cut_off_anywhere_breaks_no_rule(length: int) -> None:
    """T19 H09: interrupted, its state file some events old."""
    cut, older = Tale(GOOD.events[:length]), Tale(GOOD.events[: length // 2 + 1])
    assert broken(cut.recorded(), Seen(state_text=older.state_text())) == []


BAD: dict[str, tuple[str, Tale]] = {
    "the first event is missing": ("start", GOOD.without(ev.RunStarted)),
    "an event is told twice": ("replay", GOOD.with_after(ev.WindowOpened, GOOD.events[2])),
    "an attempt without its start": ("start", GOOD.without(ev.AttemptStarted, "c")),
    "a report of an attempt that is over": ("fence", GOOD.at_end(ev.AttemptExited("c", 1, 0, None, False, 1.0))),
    "a second attempt beside the first": ("two live attempts", GOOD.with_after(ev.AttemptLaunched, start("a", 2))),
    "an attempt of a task that is done": ("one end", GOOD.at_end(start("c", 2), *done("c", 2))),
    "a task that ends twice": ("one end", GOOD.at_end(ev.TaskSettled("c", FAILED, ""))),
    "done without verification": ("verified", GOOD.without(ev.VerifyFinished, "a")),
    "done after failed verification": (
        "verified",
        GOOD.without(ev.VerifyFinished, "a").with_after(ev.VerifyStarted, *verdict("a", passed=False)[1:]),
    ),
    "written after verification": ("verified", GOOD.with_after(ev.VerifyFinished, *wrote("a"))),
    "verified before the files landed": ("order", GOOD.without(ev.WritesApplied, "a")),
    "files changed without an intent": ("writes", GOOD.without(ev.WritesIntended, "a")),
    "a rollback of nothing": (
        "writes",
        GOOD.without(ev.WritesIntended, "b").without(ev.WritesApplied, "b"),
    ),
    "an interruption that leaves changes": (
        "writes",
        GOOD.at_end(AGAIN, start("c", 2), *worked("c", 2), *wrote("c", 2), ev.AttemptInterrupted("c", 2, "")),
    ),
    "a result before the agent ended": ("order", GOOD.without(ev.AttemptExited, "a")),
    "an answer accepted, then refused": ("one answer", GOOD.with_after(ev.ResultAccepted, REFUSED)),
    "started before its dependency is done": ("dependencies", GOOD.with_after(ev.AttemptStarted, start("c"))),
    "two tokens alike": (
        "tokens",
        GOOD.at_end(AGAIN, replace(start("c", 2), token="a.1"), *done("c", 2)),
    ),
    "more worker attempts than allowed": (
        "counters",
        GOOD.at_end(*(e for n in (2, 3) for e in (AGAIN, start("c", n), *worked("c", n), failed("c", n)))),
    ),
    "more format retries than allowed": (
        "counters",
        GOOD.at_end(
            *(e for n in (2, 3) for e in (AGAIN, start("c", n), *worked("c", n), failed("c", n, "format_retries")))
        ),
    ),
    "a contract error paid as a worker attempt": (
        "counters",
        GOOD.at_end(AGAIN, start("c", 2), *worked("c", 2), replace(failed("c", 2), failure_class="contract_error")),
    ),
    "more at once than allowed": (
        "concurrency",
        GOOD.with_lead(policy=replace(POLICY, concurrency=1)),
    ),
    "two tasks for one session": ("one task", handed_to("me")),
    "more stalls than allowed": (
        "counters",
        GOOD.at_end(
            *(e for n in range(2, 7) for e in (AGAIN, start("c", n), *worked("c", n), failed("c", n, "stalls")))
        ),
    ),
    "a stall paid as a worker attempt": (
        "counters",
        GOOD.at_end(AGAIN, start("c", 2), *worked("c", 2), replace(failed("c", 2), failure_class="stalled")),
    ),
    "a window closed while its task runs": ("windows", GOOD.without(ev.TaskSettled, "c")),
    "a window opened while another is open": ("windows", GOOD.without(ev.WindowClosed)),
    "an attempt outside the window": ("windows", GOOD.at_end(AGAIN, ev.WindowOpened(4, 1, ("a",)), start("c", 2))),
    "more money set aside than there is": ("budgets", GOOD.with_lead(budget=replace(BUDGET, usd=1.5))),
    "more tokens set aside than there are": ("budgets", GOOD.with_lead(budget=replace(BUDGET, tokens=150))),
    "more money for one task than it has": ("budgets", GOOD.with_lead(budget=replace(BUDGET, task_usd=1.2))),
    "more attempts than were paid for": ("budgets", GOOD.with_lead(budget=replace(BUDGET, attempts=3))),
    "more heal rounds than a window has": (
        "heal rounds",
        GOOD.with_lead(policy=replace(POLICY, max_heal_rounds_per_window=0)).at_end(*heal(2, 1), *heal(3, 2)),
    ),
    "more heal rounds than the run has": ("heal rounds", GOOD.at_end(*(e for n in range(2, 12) for e in heal(n, n)))),
    "healing while the window runs": ("heal rounds", GOOD.with_after(ev.AttemptLaunched, *heal(1, 1))),
    "a patch outside its round": ("heal rounds", GOOD.at_end(*heal(2, 3)[2:3])),
    "an answer to no question": ("questions", GOOD.at_end(ev.QuestionAnswered("q9", "yes"))),
    "a question asked twice": ("questions", GOOD.at_end(ev.QuestionAsked("q1", "c", "review", "?"))),
    "two leads with one fence": ("lead", GOOD.at_end(ev.LeadStarted(2, policy=POLICY, fence=1))),
    "completed with a task open": ("end", GOOD.without(ev.TaskSettled, "c")),
    "aborted without a reason": ("end", Tale((*GOOD.events[:-1], ev.RunFinished(RunStatus.ABORTED, None, {})))),
    "something after the end": ("end", Tale((*GOOD.events, start("c", 2)))),
}


@pytest.mark.parametrize(("rule", "tale"), BAD.values(), ids=BAD)
def test_a_planted_violation_is_named_by_its_rule(rule: str, tale: Tale) -> None:
    """T03 T04 T05 T12 T13 T17 T18 T19 Z02 W03 G04: every rule of the judge can fail."""
    assert rule in rules(tale, Seen())


SEEN: dict[str, tuple[str, Seen]] = {
    "an agent started twice": ("agent starts", replace(ENDED, agent_starts={("a", 1): 2})),
    "an agent started without a record": ("agent starts", replace(ENDED, agent_starts={("a", 2): 1})),
    "a healer started without a record": ("agent starts", replace(ENDED, agent_starts={(HEALER, 2): 1})),
    "an agent left behind": ("left behind", replace(ENDED, live=(("c", 1),))),
    "two agents of one task": ("two live attempts", replace(ENDED, live=(("b", 1), ("b", 2)))),
    "an agent nobody started": ("start", replace(ENDED, live=(("c", 9),))),
    "a file changed outside every intent": ("writes", replace(ENDED, changed=("other.txt",))),
    "an event shown and lost": ("acknowledged", replace(ENDED, shown=((99, "task_settled"),))),
    "an event shown and replaced": ("acknowledged", replace(ENDED, shown=((1, "task_settled"),))),
    "a state file cut off": ("state file", replace(ENDED, state_text=GOOD.state_text()[:100])),
    "a state file against its schema": ("state file", replace(ENDED, state_text='{"state_version": "2.0"}')),
    "a state file of no moment": (
        "state file",
        replace(ENDED, exact=False, state_text=GOOD.state_text().replace("digest", "other")),
    ),
    "a state file that is behind at the end": (
        "state file",
        replace(ENDED, state_text=Tale(GOOD.events[:20]).state_text()),
    ),
    "no state file at the end": ("state file", ENDED),
}


@pytest.mark.parametrize(("rule", "seen"), SEEN.values(), ids=SEEN)
def test_what_the_outside_shows_is_held_against_the_events(rule: str, seen: Seen) -> None:
    """T18 T19 G01 H08: processes, files, acknowledgements and the state file cannot lie."""
    assert rule in rules(GOOD, seen)


def test_a_lead_that_left_without_a_last_word_is_noticed() -> None:
    """T23: how the run stands is recorded before the lead goes."""
    assert "end" in rules(Tale(GOOD.events[:-1]), replace(ENDED, exact=False))
