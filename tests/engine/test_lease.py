"""Taking the lead of a run: the lock, the lease, and what becomes of a lead that was stopped."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from checker.memory_store import MemoryStore
from ganger.core.events import RunPaused
from ganger.errors import LeadLost, RunLockedError, StoreError
from ganger.local.boot_clock import boot_seconds
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Entry, Owner
from ganger.stores.lead_lock import leader, leading, this_process
from ganger.stores.sqlite import SqliteStore

LEAD = """
import sys
from pathlib import Path
from ganger.local.run_folder import RunFolder
from ganger.stores.lead_lock import leading
from ganger.stores.sqlite import SqliteStore
folder = RunFolder(Path(sys.argv[1]))
store = SqliteStore(folder.path / "ganger.db")
with leading(folder.path, store, lease_sec=float(sys.argv[2])) as fence:
    if sys.argv[3:] == ["in mid-write"]:
        store._db.execute("BEGIN IMMEDIATE")
    print(fence, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def opened(folder: RunFolder) -> SqliteStore:
    return SqliteStore(folder.path / "ganger.db", busy_ms=20)


@contextmanager
def other_lead(folder: RunFolder, lease_sec: float, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that leads until it is told to end, or ended."""
    command = [sys.executable, "-c", LEAD, str(folder.path), str(lease_sec), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "1\n"
        try:
            yield process
        finally:
            process.kill()


def refused(folder: RunFolder) -> str:
    with pytest.raises(RunLockedError) as caught, leading(folder.path, opened(folder)):
        pass
    assert caught.value.hint
    return caught.value.message


def own(folder: RunFolder) -> Owner | None:
    found = leader(folder.path)
    return found.owner if found is not None else None


def later() -> float:
    """When every lease given in these tests is over."""
    return boot_seconds() + 1e6


def test_a_second_lead_in_one_process_is_refused_and_the_first_goes_on(folder: RunFolder) -> None:
    """T20 W03: also after an error inside; nobody ends himself."""
    with pytest.raises(ZeroDivisionError), leading(folder.path, opened(folder)) as fence:
        assert fence == 1 and leader(folder.path) and str(os.getpid()) in refused(folder)
        _ = 1 / 0
    assert leader(folder.path) is None
    with leading(folder.path, opened(folder)) as fence:
        assert fence == 2


def test_a_living_lead_is_named_and_left_alone(folder: RunFolder) -> None:
    """T20 W03: process and machine."""
    with other_lead(folder, 1000) as lead:
        assert f"process {lead.pid} on {os.uname().nodename}" in refused(folder)
        named = leader(folder.path)
        assert named is not None and named.owner is not None and named.owner.pid == lead.pid and lead.poll() is None


def test_a_killed_lead_is_replaced_at_once(folder: RunFolder) -> None:
    """T20 W03: however long its lease would have lasted."""
    with other_lead(folder, 1e6) as lead:
        lead.kill()
        lead.wait()
        with leading(folder.path, opened(folder)) as fence:
            assert fence == 2


@pytest.mark.parametrize("words", [(), ("in mid-write",)], ids=["idle", "in mid-write"])
def test_a_stopped_lead_is_ended_once_its_lease_is_over(folder: RunFolder, words: tuple[str, ...]) -> None:
    """W03: continued, it would go on writing files; before that it is only named."""
    with other_lead(folder, 1000, *words) as lead:
        lead.send_signal(signal.SIGSTOP)
        assert f"process {lead.pid}" in refused(folder)
        with leading(folder.path, opened(folder), now=later) as fence:
            assert fence == 2 and lead.wait() == -signal.SIGKILL and own(folder) == this_process()


def test_a_lead_whose_lock_was_removed_is_known_by_its_lease(folder: RunFolder) -> None:
    """W03: a free lock is no proof while its process lives."""
    with other_lead(folder, 1000) as lead:
        (folder.path / "lead.lock").unlink()
        assert f"process {lead.pid}" in refused(folder)
        with leading(folder.path, opened(folder), now=later) as fence:
            assert fence == 2 and lead.wait() == -signal.SIGKILL


def test_a_lead_that_takes_the_number_of_a_dead_one_is_not_hit(folder: RunFolder) -> None:
    """W03: a process is more than its number."""
    store, me = opened(folder), this_process()
    with subprocess.Popen(["sleep", "1000"]) as innocent:
        dead = Owner(innocent.pid, 1, me.boot_id, me.host)
        store.take_lead(dead, now=boot_seconds(), lease_sec=1e6, holder_is_dead=lambda _: True)
        with leading(folder.path, opened(folder)) as fence:
            assert fence == 2 and innocent.poll() is None
        innocent.kill()


@pytest.mark.parametrize("host", [this_process().host, "elsewhere"])
def test_a_lead_from_before_the_machine_was_started_is_replaced(folder: RunFolder, host: str) -> None:
    """W03: also when the folder was carried to another machine; a store cannot be shared between two."""
    store = opened(folder)
    store.take_lead(Owner(1, 1, "before", host), now=1e9, lease_sec=1e9, holder_is_dead=lambda _: True)
    with leading(folder.path, opened(folder)) as fence:
        assert fence == 2


@pytest.mark.parametrize("said", ["", "12345\n", "nonsense", '[1,2,"b","h",9]'])
def test_a_lock_held_by_somebody_unknown_is_respected(folder: RunFolder, said: str) -> None:
    """T20 W03: an earlier version, one that has just begun, a process of another machine."""
    lock = folder.path / "lead.lock"
    lock.write_text(said)
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "is led by" in refused(folder)


def test_a_lead_that_is_only_beginning_is_never_ended(folder: RunFolder) -> None:
    """W03: it holds the lock, and not yet the lease."""
    with subprocess.Popen(["sleep", "1000"]) as beginner:
        me = this_process()
        ticks = int(Path(f"/proc/{beginner.pid}/stat").read_text().rpartition(")")[2].split()[19])
        lock = folder.path / "lead.lock"
        lock.write_text(f'[{beginner.pid},{ticks},"{me.boot_id}","{me.host}",0]')
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert str(beginner.pid) in refused(folder) and beginner.poll() is None
        beginner.kill()


def test_those_who_only_look_do_not_keep_a_lead_away(folder: RunFolder) -> None:
    """W03: `ganger status` in a loop."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            leader(folder.path)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(50):
            with leading(folder.path, MemoryStore()) as fence:
                assert fence == 1
    finally:
        over.set()
        watcher.join()


def test_a_store_that_cannot_be_given_back_does_not_hide_why_the_run_ended(folder: RunFolder) -> None:
    """T20: and the next lead finds it free, for its process holds no lock."""
    store = opened(folder)
    with pytest.raises(ZeroDivisionError), leading(folder.path, store):
        store.path.rename(store.path.with_name("moved"))
        _ = 1 / 0
    assert leader(folder.path) is None


def test_a_lead_that_lost_its_lease_to_another_can_write_no_more(folder: RunFolder) -> None:
    """W03: what it still has to say is refused by the store."""
    mine, other = MemoryStore(), Owner(2, 2, "boot", "there")
    with leading(folder.path, mine, lease_sec=5, now=lambda: 0.0):
        assert mine.handle().take_lead(other, now=6, lease_sec=5, holder_is_dead=lambda _: True) == 2
        with pytest.raises(LeadLost, match="process 2 on there"):
            mine.append([Entry("t", RunPaused(""))])


class Broken(MemoryStore):
    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        raise StoreError("it cannot be read")


def test_a_store_that_cannot_be_read_is_no_reason_to_end_anybody(folder: RunFolder) -> None:
    """W03: only a lease that is over is."""
    with other_lead(folder, 0.0) as lead:
        with pytest.raises(StoreError), leading(folder.path, Broken()):
            pass
        assert lead.poll() is None


NOBODY = """
import os, sys
from pathlib import Path
from ganger.local.run_folder import RunFolder
from ganger.stores.lead_lock import leading
from ganger.errors import RunLockedError
from ganger.stores.sqlite import SqliteStore
folder = RunFolder(Path(sys.argv[1]))
store = SqliteStore(folder.path / "ganger.db")
os.setuid(65534)
try:
    with leading(folder.path, store):
        print("leads")
except RunLockedError as error:
    print(error.message)
"""


@pytest.mark.needs("root")
def test_a_lead_of_another_user_is_not_replaced() -> None:
    """W03: whoever may not end it must not take its place, even when its lease is over."""
    with TemporaryDirectory() as name, other_lead(folder := RunFolder(Path(name)), 0.0) as lead:
        lead.send_signal(signal.SIGSTOP)
        folder.path.chmod(0o777)
        for file in folder.path.iterdir():
            file.chmod(0o666)
        done = subprocess.run([sys.executable, "-c", NOBODY, str(folder.path)], capture_output=True, text=True)
        assert "belongs to another user" in done.stdout and lead.poll() is None, done.stderr
