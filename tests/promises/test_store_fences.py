"""Who may write into a store: one lead, and of each attempt only the current one. On both stores, and planted bugs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.errors import GangerError, LeadLost, RunLockedError, StaleToken
from ganger.ports.store import BlockingStore, Entry, Owner
from ganger.stores.leases import lead_lost, stale
from ganger.stores.sqlite import SqliteStore
from tests.promises.store_kinds import KINDS

AT = "2026-01-02T03:04:05.000000Z"
ME, YOU = Owner(11, 1, "boot", "here"), Owner(22, 2, "boot", "here")
Handles = Callable[[], BlockingStore]


@pytest.fixture(params=KINDS)
def handles(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Handles]:
    """Handles on one store, as several processes would have them."""
    kind, made = KINDS[request.param](), list[BlockingStore]()

    def handle() -> BlockingStore:
        made.append(kind.open(tmp_path))
        return made[-1]

    yield handle
    for store in made:
        store.close()


def take(store: BlockingStore, owner: Owner = ME, now: float = 0.0, *, dead: bool = False) -> int:
    return store.take_lead(owner, now=now, lease_sec=10, holder_is_dead=lambda _: dead)


def stop(why: str = "") -> Entry:
    return Entry(AT, ev.StopRequested(why))


def start(attempt: int = 1, token: str = "t1", task: str = "a") -> Entry:
    return Entry(AT, ev.AttemptStarted(task, attempt, token, "agent", "", "log"), token)


def applied(attempt: int = 1, token: str = "t1", task: str = "a") -> Entry:
    return Entry(AT, ev.WritesApplied(task, attempt), token)


def requeued(task: str = "a", token: str = "") -> Entry:
    return Entry(AT, ev.TaskRequeued(task, ""), token)


def count(store: BlockingStore) -> int:
    return len(list(store.read()))


# --- the lead -------------------------------------------------------------------------------------------------------


def test_a_second_lead_is_told_who_leads_and_what_to_do(handles: Handles) -> None:
    """T20 W03: while the lease lasts."""
    assert take(handles()) == 1
    with pytest.raises(RunLockedError, match="process 11 on here for 9 s") as caught:
        take(handles(), YOU, now=9)
    assert "ganger status" in caught.value.hint


@pytest.mark.parametrize(
    ("owner", "now", "dead"),
    [(YOU, 10.0, False), (YOU, 1.0, True), (Owner(22, 2, "later boot", "here"), 1.0, False)],
    ids=["its lease is over", "it is dead", "the machine was started again"],
)
def test_a_lead_that_ended_is_replaced_and_shut_out(handles: Handles, owner: Owner, now: float, dead: bool) -> None:
    """T20 W03: the next fence is higher, and the old lead can neither write, renew nor keep a snapshot."""
    old, new = handles(), handles()
    take(old)
    old.append([stop()])
    assert take(new, owner, now, dead=dead) == 2
    for late in (lambda: old.append([stop()]), lambda: old.renew(now, 10), lambda: old.save_snapshot(1, "x")):
        with pytest.raises(LeadLost, match="led by process 22 on here"):
            late()
    assert [r.seq for r in new.append([stop()])] == [2] and count(old) == 2


def test_clocks_of_two_machines_are_not_compared(handles: Handles) -> None:
    """W03: a holder on another machine is believed to live, whatever its lease says in its own seconds."""
    take(handles())
    with pytest.raises(RunLockedError):
        take(handles(), Owner(22, 2, "other boot", "there"), now=1e9)
    assert take(handles(), Owner(22, 2, "other boot", "there"), dead=True) == 2


def test_a_renewed_lease_lasts_longer_however_wall_clocks_jump(handles: Handles) -> None:
    """T19 W03: the time in an event plays no part."""
    lead = handles()
    take(lead)
    lead.renew(9, 10)
    lead.append([Entry("1970-01-01T00:00:00Z", ev.StopRequested("")), Entry("2999-01-01T00:00:00Z", ev.RunPaused(""))])
    with pytest.raises(RunLockedError):
        take(handles(), YOU, now=18)
    assert take(handles(), YOU, now=19) == 2


def test_a_lead_given_back_is_free_at_once_and_its_number_is_never_given_again(handles: Handles) -> None:
    """W03: a store object that gave its lead back can write no more."""
    first, second = handles(), handles()
    take(first)
    first.release()
    with pytest.raises(LeadLost, match="no process leads"):
        first.append([stop()])
    with pytest.raises(LeadLost):
        first.renew(1, 10)
    assert take(second, YOU) == 2
    first.release()
    second.append([stop()])
    assert take(first, now=50) == 3


def test_who_never_took_the_lead_writes_only_where_nobody_ever_led(handles: Handles) -> None:
    """T19 W03: imports and tests."""
    bystander, lead = handles(), handles()
    bystander.append([stop()])
    with pytest.raises(LeadLost):
        bystander.renew(0, 10)
    take(lead)
    lead.release()
    with pytest.raises(LeadLost):
        bystander.append([stop()])


def test_a_holder_is_asked_for_also_when_its_time_is_over(handles: Handles) -> None:
    """W03: whoever takes over must know whom to end."""
    asked: list[Owner] = []

    def holder_is_dead(owner: Owner) -> bool:
        asked.append(owner)
        return False

    take(handles())
    handles().take_lead(YOU, now=99, lease_sec=1, holder_is_dead=holder_is_dead)
    assert asked == [ME]


# --- claims ---------------------------------------------------------------------------------------------------------


def test_a_task_is_claimed_once_until_it_is_settled_or_queued_again(handles: Handles) -> None:
    """Z02: and attempts are counted without a gap."""
    store = handles()
    store.append([start()])
    for again in (start(), start(2, "t2")):
        with pytest.raises(StaleToken, match="claimed already by attempt 1"):
            store.append([again])
    store.append([requeued()])
    for wrong in (start(1), start(3)):
        with pytest.raises(StaleToken, match="attempt 2 is the next"):
            store.append([wrong])
    store.append([start(2, "t2"), start(task="b")])
    assert count(store) == 4


@pytest.mark.parametrize(
    "closing",
    [
        requeued(),
        Entry(AT, ev.TaskSettled("a", TaskStatus.DONE, "")),
        Entry(AT, ev.AttemptInterrupted("a", 1, ""), "t1"),
    ],
    ids=["requeued", "settled", "interrupted"],
)
def test_a_report_after_the_end_of_its_attempt_is_refused(handles: Handles, closing: Entry) -> None:
    """W03: with its own token, with none, and also after the task is claimed again."""
    store = handles()
    store.append([start(), applied(), closing])
    for late in (applied(), applied(token=""), Entry(AT, ev.TaskSettled("a", TaskStatus.DONE, ""), "t1")):
        with pytest.raises(StaleToken):
            store.append([late])
    store.append([start(2, "t2")])
    for late in (applied(), applied(2), applied(1, "t2"), applied(2, ""), requeued(token="t1")):
        with pytest.raises(StaleToken, match="current one is attempt 2"):
            store.append([late])
    store.append([applied(2, "t2"), requeued(token="t2")])


def test_the_last_words_of_an_attempt_are_one_batch_in_any_order(handles: Handles) -> None:
    """T19 W03: it settles its task and asks a person; then it is over, and the next attempt may begin in that batch."""
    store = handles()
    settled = Entry(AT, ev.TaskSettled("a", TaskStatus.FAILED, "", final=False), "t1")
    asked = Entry(AT, ev.QuestionAsked("q", "a", "kind", "text"), "t1")
    store.append([start(), settled, asked, requeued(token="t1"), start(2, "t2"), applied(2, "t2")])
    with pytest.raises(StaleToken):
        store.append([asked])
    with pytest.raises(StaleToken):
        store.append([requeued(token="t2"), start(3, "t3"), applied(2, "t2")])


def test_a_batch_with_one_stale_report_leaves_nothing_behind(handles: Handles) -> None:
    """T19 W03: no event and no claim of it."""
    store = handles()
    with pytest.raises(StaleToken):
        store.append([start(), start(task="b"), applied(token="wrong")])
    assert count(store) == 0
    assert [r.seq for r in store.append([start(), applied()])] == [1, 2]


def test_a_report_without_a_token_is_taken_only_where_nothing_was_ever_claimed(handles: Handles) -> None:
    """T19: journals of the past had no claims."""
    store = handles()
    store.append([applied(token="")])
    with pytest.raises(StaleToken, match="never claimed"):
        store.append([applied(token="t1")])


def test_a_stale_report_is_refused_also_when_the_current_lead_passes_it_on(handles: Handles) -> None:
    """W03 Z02: a worker thought dead reports to whoever leads now."""
    first, second = handles(), handles()
    take(first)
    first.append([start()])
    take(second, YOU, now=99)
    second.append([Entry(AT, ev.AttemptInterrupted("a", 1, "gone"), "t1"), start(2, "t2")])
    with pytest.raises(StaleToken):
        second.append([applied()])
    with pytest.raises(LeadLost):
        first.append([applied(2, "t2")])


# --- commands and the snapshot --------------------------------------------------------------------------------------


def test_commands_arrive_in_order_without_a_lead_and_are_read_since_a_number(handles: Handles) -> None:
    """G12: while another process leads."""
    lead, person = handles(), handles()
    take(lead)
    assert lead.commands(0) == []
    assert [person.send(AT, "pause", {}), person.send(AT, "retry", {"task": "ä", "hint": None})] == [1, 2]
    assert lead.send(AT, "stop", {"drain": True}) == 3
    assert [(c.number, c.kind, dict(c.data)) for c in lead.commands(1)] == [
        (2, "retry", {"task": "ä", "hint": None}),
        (3, "stop", {"drain": True}),
    ]
    assert lead.commands(3) == [] and person.commands(2)[0].at == AT


def test_only_the_newest_snapshot_of_recorded_events_is_kept(handles: Handles) -> None:
    """T20: one older than that, or ahead of the events, is not."""
    lead = handles()
    take(lead)
    assert lead.snapshot() is None
    lead.append([stop(), stop()])
    for seq, text in ((1, "one"), (2, "two"), (1, "late"), (3, "ahead"), (2, "again")):
        lead.save_snapshot(seq, text)
    assert handles().snapshot() == (2, "again")


# --- planted bugs ---------------------------------------------------------------------------------------------------


class ChecksTheFenceFirst(SqliteStore):
    """Planted: the fence is looked at in one statement, the event written by another."""

    def append(self, batch: Sequence[Entry]) -> list[ev.Recorded]:
        if self._lease().fence != self._fence:
            raise lead_lost(self._lease())
        self._db.execute("INSERT INTO events SELECT coalesce(max(seq), 0) + 1, 't', 'run_paused', '{}' FROM events")
        return []


class ReadsTheClaimFirst(SqliteStore):
    """Planted: a claim is looked for, and made if there is none."""

    def append(self, batch: Sequence[Entry]) -> list[ev.Recorded]:
        if self._rows("SELECT 1 FROM claims WHERE open"):
            raise stale(batch[0], None)
        self._db.execute("INSERT OR REPLACE INTO claims VALUES ('a', 1, 't', 1)")
        self._db.execute("INSERT INTO events SELECT coalesce(max(seq), 0) + 1, 't', 'run_paused', '{}' FROM events")
        return []


class ForgetsTheFence(SqliteStore):
    """Planted: giving the lead back begins counting anew."""

    def release(self) -> None:
        self._db.execute("DROP TRIGGER fences_only_grow")
        self._db.execute("UPDATE lead SET fence = 0, pid = 0")

    def _require_nothing_forged(self) -> None:
        """Would see the trigger gone, and this is about the fence."""


def broken_interleavings(
    folder: Path,
    kind: type[SqliteStore],
    first: Callable[[BlockingStore], object],
    second: Callable[[BlockingStore], object],
) -> list[int]:
    """The statements of `first` before which `second` can come so that both succeed, on a new store each time."""
    broken: list[int] = []
    for place in range(1, 30):
        one, other = (kind(folder / f"{place}.db", busy_ms=0) for _ in range(2))
        take(one) if first is appends else None
        seen, both = [0], [0]

        def trace(
            *_: Any, seen: list[int] = seen, both: list[int] = both, other: BlockingStore = other, at: int = place
        ) -> bool:
            seen[0] += 1
            if seen[0] == at:
                with contextlib.suppress(GangerError):
                    second(other)
                    both[0] += 1
            return True

        one._db.exec_trace = trace
        with contextlib.suppress(GangerError):
            first(one)
            both[0] += 1
        if both[0] == 2:
            broken.append(place)
        if seen[0] < place:
            return broken
    raise AssertionError("no end of statements")


def appends(store: BlockingStore) -> None:
    store.append([stop("a"), stop("b")])


def takes_over(store: BlockingStore) -> None:
    take(store, YOU, now=99)


def claims(store: BlockingStore) -> None:
    store.append([start()])


def test_no_takeover_fits_between_the_check_of_a_fence_and_the_write(tmp_path: Path) -> None:
    """T19 W03: tried before every statement."""
    assert broken_interleavings(tmp_path, SqliteStore, appends, takes_over) == []


def test_a_fence_checked_in_a_statement_of_its_own_is_caught(tmp_path: Path) -> None:
    """W03: the planted bug."""
    assert broken_interleavings(tmp_path, ChecksTheFenceFirst, appends, takes_over) == [2]


def test_no_claim_fits_into_another(tmp_path: Path) -> None:
    """Z02: tried before every statement."""
    assert broken_interleavings(tmp_path, SqliteStore, claims, claims) == []


def test_a_claim_that_is_read_and_then_written_is_caught(tmp_path: Path) -> None:
    """Z02: the planted bug."""
    assert 2 in broken_interleavings(tmp_path, ReadsTheClaimFirst, claims, claims)


def writes_after_all(one: BlockingStore, other: BlockingStore) -> bool:
    """Whether a lead that lost to another can write once that one has given the lead back and a third has taken it."""
    take(one)
    take(other, YOU, now=99)
    other.release()
    take(other, YOU, now=99)
    try:
        one.append([stop()])
    except LeadLost:
        return False
    return True


def test_a_lost_lead_stays_lost_whoever_gives_it_back(handles: Handles) -> None:
    """W03: fences only grow."""
    assert not writes_after_all(handles(), handles())


def test_a_release_that_forgets_the_fence_is_caught(tmp_path: Path) -> None:
    """W03: the planted bug."""
    assert writes_after_all(*(ForgetsTheFence(tmp_path / "ganger.db") for _ in range(2)))
