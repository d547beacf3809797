"""What checking and planning a large manifest costs: whole processes as a user waits for them, and in one process."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.figures import Figure
from bench.processes import BenchError, ganger, scratch
from bench.project import Fleet, build
from bench.sizes import Sizes
from ganger.app.checks.project import check_project
from ganger.config import load_project

MOST_SEC_AT_10K = 1.0
MOST_GROWTH = 1.5
_BOUNDED_AT = 10_000


def measure(sizes: Sizes) -> Iterator[Figure]:
    inside: dict[int, float] = {}
    for count in sizes.plan_tasks:
        root = scratch()
        build(root, Fleet(count, linked=True))
        most = MOST_SEC_AT_10K if count == _BOUNDED_AT else None
        rounds = sizes.plan_rounds
        yield _whole("validate", count, _best(partial(_validate, root), rounds), most)
        yield _whole("plan --json", count, _best(partial(_plan, root, count), rounds), most)
        inside[count] = _best(partial(_check, root, count), rounds)
        how = f"{count / inside[count]:,.0f} tasks/s, garbage collector off"
        yield Figure("plan", f"{count:,} tasks: check and plan inside one process", inside[count], "s", how=how)
    yield _growth(inside)


def _best(work: Callable[[], float], rounds: int) -> float:
    return min(work() for _ in range(rounds))


def _whole(command: str, count: int, seconds: float, most: float | None) -> Figure:
    rate = f"{count / seconds:,.0f} tasks/s"
    return Figure("plan", f"{count:,} tasks: ganger {command}, whole process", seconds, "s", most, rate)


def _growth(inside: dict[int, float]) -> Figure:
    """Time per task at the largest size over time per task at the one before: 1 is linear."""
    smaller, larger = sorted(inside)[-2:]
    grown = (inside[larger] / larger) / (inside[smaller] / smaller)
    bounded = MOST_GROWTH if larger > _BOUNDED_AT else None
    return Figure("plan", f"time per task, {larger:,} to {smaller:,} tasks", grown, "x", bounded, "1 is linear")


def _validate(root: Path) -> float:
    return ganger(root, "validate").wall_sec


def _plan(root: Path, count: int) -> float:
    ran = ganger(root, "plan", "--json")
    if len(json.loads(ran.output)["order"]) != count:
        raise BenchError(f"ganger plan in {root} did not order {count} tasks")
    return ran.wall_sec


def _check(root: Path, count: int) -> float:
    gc.collect()
    gc.disable()
    began = time.perf_counter()
    checked = check_project(load_project(root, environ={}))
    seconds = time.perf_counter() - began
    gc.enable()
    if not checked.ok or len(checked.specs) != count:
        raise BenchError(f"the project in {root} is not sound: {checked.faults[:3]}")
    return seconds
