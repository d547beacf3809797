"""Where failing tests are planted, and unpredictable names and values for them."""

from __future__ import annotations

import secrets
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from ganger.core.verify.census import TestCensus
from ganger.ports.runners import CheckedChange

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_HOSTS = 3
_LARGEST = 2 << 20


def random_word(length: int = 9) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def shuffled(names: Iterable[str]) -> list[str]:
    mixed = list(names)
    secrets.SystemRandom().shuffle(mixed)
    return mixed


def choose(preferred: Sequence[str], others: Sequence[str], most: int = _HOSTS) -> list[str]:
    """A few names, the preferred ones first, otherwise chosen at random."""
    first = shuffled(preferred)
    return [*first, *(name for name in shuffled(others) if name not in set(first))][:most]


def near_tests(passed: Sequence[str], root: Path, census: TestCensus, touched: CheckedChange) -> list[str]:
    """The tests that the change fixed; else those of files that name a touched file."""
    mended = [name for name in passed if name in touched.fixed_tests]
    if mended:
        return mended
    stems = {Path(one).stem for one in touched.files} - {"__init__", "index", "mod", "lib", "main", ""}
    stems |= {Path(one).parent.name for one in touched.files if Path(one).stem in ("__init__", "index", "mod")} - {""}
    files = {census.files.get(name, "") for name in passed}
    speaking = {file for file in files if any(stem in text_of(root, file) for stem in stems)}
    return [name for name in passed if census.files.get(name, "") in speaking]


def plain_file(root: Path, file: str) -> Path | None:
    """A file named by a report, if it is in the project and safe to read."""
    if not file or file.startswith(("/", "..")) or "\0" in file:
        return None
    path = root / file
    try:
        found = path.lstat()
        inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return None
    return path if inside and stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST else None


def text_of(root: Path, file: str) -> str:
    path = plain_file(root, file)
    return "" if path is None else path.read_bytes().decode("utf-8", "replace")
