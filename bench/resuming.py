"""What continuing a large run costs, beside checking its manifest; and that an event costs the same in a large run."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench.figures import Figure
from bench.processes import GANGER, BenchError, clean_environment, ganger, scratch
from bench.project import Fleet, build
from bench.sizes import Sizes
from ganger.app.checks.project import check_project
from ganger.app.compose import RunOptions, SystemClock, open_lead
from ganger.config import load_project
from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec, VerifyStep
from ganger.core.model.run_state import RunState
from ganger.core.names import verify_log, worker_log
from ganger.core.scheduling.windows import Start, decide
from ganger.core.state.snapshot import decode_state, encode_state
from ganger.core.vocabulary import HealSchedule, TaskStatus
from ganger.engine.journal import Journal
from ganger.engine.lead import Lead
from ganger.errors import EXIT_INTERRUPTED
from ganger.launchers.ledger import Ledger
from ganger.launchers.paths import House, is_held
from ganger.local.procfs import mark_of, pids, stat_fields
from ganger.local.run_folder import RunFolder
from ganger.ports.processes import Exit
from ganger.stores.sqlite import SqliteStores

MOST_TO_VALIDATE = 2.0
MOST_GROWTH = 1.3
_BOUNDED_AT = 10_000
_AT_ONCE = 16
_AT_ONCE_BEFORE = 100
_MOST_SEC = 120.0
_GONE_WITHIN_SEC = 10.0
_TICKS_PER_SEC = os.sysconf("SC_CLK_TCK")
_LONG_AGO_SEC = 3600.0
# The most events a lead that was killed can leave behind its newest snapshot.
_UNSAVED_EVENTS_PER_TASK = 2
_EVENTS_PER_ATTEMPT = 7
_BEGUN = b'"type": "attempt_started"'
_WAITING_AGENT = "exec sleep 600\n"

_T = TypeVar("_T")


def measure(sizes: Sizes) -> Iterator[Figure]:
    yield from _resumes(sizes)
    yield from asyncio.run(_events(sizes))


# --- a half-finished run is continued -------------------------------------------------------------------------------


def _resumes(sizes: Sizes) -> Iterator[Figure]:
    count = sizes.resume_tasks
    bounded = MOST_TO_VALIDATE if count == _BOUNDED_AT else None
    yield _resume(Half(count), sizes.resume_rounds, "stopped half-way", bounded)
    unsaved = min(count // 2, _UNSAVED_EVENTS_PER_TASK * count // _EVENTS_PER_ATTEMPT)
    name = f"killed {unsaved * _EVENTS_PER_ATTEMPT:,} events after its snapshot"
    yield _resume(Half(count, unsaved), sizes.resume_rounds, name, None)


@dataclass(frozen=True, slots=True)
class Half:
    """A run of which the first half is DONE; it ended orderly, or was killed with `unsaved` attempts in no snapshot."""

    tasks: int
    unsaved: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    wall_sec: float
    cpu_sec: float


def _resume(half: Half, rounds: int, name: str, most: float | None) -> Figure:
    root, past = scratch(), scratch() / "run"
    folder = _half_done(root, half)
    shutil.copytree(folder.path, past)
    checks: list[Taken] = []
    starts: list[Taken] = []
    for _ in range(rounds):
        _put_back(past, folder.path)
        ran = ganger(root, "validate")
        checks.append(Taken(ran.wall_sec, ran.cpu_sec))
        starts.append(_first_start(root, folder))
    ours, theirs = (min(taken.wall_sec for taken in each) for each in (starts, checks))
    cpu = min(taken.cpu_sec for taken in starts) / min(taken.cpu_sec for taken in checks)
    return Figure(
        "resume",
        f"{half.tasks:,} tasks, {name}: to the first new attempt, to ganger validate",
        ours / theirs,
        "x",
        most,
        f"{ours:.2f} s to {theirs:.2f} s; the lead's own processor time {cpu:.2f}x",
    )


def _put_back(past: Path, folder: Path) -> None:
    """Every round finds the same bytes, and on disk: nobody else's writes are flushed while it is timed."""
    shutil.rmtree(folder)
    shutil.copytree(past, folder)
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())


def _first_start(root: Path, folder: RunFolder) -> Taken:
    """From starting the process until it says that an attempt was recorded; then the run is stopped."""
    with tempfile.TemporaryFile() as talk:
        began = time.perf_counter()
        lead = subprocess.Popen(
            [*GANGER, "run", "--json"],
            cwd=root,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=talk,
        )
        limit = threading.Timer(_MOST_SEC, lead.kill)
        limit.start()
        assert lead.stdout is not None
        with lead.stdout as lines:
            last = b""
            for last in lines:
                if _BEGUN in last:
                    break
            taken = Taken(time.perf_counter() - began, _cpu_sec(lead.pid))
            lead.send_signal(signal.SIGTERM)
            lines.read()
        code = lead.wait()
        limit.cancel()
        if _BEGUN not in last or code != EXIT_INTERRUPTED:
            talk.seek(0)
            said = (last + talk.read()).decode("utf-8", "replace")[-2000:]
            raise BenchError(f"ganger run in {root} ended with {code} instead of being stopped at an attempt:\n{said}")
    _require_gone(House(folder.path))
    return taken


def _cpu_sec(pid: int) -> float:
    return sum(map(int, stat_fields(pid)[11:13])) / _TICKS_PER_SEC


def _require_gone(house: House) -> None:
    give_up_at = time.monotonic() + _GONE_WITHIN_SEC
    while left := _alive(house):
        if time.monotonic() > give_up_at:
            raise BenchError(f"{left} outlived a run that was stopped")
        time.sleep(0.01)


def _alive(house: House) -> list[str]:
    marked = [f"process {pid}" for pid in pids() if (mark := mark_of(pid)) is not None and house.owns(mark)]
    held = [f"the process that holds {lock}" for lock in (house.lock, house.guard_lock) if is_held(lock)]
    return marked + held


def _half_done(root: Path, half: Half) -> RunFolder:
    """Everything as a real run leaves it, but for the 10,000 processes: they are only recorded."""
    _build(root, half.tasks)
    project = load_project(root, environ=clean_environment())

    async def led() -> RunFolder:
        async with open_lead(project, check_project(project), RunOptions()) as lead:
            await _first_half(lead, half)
            return lead.tools.folder

    return asyncio.run(led())


def _build(root: Path, count: int) -> None:
    """One prompt for each task, one shared context file, all of them written long ago."""
    build(root, Fleet(count, linked=True))
    (root / "agent").write_text(_WAITING_AGENT)
    manifest = json.loads((root / "manifest.json").read_text())
    (root / "prompts").mkdir()
    texts = {"shared.md": "What every task should know.\n" * 20}
    for task in manifest["tasks"]:
        task["prompt_ref"], task["context_refs"] = f"prompts/{task['id']}.md", ["shared.md"]
        texts[task["prompt_ref"]] = f"Do {task['id']} as it is described here.\n" * 10
    (root / "manifest.json").write_text(json.dumps(manifest))
    long_ago = time.time() - _LONG_AGO_SEC
    for name, text in texts.items():
        (root / name).write_text(text)
        os.utime(root / name, (long_ago, long_ago))
    # A file counts as settled a moment after its last change, and changing its times is one.
    time.sleep(0.2)


async def _first_half(lead: Lead, half: Half) -> None:
    order, journal = lead.order, lead.journal
    digest, contents = order.manifest_digest, order.contents
    await _begin(journal, ev.RunStarted(order.run_id, digest, order.policy, order.tasks, order.version, contents))
    await work(journal, half.tasks // 2 - half.unsaved)
    if half.unsaved:
        await journal.store.save_snapshot(journal.state.log.last_seq, encode_state(journal.state))
        await work(journal, half.unsaved)
    _write_ledger(lead.tools.folder, journal.state)
    if not half.unsaved:
        lead.stop("half of it is done")
        await lead.run()


def _write_ledger(folder: RunFolder, state: RunState) -> None:
    """The keeper remembers the agent and the check of every attempt."""
    house = House(folder.path)
    house.room.mkdir(mode=0o700)
    ledger = Ledger(house.ledger)
    ended = Exit(0, None, timed_out=False, duration_sec=0.25, started=True, error="", log_bytes=100)
    for place, name in enumerate(name for name in state.index.by_rank if state.tasks[name].attempts):
        agent, check = folder.path / worker_log(name, 1), folder.path / verify_log(name, 1)
        for tag, (key, log) in enumerate([(str(agent), agent), (f"{check}#1.0.0.0", check)], 2 * place):
            ledger.starting(key, log, tag, time.time())
            ledger.started(key, 2**22 + tag, tag, "another boot")
            ledger.ended(key, ended)
    ledger.sync()
    ledger.close()


# --- what a lead records --------------------------------------------------------------------------------------------


async def _begin(journal: Journal, begun: ev.RunStarted) -> None:
    """Much at once, so that what lies before the measured part is made quickly."""
    await journal.record(begun)
    await journal.record(ev.LeadStarted(os.getpid(), policy=replace(begun.policy, concurrency=_AT_ONCE_BEFORE)))


async def work(journal: Journal, count: int) -> None:
    """Takes `count` tasks to DONE: decides, commits and applies as a lead does, and runs nothing."""
    left = count
    while left:
        decided = [d.task for d in decide(journal.state, journal.clock.now()) if isinstance(d, Start)][:left]
        if not decided:
            raise BenchError(f"{left} of {count} tasks cannot start: {journal.state.log.refused[:3]}")
        for step in _STEPS:
            for name in decided:
                tick = journal.report(name, f"token of {name}", *step(name))
            await tick
            decide(journal.state, journal.clock.now())
        left -= len(decided)
    done = journal.state.index.counts[TaskStatus.DONE]
    if done < count or journal.state.log.refused:
        raise BenchError(f"{done} tasks are DONE: {journal.state.log.refused[:3]}")


def _claimed(name: str) -> list[ev.Event]:
    return [ev.AttemptStarted(name, 1, f"token of {name}", "measured", "first attempt", worker_log(name, 1))]


def _launched(name: str) -> list[ev.Event]:
    return [ev.AttemptLaunched(name, 1, 4_000_000, 123_456_789)]


def _answered(name: str) -> list[ev.Event]:
    return [
        ev.AttemptExited(name, 1, 0, None, False, 0.25),
        ev.ResultAccepted(name, 1, "DONE", "all of it is done as described"),
        ev.VerifyStarted(name, 1, verify_log(name, 1)),
    ]


def _verified(name: str) -> list[ev.Event]:
    steps = (VerifyStep("check", "other", "passed", 0, 0.002),)
    return [
        ev.VerifyFinished(name, 1, True, verify_log(name, 1), 0.002, steps),
        ev.TaskSettled(name, TaskStatus.DONE, "verified by check (1 steps)"),
    ]


_STEPS: tuple[Callable[[str], list[ev.Event]], ...] = (_claimed, _launched, _answered, _verified)


# --- the cost of an event -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cost:
    """Of one event: processor time of deciding, committing and applying, and the whole with its waits for the disk."""

    cpu_sec: float
    wall_sec: float


async def _events(sizes: Sizes) -> list[Figure]:
    costs: dict[int, list[Cost]] = {count: [] for count in sizes.event_tasks}
    async with contextlib.AsyncExitStack() as open_runs:
        open_runs.enter_context(_without_collector())
        journals = {count: await open_runs.enter_async_context(_journal()) for count in costs}
        policy = Policy(HealSchedule.OFF, concurrency=_AT_ONCE)
        for count, journal in journals.items():
            await _begin(journal, ev.RunStarted("bench", "none", policy, _specs(count)))
            await work(journal, count // 2)
            await journal.record(ev.LeadStarted(os.getpid(), policy=policy))
        each = min(costs) // 2 // sizes.event_rounds
        for _ in range(sizes.event_rounds):
            for count, journal in journals.items():
                costs[count].append(await _cost(journal, each))
        largest = max(costs)
        return [_growth(costs), *await _replay(journals[largest], largest)]


def _specs(count: int) -> tuple[TaskSpec, ...]:
    names = Fleet(count).names
    return tuple(
        TaskSpec(name, tuple(names[place - 100 : place - 98]) if place >= 100 else (), writes=(f"out/{name}.txt",))
        for place, name in enumerate(names)
    )


@contextlib.asynccontextmanager
async def _journal() -> AsyncIterator[Journal]:
    store = SqliteStores().open_async(scratch())
    try:
        await store.take_lead()
        yield Journal(store, RunState(), SystemClock())
    finally:
        await store.release()
        await store.close()


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """`ganger` lets it run so seldom that it would hit one of the two sizes by chance."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def _cost(journal: Journal, tasks: int) -> Cost:
    seq, cpu, wall = journal.state.log.last_seq, time.process_time(), time.perf_counter()
    await work(journal, tasks)
    events = journal.state.log.last_seq - seq
    return Cost((time.process_time() - cpu) / events, (time.perf_counter() - wall) / events)


def _growth(costs: dict[int, list[Cost]]) -> Figure:
    smaller, larger = sorted(costs)
    pairs = list(zip(costs[larger], costs[smaller], strict=True))
    cpu = median(a.cpu_sec / b.cpu_sec for a, b in pairs)
    wall = median(a.wall_sec / b.wall_sec for a, b in pairs)
    ours, theirs = (median(cost.cpu_sec for cost in costs[count]) * 1e6 for count in (larger, smaller))
    return Figure(
        "resume",
        f"an event, decided, committed and applied: {larger:,} to {smaller:,} tasks",
        cpu,
        "x",
        MOST_GROWTH if larger == _BOUNDED_AT else None,
        f"processor time {ours:.0f} µs to {theirs:.0f} µs; with waits for the disk {wall:.2f}x",
    )


async def _replay(journal: Journal, count: int) -> list[Figure]:
    found: list[Figure] = []
    again = Journal(journal.store, RunState(), journal.clock)
    began = time.perf_counter()
    events = await again.replay()
    seconds = time.perf_counter() - began
    # Not the whole state: deciding drops what is stale from its heaps.
    if again.state.tasks != journal.state.tasks:
        raise BenchError("a replayed run is not the run that was recorded")
    how = f"{events / seconds:,.0f} events/s, {events:,} events"
    found.append(Figure("resume", f"{count:,} tasks: every event read and applied, no snapshot", seconds, "s", how=how))
    text, writing = _timed(lambda: encode_state(journal.state))
    known, reading = _timed(lambda: decode_state(text))
    if known != journal.state:
        raise BenchError("a snapshot is not the state it was made of")
    size = f"{len(text) / 1e6:.1f} MB"
    found.append(Figure("resume", f"{count:,} tasks: a snapshot made", writing, "s", how=size))
    found.append(Figure("resume", f"{count:,} tasks: a snapshot read", reading, "s", how=size))
    return found


def _timed(make: Callable[[], _T]) -> tuple[_T, float]:
    """The least of three."""
    least = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        made = make()
        least = min(least, time.perf_counter() - began)
    return made, least
