"""What a short command costs, against starting the same interpreter with nothing to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bench.figures import Figure
from bench.processes import GANGER, ganger, run, scratch
from bench.project import Fleet, build
from bench.sizes import Sizes

MOST_HELP = 6.0
_BARE = (sys.executable, "-c", "pass")
_COMMANDS: dict[tuple[str, ...], float | None] = {
    ("--help",): MOST_HELP,
    ("--version",): None,
    ("status", "--json"): None,
    ("validate",): None,
}


def measure(sizes: Sizes) -> Iterator[Figure]:
    """The least of many, each round running every command once: start-up is a floor, noise only adds."""
    root = scratch()
    build(root, Fleet(4))
    ganger(root, "run")
    bare: list[float] = []
    taken: dict[tuple[str, ...], list[float]] = {words: [] for words in _COMMANDS}
    for _ in range(sizes.start_rounds):
        bare.append(run(_BARE, root).wall_sec)
        for words, times in taken.items():
            times.append(run([*GANGER, *words], root).wall_sec)
    for words, most in _COMMANDS.items():
        best = min(taken[words])
        note = f"{best * 1000:.0f} ms to {min(bare) * 1000:.0f} ms"
        yield Figure("start", f"ganger {' '.join(words)}: to python -c pass", best / min(bare), "x", most, note)
