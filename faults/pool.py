"""Many disturbed runs side by side: as many as there are cores, progress on stderr, every bad one with its command."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

Job = Callable[[], "Verdict"]
_EVERY_SEC = 10.0
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one disturbed run: the words that repeat it, what was wrong, how far it got.

    `gaps`: the steps after which it was cut off.
    """

    repeat: str
    wrong: tuple[str, ...]
    note: str = ""
    gaps: tuple[str, ...] = ()


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A new folder in memory where there is one: these runs test order, not the disk."""
    memory = Path("/dev/shm")  # noqa: S108
    base = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="ganger-faults-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def carry_out(what: str, jobs: Sequence[Job], *, at_once: int = 0) -> list[Verdict]:
    """Runs every job and returns what they found, bad ones printed as they come."""
    verdicts: list[Verdict] = []
    began = told = time.monotonic()
    for verdict in _results(jobs, at_once or os.cpu_count() or 1):
        verdicts.append(verdict)
        for problem in verdict.wrong[:_MOST_SHOWN]:
            print(f"BAD python -m faults {verdict.repeat}\n    {problem}", flush=True)
        if time.monotonic() - told > _EVERY_SEC:
            told = time.monotonic()
            print(f"{what}: {_summary(verdicts, len(jobs), told - began)}", file=sys.stderr, flush=True)
    print(f"{what}: {_summary(verdicts, len(jobs), time.monotonic() - began)}")
    for gap, count in sorted(Counter(gap for verdict in verdicts for gap in verdict.gaps).items()):
        print(f"  {count:5} after {gap}")
    return verdicts


def _results(jobs: Sequence[Job], at_once: int) -> Iterator[Verdict]:
    """Each worker is a process of its own, because it forks leads and mounts disks."""
    if len(jobs) == 1:
        yield jobs[0]()
        return
    with ProcessPoolExecutor(at_once, mp_context=multiprocessing.get_context("spawn")) as workers:
        waiting = [workers.submit(job) for job in jobs]
        try:
            for future in as_completed(waiting):
                yield future.result()
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise


def _summary(verdicts: Sequence[Verdict], total: int, seconds: float) -> str:
    bad = sum(1 for verdict in verdicts if verdict.wrong)
    notes = Counter(verdict.note for verdict in verdicts if verdict.note)
    shown = ", ".join(f"{count} {note}" for note, count in sorted(notes.items()))
    return f"{len(verdicts)} of {total} points, {bad} bad{f' ({shown})' if shown else ''}, {seconds:.0f} s"
