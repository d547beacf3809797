"""The benchmark: every part measures something, bounds are judged, and a run that went wrong gives no figure."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import PARTS, main
from bench.figures import Figure, table
from bench.overhead import run_floor, run_ganger
from bench.processes import BenchError, run
from bench.project import AGENTS, Fleet

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent


LONG = ("overhead", "plan", "parser")


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.slow) if part in LONG else part for part in PARTS]
)
def test_every_part_prints_a_table_and_writes_its_figures(part: str, tmp_path: Path) -> None:
    """The measured promises come out as finite numbers, on screen and in the file."""
    out = tmp_path / "results.json"
    words = [sys.executable, "-m", "bench", part, "--tiny", "--no-verdict", "--out", str(out)]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(out.read_text())["figures"]
    assert figures and all(math.isfinite(f["value"]) for f in figures)
    assert all(f["value"] > 0 for f in figures if f["unit"] == "x" and "further" not in f["what"])
    assert all(f["what"] in ran.stdout for f in figures)


@pytest.mark.parametrize(("value", "verdict"), [(1.9, "ok"), (2.0, "ok"), (2.01, "MISSED"), (math.nan, "MISSED")])
def test_a_bounded_figure_is_judged(value: float, verdict: str) -> None:
    """More than the bound is a miss, and so is a number that is none."""
    figure = Figure("overhead", "no writes", value, "x", most=2.0)
    assert figure.verdict == verdict
    assert verdict in table([figure])


@pytest.mark.parametrize(("flags", "code"), [([], 1), (["--no-verdict"], 0)])
def test_a_missed_bound_fails_the_run(
    flags: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted slow figure ends with exit 1, unless only the figures are wanted."""
    monkeypatch.setitem(PARTS, "start", lambda _: iter([Figure("start", "planted", 7.0, "x", most=6.0)]))
    assert main(["start", *flags, "--out", str(tmp_path / "results.json")]) == code


def test_floor_and_run_are_only_believed_when_the_work_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted agent that does nothing useful gives an error, not a fast figure."""
    monkeypatch.setitem(AGENTS, "sh", (("/bin/sh", "agent"), "exit 7\n"))
    with pytest.raises(BenchError, match="agent ended with 7"):
        run_floor(Fleet(2))
    with pytest.raises(BenchError, match="ended with"):
        run_ganger(Fleet(2))


def test_a_failing_child_is_named_with_its_last_words(tmp_path: Path) -> None:
    """Exit code and output of a measured program are in the error."""
    with pytest.raises(BenchError, match=r"(?s)ended with 3.*oh no"):
        run(["/bin/sh", "-c", "echo oh no; exit 3"], tmp_path)
