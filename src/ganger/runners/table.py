"""Which runner a command calls, and whether the installed program is new enough to report."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

from ganger.ports.runners import KnownRunner, RunnerCall
from ganger.runners.calls import program_of
from ganger.runners.compiled import CargoTest, Ctest, GoTest
from ganger.runners.javascript import Jest, NodeTest, Vitest
from ganger.runners.python import Pytest, Unittest

# The first versions that accept the options for a report.
_NODE = ((18, 19), (20, 2))
_CTEST = ((3, 21),)
_PATIENCE_SEC = 20
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


class KnownRunners:
    def of(self, call: RunnerCall) -> KnownRunner | None:
        program, path = program_of(call.argv, call.cwd), call.env.get("PATH")
        if program is None:
            return _pytest(call, certain=False)
        first = call.argv[program.rest] if program.rest < len(call.argv) else ""
        match program.name:
            case "pytest" | "py.test":
                return _pytest(call, certain=True)
            case "unittest" if program.module:
                return Unittest(program)
            case "node" if program.script or "--test" in call.argv:
                return NodeTest(program) if is_at_least("node", path, *_NODE) else None
            case "jest":
                return Jest(program)
            case "vitest":
                return Vitest(program)
            case "go" if first == "test":
                return GoTest(program)
            case "cargo" if first in ("test", "t"):
                return CargoTest(program)
            case "ctest":
                return Ctest(program) if is_at_least("ctest", path, *_CTEST) else None
        # Any other program may start pytest.
        return _pytest(call, certain=False)


def _pytest(call: RunnerCall, *, certain: bool) -> Pytest | None:
    asked_not_to = any("no:junitxml" in word for word in call.argv) or turns_reports_off(call.cwd)
    return None if asked_not_to else Pytest(certain)


def is_at_least(program: str, path: str | None, *oldest: tuple[int, int]) -> bool:
    """Whether its version is at least the one in `oldest` with its major version, or newer than all of them."""
    found = shutil.which(program, path=path)
    version = _version(found) if found else None
    if version is None:
        return False
    return version[0] > max(oldest)[0] or any(version[0] == least[0] and version >= least for least in oldest)


@functools.cache
def _version(program: str) -> tuple[int, int] | None:
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=_PATIENCE_SEC, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = _NUMBERS.search(said.stdout)
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def turns_reports_off(folder: Path) -> bool:
    """Whether the project's settings disable pytest's report, so that asking for one would be an error."""
    for name in _SETTINGS:
        try:
            if "no:junitxml" in (folder / name).read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError:
            continue
    return False
