"""Journals of earlier formats: each replays to the state it had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from checker.invariants import Seen, broken
from ganger.core import events as ev
from ganger.core.events import hosts, notable, removals
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import TaskStatus

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
JOURNALS = sorted(path.name.removesuffix(".jsonl") for path in GOLDEN.glob("journal-*.jsonl"))


def told(name: str) -> Iterator[ev.Recorded]:
    for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield ev.Recorded(row["seq"], row["at"], ev.decode(row["type"], json.dumps(row["data"])))


def state_of(name: str) -> RunState:
    state = RunState()
    for entry in told(name):
        apply(state, entry)
    return state


@pytest.mark.parametrize("name", JOURNALS)
def test_every_journal_ever_kept_replays_to_the_state_it_had(name: str) -> None:
    """T19 T20: old runs can be continued; golden files are added, never rewritten."""
    state = state_of(name)
    assert state.log.refused == []
    assert state_text(state) == (GOLDEN / f"{name}.state.json").read_text(encoding="utf-8")


def test_the_second_journal_keeps_what_the_state_file_does_not_show() -> None:
    """T16 G04 Z06: patches, questions, spending, rules and accounts of a healed run come back too."""
    state = state_of("journal-2")
    assert {name: patch.undone for name, patch in state.healing.patches.items()}["patch-001"] is True
    assert [(q.kind, q.answer) for q in state.inbox.questions.values()] == [
        ("ambiguous_spec", "MIT"),
        ("escalated", None),
    ]
    assert state.healing.rounds[0].learned_rule == "Name modules after their table."
    assert (round(state.money.spent.usd, 2), state.money.spent.attempts, state.money.spent.reserved_usd) == (
        3.4,
        10,
        0.0,
    )
    assert state.quota.limited == {} and state.index.held == {} and state.lead.commands_taken == 6


def test_the_journal_of_an_outage_ends_without_trouble() -> None:
    """D12 D14: two tasks waited, a person had one retried, and the host answered again; each way of telling it."""
    state, rows = state_of("journal-hosts"), list(told("journal-hosts"))
    assert state.hosts == {} and all(q.kind == "host" and q.answer for q in state.inbox.questions.values())
    kinds = {type(row.event): row.event for row in rows if type(row.event).__module__ == hosts.__name__}
    assert len(kinds) == 4 and all(notable.sentence(one) for one in kinds.values() if getattr(one, "tries", 1) == 1)
    assert broken(rows, Seen()) == []


def test_the_journal_of_a_train_has_one_culprit_and_nobody_else_pays() -> None:
    """D02 D06: five changes in shared tips, the red one traced by halves; each is proved by a tip that holds it."""
    state, rows = state_of("journal-trains"), list(told("journal-trains"))
    found = [row.event for row in rows if isinstance(row.event, ev.CulpritFound)]
    assert {one.task for one in found} == {"t2"} and any(isinstance(row.event, ev.HalfJudged) for row in rows)
    assert {name: task.counters.ci_fixes for name, task in state.tasks.items() if task.counters.ci_fixes} == {"t2": 1}
    ledgers = [task.delivery for task in state.tasks.values() if task.delivery is not None]
    assert any(now.own != now.green for now in ledgers) and broken(rows, Seen()) == []


def test_the_journal_of_a_red_base_is_done_by_what_was_red_before() -> None:
    """D01 D05: CI said red of what stood there before and of nothing new; the ledger says so instead of green."""
    state, rows = state_of("journal-waived"), list(told("journal-waived"))
    now = state.tasks["a"].delivery
    assert now is not None and now.waived == now.commit and now.green == "" and "as before" in now.waived_why
    assert state.pushes.bases[""].verdict == "red" and all(
        notable.sentence(row.event) for row in rows if "waiv" in str(row)
    )
    assert broken(rows, Seen()) == []


def test_the_sixth_journal_keeps_every_proof_lock_and_halt() -> None:
    """D01 D11 D18 W08: ledgers, verdicts and locks come back with the events, and the judge finds nothing wrong."""
    state, rows = state_of("journal-6"), list(told("journal-6"))
    ledgers = {name: task.delivery for name, task in state.tasks.items() if task.delivery is not None}
    assert all(now.green == now.pushed == now.commit for name, now in ledgers.items() if name != "leaky")
    assert ledgers["units"].mirrored == ledgers["units"].commit and ledgers["units"].retriggered == ("mirror_skipped",)
    asked = ledgers["page"].request
    assert asked is not None and asked.merged and ledgers["page"].review == "approved"
    assert [(v.task, v.green) for v in state.pushes.verdicts if v.task == "units"] == [
        ("units", False),
        ("units", True),
    ]
    assert not any(state.index.locks.values()) and not state.chains.halted and not state.chains.broken
    assert broken(rows, Seen()) == []


def test_the_journal_of_requests_keeps_how_each_came_into_its_target() -> None:
    """D01 D02 W02: what was tested, what the forge made of it, what CI said of that; the judge finds nothing wrong."""
    state, rows = state_of("journal-requests"), list(told("journal-requests"))
    requests = {name: task.delivery.request for name, task in state.tasks.items() if task.delivery is not None}
    assert all(known is not None and known.merged and known.same for known in requests.values())
    assert {known.settled for known in requests.values() if known is not None} == {True, False}
    assert state.tasks["a"].counters.merge_retries == 1 and broken(rows, Seen()) == []


def test_the_journal_of_a_revert_ends_with_its_proof_and_nobody_paid() -> None:
    """D06 D09: chosen, verified, merged, pushed and green; the task is left out, and its need is not DONE either."""
    state, rows = state_of("journal-reverts"), list(told("journal-reverts"))
    now = state.tasks["a"].delivery
    assert now is not None and now.reverted == now.green == now.commit and now.revert is None and not now.standing
    assert state.tasks["a"].detail.startswith("reverted as ") and not state.tasks["a"].work.merged
    kinds = [type(row.event) for row in rows]
    chosen, launched = kinds.index(ev.RevertChosen), [n for n, kind in enumerate(kinds) if kind is ev.AttemptLaunched]
    assert chosen < kinds.index(ev.Reverted) and max(launched) < chosen
    assert all(notable.sentence(row.event) for row in rows if "revert" in ev.type_name(row.event))
    assert broken(rows, Seen()) == []


def test_the_journal_of_a_revert_that_conflicted_has_it_done_by_the_worker() -> None:
    """D06: Ganger's own did not succeed and paid nothing; the worker's is verified, and the task is not DONE."""
    state, rows = state_of("journal-reverts-by-hand"), list(told("journal-reverts-by-hand"))
    hows = [row.event.how for row in rows if isinstance(row.event, ev.RevertChosen)]
    assert hows == ["ganger", "worker"] and [type(row.event) for row in rows].count(ev.RevertFailed) == 1
    assert state.tasks["a"].detail.startswith("reverted as ") and broken(rows, Seen()) == []


def test_the_journal_of_a_commit_that_was_taken_out_ends_without_it() -> None:
    """D17 T19: one of three in a push was removed and left out; the others are proved by what the branch was at."""
    state, rows = state_of("journal-removed"), list(told("journal-removed"))
    (removed,) = [row.event for row in rows if isinstance(row.event, ev.CommitsRemoved)]
    assert {name for name, task in state.tasks.items() if task.status is not TaskStatus.DONE} == set(removed.tasks)
    kinds = [row.event for row in rows if type(row.event).__module__ == removals.__name__]
    assert len({type(one) for one in kinds}) == 4 and all(notable.sentence(one) for one in kinds)
    assert state.branches.removals == {} and broken(rows, Seen()) == []
