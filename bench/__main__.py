"""`python -m bench [PART…]`: measures, prints one table, writes results.json; exit 1 when a bounded figure misses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import agents, overhead, parsing, planning, profiling, resuming, sandbox, starting, workspaces
from bench.figures import Figure, save, table
from bench.processes import BenchError
from bench.sizes import DEFAULT, FULL, TINY, Sizes

RESULTS = Path(__file__).with_name("results.json")
PARTS: dict[str, Callable[[Sizes], Iterator[Figure]]] = {
    "overhead": overhead.measure,
    "plan": planning.measure,
    "parser": parsing.measure,
    "start": starting.measure,
    "resume": resuming.measure,
    "workspaces": workspaces.measure,
    "sandbox": sandbox.measure,
    "agents": agents.measure,
}
_KEY = """
overhead  a whole `ganger run` of independent tasks whose agent only prints a result and whose check is `true`,
          to a loop that spawns the same two programs and makes one durable commit per task; medians of paired runs
plan      the least of several; linked tasks, one prompt, a whole project
parser    the least of several, file in the page cache
start     the least of many
resume    the least of several, each beside a `ganger validate` of the same project: a prompt for each task, one shared
          context file; store, ledger and caches as a half-finished run leaves them. An event: medians of paired blocks
workspaces  many at once from one repository, to plain git making as many folders from the same objects; paired rounds
sandbox   medians; `true` in a workspace of its own, within each kind of walls that stands on this machine
agents    medians of paired rounds; one tiny answer of a played model, home furnished, result read; without walls
"""


def main(words: Sequence[str]) -> int:
    asked = _arguments(words)
    if asked.parts == ["profile"]:
        print(profiling.profile(asked.sizes))
        return 0
    load = os.getloadavg()
    figures: list[Figure] = []
    try:
        for part in asked.parts or PARTS:
            print(f"measuring {part} …", file=sys.stderr, flush=True)
            figures.extend(PARTS[part](asked.sizes))
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(figures))
    print(_KEY)
    _warn_of_load(load)
    save(asked.out, figures, load)
    missed = [figure.what for figure in figures if figure.missed]
    if missed:
        print(f"{len(missed)} missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed and asked.verdict else 0


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all without it), or profile")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", dest="sizes", action="store_const", const=FULL, help="larger: a 1 GB log, 1,000 tasks")
    size.add_argument("--tiny", dest="sizes", action="store_const", const=TINY, help="only to see that it works")
    parser.add_argument("--no-verdict", dest="verdict", action="store_false", help="print, and exit 0 whatever it says")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the figures go as JSON")
    parser.set_defaults(sizes=DEFAULT)
    asked = parser.parse_args(words)
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown and asked.parts != ["profile"]:
        parser.error(f"there is no part {unknown[0]!r}; choose from {', '.join(PARTS)}, or profile alone")
    return asked


def _warn_of_load(before: tuple[float, float, float]) -> None:
    cores = os.cpu_count() or 1
    if before[0] > cores / 2:
        said = f"the load was {before[0]:.1f} on {cores} cores before this began"
        print(f"note: {said}; figures are rougher than on a quiet machine", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
