"""Whether the programs of this machine can report as they would be told to; an older one would refuse the words."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

_PATIENCE_SEC = 20
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
_SETTINGS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


def is_at_least(program: str, path: str | None, *oldest: tuple[int, int]) -> bool:
    """Its version is one of `oldest` or a later one of the same major version, or newer than all of them."""
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
    """Whether the project's own settings take pytest's report away, so that asking for one would be an error."""
    for name in _SETTINGS:
        try:
            if "no:junitxml" in (folder / name).read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError:
            continue
    return False
