"""Several real processes on one store: racing claims, leads stopped and continued, killed senders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from ganger.core import events as ev
from ganger.ports.store import Entry, Owner
from ganger.stores.sqlite import SqliteStore, migrations

pytestmark = pytest.mark.whole

STOPS = int(os.environ.get("GANGER_STOPS", "") or 1000)


@pytest.fixture
def path() -> Iterator[Path]:
    """In memory where that can be had: these tests ask who may write, not what a disk keeps."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder) / "ganger.db"


class Child:
    """A process that is told one word a time, and answers with one."""

    def __init__(self, script: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, word: str) -> str:
        self.tell(word)
        return self.answer()

    def stop(self) -> None:
        """Returns once it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def children(script: str, count: int, *arguments: str) -> Iterator[list[Child]]:
    with ExitStack() as stack:
        made = [Child(script, *arguments) for _ in range(count)]
        for child in made:
            stack.enter_context(child.process)
            stack.callback(child.process.kill)
        yield made


CLAIMANT = """
import os, sys
from pathlib import Path
from ganger.core.events import AttemptStarted
from ganger.errors import StaleToken
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore
for line in sys.stdin:
    store = SqliteStore(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        store.append([Entry("t", AttemptStarted(line.strip(), 1, str(os.getpid()), "agent", "", "log"))])
        print("mine", flush=True)
    except StaleToken:
        print("taken", flush=True)
    store.close()
"""


def test_of_eight_processes_that_claim_a_task_exactly_one_gets_it(path: Path) -> None:
    """Z02: fifty times, all told at once."""
    with children(CLAIMANT, 8, str(path)) as claimants:
        for turn in range(50):
            assert {child.ask(f"task-{turn}") for child in claimants} == {"ready"}
            for child in claimants:
                child.tell("go")
            assert sorted(child.answer() for child in claimants) == ["mine"] + ["taken"] * 7
    assert len(list(SqliteStore(path).read())) == 50


# A lead that reports on its own attempt. Every event says under which fence its writer believed to write.
LEAD = """
import os, sys
from pathlib import Path
from ganger.core import events as ev
from ganger.local.boot_clock import boot_seconds
from ganger.errors import GangerError, RunLockedError
from ganger.ports.store import Entry, Owner
from ganger.stores.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]), busy_ms=50)
fence = attempt = seen = 0
token = before = ""

def exited(attempt, token):
    if sys.argv[2:] == ["planted"]:
        store._fence, token = store._lease().fence, store._rows("SELECT token FROM claims")[0][0]
        store._last, attempt = list(store.read())[-1].seq, store._rows("SELECT attempt FROM claims")[0][0]
    store.append([Entry("t", ev.AttemptExited("a", attempt, 0, None, False, 0.0, str(fence)), token)])

def take():
    global fence, attempt, token, before, seen
    while True:
        try:
            me, now = Owner(os.getpid()), boot_seconds()
            fence = store.take_lead(me, now=now, lease_sec=0.002, holder_is_dead=lambda _: False)
            break
        except RunLockedError:
            pass
    for recorded in store.read(seen):
        seen = recorded.seq
        if isinstance(recorded.event, ev.AttemptStarted):
            attempt, before = recorded.event.attempt, recorded.event.token
    ended = [Entry("t", ev.AttemptInterrupted("a", attempt, str(fence)), before)] if attempt else []
    attempt, token = attempt + 1, f"{os.getpid()}.{fence}"
    begun = ev.AttemptStarted("a", attempt, token, "agent", str(fence), "log")
    store.append([Entry("t", ev.RunPaused(str(fence))), *ended, Entry("t", begun)])

WORDS = {
    "take": take,
    "renew": lambda: store.renew(boot_seconds(), 0.002),
    "report": lambda: exited(attempt, token),
    "late": lambda: exited(attempt - 1, before),
    "late as new": lambda: exited(attempt, before),
}
for line in sys.stdin:
    try:
        WORDS[line.strip()]()
        answer = "done"
    except GangerError as error:
        answer = type(error).__name__
    print(answer, flush=True)
"""


def stop_and_take_over(lead: Child, other: Child, *, in_mid_write: bool) -> None:
    """Stops the lead past its lease, lets the other take over, and continues it: what it sends must be refused."""
    assert lead.ask("renew") == "done"
    if in_mid_write:
        lead.tell("report")
    lead.stop()
    if not in_mid_write:
        lead.tell("report")
    taken = other.ask("take")
    late = [other.ask(word) for word in ("late", "late as new")] if taken == "done" else []
    lead.go_on()
    reported = lead.answer()
    if taken != "done":
        # It was stopped with the store in its hand, and wrote before anybody could take over.
        assert (in_mid_write, taken, reported) == (True, "StoreError", "done")
        assert other.ask("take") == "done"
    else:
        assert late == ["StaleToken", "StaleToken"]
        assert reported == "LeadLost" or in_mid_write


def written_under(event: ev.Event) -> int:
    match event:
        case ev.RunPaused(why) | ev.AttemptStarted(why=why) | ev.AttemptInterrupted(why=why):
            return int(why)
        case ev.AttemptExited(error=error):
            return int(error)
    raise AssertionError(event)


def test_two_leads_stopped_past_their_lease_get_no_stale_report_accepted(path: Path) -> None:
    """W03 Z02: a thousand times, real signals and real time; every accepted event bears the newest fence."""
    with children(LEAD, 2, str(path)) as (one, other):
        assert one.ask("take") == "done"
        for turn in range(STOPS):
            stop_and_take_over(one, other, in_mid_write=turn % 10 == 9)
            one, other = other, one
    events = [recorded.event for recorded in SqliteStore(path).read()]
    newest = 0
    for event in events:
        newest += isinstance(event, ev.RunPaused)
        assert written_under(event) == newest
    assert newest == STOPS + 1


def test_a_lead_that_writes_under_whatever_fence_there_is_would_be_caught(path: Path) -> None:
    """W03: the planted bug; one stop is enough."""
    with children(LEAD, 2, str(path), "planted") as (one, other):
        assert one.ask("take") == "done"
        with pytest.raises(AssertionError):
            stop_and_take_over(one, other, in_mid_write=False)


SENDER = """
import sys
from pathlib import Path
from ganger.stores.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
while True:
    print(store.send("t", "retry", {"hint": "x" * 500}), flush=True)
"""


@pytest.mark.parametrize("told", [1, 25])
def test_a_killed_sender_has_lost_nothing_it_acknowledged_and_does_not_disturb_the_lead(path: Path, told: int) -> None:
    """G12 T19: SIGKILL while it sends and the lead writes."""
    lead = SqliteStore(path)
    lead.take_lead(Owner(1), now=0, lease_sec=10, holder_is_dead=lambda _: False)
    with children(SENDER, 1, str(path)) as (sender,):
        numbers = []
        for _ in range(told):
            numbers.append(int(sender.answer()))
            lead.append([Entry("t", ev.RunPaused(""))])
        sender.process.kill()
        numbers += [int(line) for line in sender.process.stdout or ()]
    kept = [command.number for command in lead.commands(0)]
    assert kept == list(range(1, len(kept) + 1)) and len(kept) >= numbers[-1]
    assert lead.append([Entry("t", ev.RunPaused(""))])[0].seq == told + 1


OPENER = """
import sys
from pathlib import Path
from ganger.stores.sqlite import SqliteStore
for line in sys.stdin:
    SqliteStore(Path(sys.argv[1]) / line.strip()).close()
    print("open", flush=True)
"""


def test_processes_that_open_a_new_store_at_once_find_it_whole(path: Path) -> None:
    """T19: the schema is made once."""
    with children(OPENER, 4, str(path.parent)) as openers:
        for turn in range(20):
            for child in openers:
                child.tell(f"{turn}.db")
            assert [child.answer() for child in openers] == ["open"] * 4


# --- stores of the first format -------------------------------------------------------------------------------------


def first_format(path: Path, events: list[tuple[str, str]]) -> None:
    db = apsw.Connection(str(path))
    db.execute(f"{migrations()[0][1]}; PRAGMA user_version=1")
    db.executemany("INSERT INTO events (at, type, data) VALUES ('t', ?, ?)", events)
    db.close()


def begun(task: str, attempt: int) -> tuple[str, str]:
    return "attempt_started", ev.encode(ev.AttemptStarted(task, attempt, f"{task}{attempt}", "agent", "", "log"))


OLD = [
    begun("done", 1),
    ("task_settled", '{"task":"done","status":"DONE","detail":""}'),
    begun("running", 1),
    ("task_requeued", '{"task":"running","why":""}'),
    begun("running", 2),
]


def test_a_store_of_the_first_format_can_be_read_without_being_changed(tmp_path: Path) -> None:
    """T19 T20: by screens."""
    first_format(tmp_path / "ganger.db", OLD)
    before = (tmp_path / "ganger.db").read_bytes()
    store = SqliteStore(tmp_path / "ganger.db", read_only=True)
    assert len(list(store.read())) == 5 and store.snapshot() is None and store.commands(0) == []
    store.close()
    assert (tmp_path / "ganger.db").read_bytes() == before


def test_a_run_of_the_first_format_is_continued_with_its_claims(tmp_path: Path) -> None:
    """T20 Z02: attempts that were open can be reported on, the others start with the next number."""
    first_format(tmp_path / "ganger.db", OLD)
    store = SqliteStore(tmp_path / "ganger.db")
    assert store.take_lead(Owner(1), now=0, lease_sec=10, holder_is_dead=lambda _: False) == 1
    claims = store._db.execute("SELECT task, attempt, token, open FROM claims ORDER BY task").fetchall()
    assert claims == [("done", 1, "done1", 0), ("running", 2, "running2", 1)]
    recorded = store.append([Entry("t", ev.AttemptInterrupted("running", 2, ""), "running2")])
    assert recorded[0].seq == 6
