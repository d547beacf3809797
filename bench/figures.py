"""What a benchmark says: figures, their bounds, the table and the file they go into."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import ganger

_HEADS = ("part", "figure", "value", "target", "verdict", "how")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. With `most` it is bounded: more than that is a miss."""

    part: str
    what: str
    value: float
    unit: str
    most: float | None = None
    how: str = ""

    @property
    def missed(self) -> bool:
        # Written so that a value that is no number counts as a miss.
        return self.most is not None and not self.value <= self.most

    @property
    def verdict(self) -> str:
        if self.most is None:
            return ""
        return "MISSED" if self.missed else "ok"


def shown(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 0.1 else f"{value:.2f}"
    return f"{number}{unit}" if unit == "x" else f"{number} {unit}"


def table(figures: Sequence[Figure]) -> str:
    """One line per figure, columns aligned, readable without colour."""
    rows = [_HEADS]
    for f in figures:
        target = "" if f.most is None else f"<= {shown(f.most, f.unit)}"
        rows.append((f.part, f.what, shown(f.value, f.unit), target, f.verdict, f.how))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def save(path: Path, figures: Sequence[Figure], load_before: tuple[float, ...]) -> None:
    machine = {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": load_before,
        "load_after": os.getloadavg(),
    }
    entries = [asdict(figure) | {"verdict": figure.verdict} for figure in figures]
    data = {"schema": "ganger.bench/1", "ganger": ganger.__version__, "machine": machine, "figures": entries}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
