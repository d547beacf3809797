"""What Ganger costs per task: whole runs against the floor, in turn, so that both meet the same machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.processes import BenchError, ganger, run, scratch
from bench.project import Fleet, build
from bench.sizes import Sizes

MOST = 2.0
_FLOOR = Path(__file__).with_name("floor.py")
_BOUNDED_AT = 16


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: its own span, the whole process, and processor time of everything it started."""

    span_sec: float
    process_sec: float
    cpu_sec: float


@dataclass(frozen=True, slots=True)
class Pair:
    floor: Sample
    ganger: Sample


def measure(sizes: Sizes) -> Iterator[Figure]:
    for concurrency in sizes.concurrencies:
        bounded = MOST if concurrency == _BOUNDED_AT else None
        fleet = Fleet(sizes.fleet_tasks, concurrency)
        yield from _figures(fleet, sizes.fleet_rounds, f"no writes, concurrency {concurrency}", bounded)
    widest = sizes.concurrencies[-1]
    for agent, schedule in (("writing sh", "off"), ("sh", "auto"), ("Python", "off")):
        fleet = Fleet(sizes.side_tasks, widest, agent, schedule)
        note = "one write a task" if agent == "writing sh" else f"schedule {schedule}, {agent} agent"
        yield from _figures(fleet, sizes.side_rounds, f"{note}, concurrency {widest}", None)


def _figures(fleet: Fleet, rounds: int, name: str, most: float | None) -> Iterator[Figure]:
    pairs = [Pair(run_floor(fleet), run_ganger(fleet)) for _ in range(rounds)]
    ours = _per_task(fleet, [p.ganger.span_sec for p in pairs])
    theirs = _per_task(fleet, [p.floor.span_sec for p in pairs])
    yield Figure(
        "overhead",
        f"{name}: first to last event, to floor's loop",
        median(p.ganger.span_sec / p.floor.span_sec for p in pairs),
        "x",
        most,
        f"{ours} to {theirs}",
    )
    yield Figure(
        "overhead",
        f"{name}: whole process",
        median(p.ganger.process_sec / p.floor.process_sec for p in pairs),
        "x",
        how=f"processor time {median(p.ganger.cpu_sec / p.floor.cpu_sec for p in pairs):.2f}x",
    )


def _per_task(fleet: Fleet, seconds: list[float]) -> str:
    return f"{median(seconds) / fleet.tasks * 1000:.2f} ms/task"


def run_floor(fleet: Fleet) -> Sample:
    root = scratch()
    build(root, fleet)
    words = [str(root), str(fleet.tasks), str(fleet.concurrency), *fleet.argv]
    ran = run([sys.executable, str(_FLOOR), *words], root)
    return Sample(json.loads(ran.output)["loop_sec"], ran.wall_sec, ran.cpu_sec)


def run_ganger(fleet: Fleet) -> Sample:
    """A real `ganger run`; its span is read back from the events it recorded."""
    root = scratch()
    build(root, fleet)
    ran = ganger(root, "run")
    events = [json.loads(line) for line in ganger(root, "events", "--json").output.splitlines()]
    done = sum(1 for e in events if e["type"] == "task_settled" and e["status"] == "DONE")
    if done != fleet.tasks:
        raise BenchError(f"{done} of {fleet.tasks} tasks were DONE:\n{ran.output[-2000:]}")
    first, last = (datetime.fromisoformat(events[place]["at"]) for place in (0, -1))
    return Sample((last - first).total_seconds(), ran.wall_sec, ran.cpu_sec)
