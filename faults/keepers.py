"""Keepers to be disturbed: a lead's first keeper waits to be watched, and is struck at one of its system calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from faults.judge import processes
from faults.leads import Ended, Lead
from faults.scenario import Place
from faults.strace import Point, Strike, points_in, status_of, until, watched
from ganger.errors import EXIT_ESCALATED
from ganger.launchers import connect, launcher

_MODULE = "held_keeper"
# Runs without site-packages and without this package; only the first keeper of a place waits.
_PROGRAM = """import os
import sys
sys.path.append({here!r})
from ganger.launchers import keeper
def main(arguments):
    with open({count!r}, "a") as file:
        file.write("keeper\\n")
    try:
        os.unlink({flag!r})
    except FileNotFoundError:
        return keeper.main(arguments)
    from faults.strace import wait_to_be_watched
    wait_to_be_watched()
    keeper.main(arguments)
"""


def run(place: Place, strike: Strike, *, before: Callable[[], None] | None = None) -> Ended:
    """A lead from its start to its end, whose first keeper is struck on the way."""
    with _watched(place, [*strike.options(), "-o", "/dev/null"], before) as lead:
        return lead.wait()


def died(place: Place) -> bool:
    """Whether a struck keeper was replaced."""
    return (place.base / "keepers").read_text().count("keeper") > 1


def trace(place: Place) -> list[Point]:
    """The calls of an undisturbed keeper from its first touch of its files on, in order."""
    record = place.base / "trace"
    with _watched(place, ["-y", "-o", str(record)], None) as lead:
        ended = lead.wait()
    if ended.code not in (0, EXIT_ESCALATED):
        raise RuntimeError(f"the undisturbed run ended with {ended.code}: {ended.error} {ended.said}")
    return points_in(record, "/keeper")


@contextlib.contextmanager
def _watched(place: Place, options: Sequence[str], before: Callable[[], None] | None) -> Iterator[Lead]:
    flag = place.base / "hold"
    flag.touch()
    program = _PROGRAM.format(here=str(Path(__file__).parents[1]), flag=str(flag), count=str(place.base / "keepers"))
    (place.base / f"{_MODULE}.py").write_text(program)
    lead = Lead(place, before=partial(_hold, f"{place.base}:{_MODULE}", before))
    until(lambda: bool(_held(place)) or lead.poll() is not None, "no keeper came up to be watched")
    found = _held(place)
    if not found:
        raise RuntimeError(f"the lead ended before it had a keeper: {lead.wait()}")
    with watched(found[0], options):
        yield lead


def _hold(odd: str, before: Callable[[], None] | None) -> None:
    """In the lead: the keepers it starts are ours."""
    launcher.__dict__["KeeperOptions"] = partial(connect.KeeperOptions, odd=odd)
    if before is not None:
        before()


def _held(place: Place) -> list[int]:
    wanted = _MODULE.encode()
    candidates = [process.pid for process in processes(place) if wanted in process.command]
    return [pid for pid in candidates if status_of(pid, "State").startswith("T")]
