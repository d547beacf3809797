"""What a played world leaves behind to be read: its figures, or what broke and its last events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganger.core import events as ev
from sim.play import fingerprint, play
from sim.worlds import plan_of

_LAST_EVENTS = 30
_LONGEST_LINE = 220
_MOST_WRONG = 12


@dataclass(frozen=True, slots=True)
class Played:
    """An outcome without its events; small enough to be sent between processes."""

    seed: int
    kind: str
    status: str
    run_hours: float
    events: int
    leads: int
    happened: Mapping[str, int]
    wrong: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


def play_seed(seed: int, place: Path, *, twice: bool = False, also: Sequence[str] = ()) -> Played:
    """With `twice` the seed is played again and must give the same events, bit by bit; `also` is wrong in any case."""
    outcome = play(plan_of(seed), place / f"world-{seed}")
    wrong = [*outcome.wrong, *also]
    if twice and fingerprint(outcome) != fingerprint(play(plan_of(seed), place / f"world-{seed}")):
        wrong.append("determinism: the same seed gave other events the second time")
    last = tuple(_line(entry) for entry in outcome.events[-_LAST_EVENTS:]) if wrong else ()
    return Played(
        seed,
        outcome.kind,
        outcome.status,
        outcome.run_hours,
        len(outcome.events),
        outcome.leads,
        outcome.happened,
        tuple(wrong),
        last,
    )


def _line(entry: ev.Recorded) -> str:
    return f"{entry.seq:6} {entry.at} {ev.type_name(entry.event)} {ev.encode(entry.event)}"[:_LONGEST_LINE]


def told(played: Played) -> list[str]:
    """What a person needs to see it again."""
    lines = [f"seed {played.seed} ({played.kind}, {played.leads} leads, {played.events} events) breaks:"]
    lines += [f"  - {rule}" for rule in played.wrong[:_MOST_WRONG]]
    lines += [f"  last {len(played.last)} events:", *(f"    {line}" for line in played.last)]
    return [*lines, f"  repeat with: make sim SEED={played.seed}"]
