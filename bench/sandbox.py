"""What the walls add to the start of a program, against starting it without any."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.processes import run, scratch
from bench.sizes import Sizes
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.choose import AnySandbox, SandboxSettings, candidates, fault_of

MOST_MS = 50.0
_PROGRAM = "/bin/true"


def measure(sizes: Sizes) -> Iterator[Figure]:
    """Medians; each round starts the program once without walls and once within each kind that stands here."""
    root = scratch()
    settings = SandboxSettings(root, root / ".ganger", Path.home(), os.environ.get("PATH", os.defpath))
    kinds: dict[str, AnySandbox] = {}
    for walls in candidates(settings):
        if walls.name not in kinds and not fault_of(walls, settings):
            kinds[walls.name] = walls
    bare: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(sizes.start_rounds):
        bare.append(run([_PROGRAM], root).wall_sec)
        for name, walls in kinds.items():
            taken[name].append(run(_confined(walls, root), root).wall_sec)
    floor = statistics.median(bare) * 1000
    for name, times in taken.items():
        middle = statistics.median(times) * 1000
        note = f"{middle:.1f} ms to {floor:.1f} ms"
        yield Figure("sandbox", f"{name}: beyond a bare start, p50", middle - floor, "ms", MOST_MS, note)


def _confined(walls: AnySandbox, root: Path) -> tuple[str, ...]:
    workspace = root / f"workspace-{walls.name}"
    workspace.mkdir(exist_ok=True)
    if walls.owner is not None:
        os.chown(workspace, *walls.owner)
    launch = Launch("bench", (_PROGRAM,), workspace, {"PATH": os.defpath}, None, root / "log", None)
    return walls.confine(launch, Room(writable=(workspace,))).argv
