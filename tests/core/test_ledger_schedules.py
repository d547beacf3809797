"""Random schedules over repositories, held against the judge's own account of locks, halts and proofs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checker.ledger_invariants import LedgerWalk
from ganger.core import events as ev
from ganger.core.planning.repos import Bar, RepoLocks
from tests.core.repo_runs import RepoRun, repo_run

# What a run tells of CI is only its end: no runs and no jobs.
_NOT_TOLD = "verdicts"


class Watched:
    """A run whose accepted events are judged as they come."""

    def __init__(self) -> None:
        self.walk, self.wrong = LedgerWalk(), list[str]()
        self._record = RepoRun.record

    def record(self, made: RepoRun, *events: ev.Event) -> None:
        for event in events:
            refused = len(made.state.log.refused)
            self._record(made, event)
            if len(made.state.log.refused) == refused:
                self.wrong += [f"{rule}: {what}" for rule, what in self.walk.take(event) if rule != _NOT_TOLD]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    judge = Watched()
    monkeypatch.setattr(RepoRun, "record", lambda made, *events: judge.record(made, *events))
    yield judge


def meddled(seed: int) -> RepoRun:
    """Persons unlock, skip and retry, leads end, at any moment."""
    made = repo_run(seed, 25)
    for _ in range(20):
        for _ in range(made.chance.randrange(12)):
            made.step()
        if made.state.finished:
            made.begin()
        made.meddle()
    return made.run()


@pytest.mark.brief(6)
@pytest.mark.parametrize("seed", range(60))
def test_no_schedule_breaks_a_rule_of_locks_and_proofs(seed: int, watched: Watched) -> None:
    """D01 D08 D09 D12: the account kept from the events alone agrees with the state to the last lock."""
    made = meddled(seed)
    assert watched.wrong == [] and watched.walk.at_end(made.state) == []


def test_starts_that_look_at_no_lock_are_caught(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """D08 D17: planted: nothing bars anybody."""

    def bars(_gate: RepoLocks, _task: str) -> list[Bar]:
        return []

    monkeypatch.setattr(RepoLocks, "bars", bars)
    repo_run(3, 25).run()
    assert any(problem.startswith("locks") for problem in watched.wrong)
