"""Where a run's own time goes: `python -m bench profile` lists the dearest functions in microseconds per task."""

from __future__ import annotations

import pstats
import sys
from pathlib import Path

from bench.processes import run, scratch
from bench.project import Fleet, build
from bench.sizes import Sizes

_SHOWN = 45


def profile(sizes: Sizes) -> str:
    """Own and cumulative time per function of one profiled run; profiling itself slows small functions down."""
    fleet = Fleet(sizes.fleet_tasks, sizes.concurrencies[-1])
    root = scratch()
    build(root, fleet)
    out = root / "profile.out"
    run([sys.executable, "-m", "cProfile", "-o", str(out), "-m", "ganger", "run"], root)
    stats = pstats.Stats(str(out)).get_stats_profile().func_profiles
    rows = sorted(stats.items(), key=lambda item: -item[1].tottime)[:_SHOWN]
    lines = [f"{'own µs/task':>12} {'with callees':>12} {'calls/task':>10}  function"]
    for name, cost in rows:
        calls = int(str(cost.ncalls).partition("/")[0]) / fleet.tasks
        own, whole = (seconds / fleet.tasks * 1e6 for seconds in (cost.tottime, cost.cumtime))
        place = f"{Path(cost.file_name).name}:{cost.line_number}"
        lines.append(f"{own:12.1f} {whole:12.1f} {calls:10.2f}  {name} ({place})")
    return "\n".join(lines)
