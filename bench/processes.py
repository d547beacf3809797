"""Child processes of a benchmark: run to the end, timed, and believed only if they did what was asked."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONSOLE_SCRIPT = Path(sys.executable).with_name("ganger")
GANGER = (str(CONSOLE_SCRIPT),) if CONSOLE_SCRIPT.exists() else (sys.executable, "-m", "ganger")
_SHOWN = 2000
_MOST_SEC = 300.0


class BenchError(Exception):
    """A measured program did something else than it was asked to; its figure would mean nothing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished child: wall time, processor time of its whole tree, and its standard output."""

    wall_sec: float
    cpu_sec: float
    output: str


def clean_environment() -> dict[str, str]:
    """The environment without settings that would change what is measured. Runs are kept with the rest of it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GANGER_", "PYTHON"))}
    return own | {"XDG_STATE_HOME": str(_scratch_root() / "state")}


def run(argv: Sequence[str], cwd: Path, more: Mapping[str, str] | None = None) -> Ran:
    """Output goes to a file, so that a slow reader never slows the child down. `more` goes into its environment."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**clean_environment(), **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        limit = threading.Timer(_MOST_SEC, child.send_signal, [signal.SIGTERM])
        limit.start()
        _, status, used = os.wait4(child.pid, 0)
        limit.cancel()
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if child.returncode != 0:
        raise BenchError(f"{' '.join(argv)} in {cwd} ended with {child.returncode}:\n{text[-_SHOWN:]}")
    return Ran(wall, used.ru_utime + used.ru_stime, text)


def ganger(cwd: Path, *words: str) -> Ran:
    return run([*GANGER, *words], cwd)


@cache
def _scratch_root() -> Path:
    root = tempfile.mkdtemp(prefix="ganger-bench-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return Path(root)


def scratch() -> Path:
    """A fresh folder. It goes when the benchmark ends: creating files right after deleting many is slow on ext4."""
    return Path(tempfile.mkdtemp(dir=_scratch_root()))
