"""`python -m sim`: plays many seeds on every core, prints what broke and how to repeat it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

from sim.report import Played, play_seed, told

_TWICE_EVERY = 100
_TELL_EVERY = 200


@dataclass(slots=True)
class Tally:
    """The figures of all worlds so far."""

    worlds: int = 0
    failures: int = 0
    run_hours: float = 0.0
    events: int = 0
    leads: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)

    def add(self, played: Played) -> None:
        self.worlds += 1
        self.failures += bool(played.wrong)
        self.run_hours += played.run_hours
        self.events += played.events
        self.leads += played.leads
        self.ends[f"{played.kind} {played.status}"] += 1
        self.happened.update(played.happened)


def main() -> int:
    """0 when every rule held in every world."""
    wanted = _arguments()
    _fix_hashing()
    seeds = [wanted.seed] if wanted.seed is not None else list(range(wanted.first, wanted.first + wanted.seeds))
    begun, tally = time.monotonic(), Tally()
    with tempfile.TemporaryDirectory(prefix="ganger-sim-", dir=_fast_folder()) as place:
        for played in _play_all(seeds, Path(place), wanted.jobs, always_twice=wanted.seed is not None):
            tally.add(played)
            if played.wrong:
                print("\n".join(told(played)), flush=True)
            if tally.worlds % _TELL_EVERY == 0:
                print(f"… {_figures(tally, time.monotonic() - begun)}", file=sys.stderr, flush=True)
    print(_figures(tally, time.monotonic() - begun))
    print(f"ends: {_listed(tally.ends)}")
    print(f"met: {_listed(tally.happened)}")
    return 1 if tally.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many worlds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, default=None, help="only this one, played twice and compared")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    return parser.parse_args()


def _play_all(seeds: list[int], place: Path, jobs: int, *, always_twice: bool) -> Iterator[Played]:
    twice = [always_twice or seed % _TWICE_EVERY == 0 for seed in seeds]
    if len(seeds) == 1 or jobs == 1:
        yield from map(_play, seeds, repeat(place), twice)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_play, seeds, repeat(place), twice)


def _play(seed: int, place: Path, twice: bool) -> Played:
    return play_seed(seed, place, twice=twice)


def _fix_hashing() -> None:
    """Sets of names come in an order that differs between interpreters; a seed must mean the same in all of them."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "sim", *sys.argv[1:]])  # noqa: S606


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _figures(tally: Tally, took_sec: float) -> str:
    per_sec = tally.run_hours / took_sec if took_sec else 0.0
    return (
        f"{tally.worlds} worlds, {tally.failures} broken, {tally.leads} leads, {tally.events} events, "
        f"{tally.run_hours:.0f} run-hours in {took_sec:.0f} s ({per_sec:.1f} run-hours/s)"
    )


if __name__ == "__main__":
    sys.exit(main())
