"""The gate files of a folder while checks run in it: code under test must not rewrite what judges it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ganger.core.verify.commands import CommandFault, parse_command
from ganger.workspaces.gates.gates import is_expectation, is_test
from ganger.workspaces.rules.artifacts import is_generated

_CONFIGURATION = frozenset(
    (
        *("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "noxfile.py"),
        *("package.json", "Makefile", "makefile", "GNUmakefile", "justfile", "Cargo.toml", ".coveragerc"),
    )
)
_LARGEST = 4 << 20
Stamp = tuple[int, int, int, str]


def stand(folder: Path, verify: Sequence[str], own: Path) -> Callable[[], tuple[str, ...]]:
    """Remembers the gate files; the returned call names those that have changed since. `own` is Ganger's folder."""
    gates = _gates(folder, verify, str(own))
    before = {path: stamp for path in gates if (stamp := _stamp(folder, path)) is not None}

    def altered() -> tuple[str, ...]:
        return tuple(path for path, stamp in before.items() if not _is_same(folder, path, stamp))

    return altered


def _gates(folder: Path, verify: Sequence[str], own: str) -> Iterator[str]:
    named = set(_named(verify))
    for above, folders, files in os.walk(folder, followlinks=False):
        inside = os.path.relpath(above, folder)
        prefix = "" if inside == "." else f"{inside}/"
        folders[:] = [
            name
            for name in folders
            if name != ".git" and f"{above}/{name}" != own and not is_generated(f"{prefix}{name}")
        ]
        for name in files:
            path = f"{prefix}{name}"
            if name in _CONFIGURATION or path in named or is_test(path) or is_expectation(path):
                yield path


def _named(verify: Sequence[str]) -> Iterator[str]:
    for command in verify:
        script = parse_command(command, deny=())
        for step in () if isinstance(script, CommandFault) else script.steps:
            yield from (os.path.normpath(f"{step.cwd}/{word}") for word in step.argv if not word.startswith("-"))


def _stamp(folder: Path, path: str) -> Stamp | None:
    full = folder / path
    try:
        seen = full.lstat()
        if seen.st_size > _LARGEST:
            return seen.st_ino, seen.st_mtime_ns, seen.st_size, ""
        content = bytes(full.readlink()) if full.is_symlink() else full.read_bytes()
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size, hashlib.sha256(content).hexdigest()


def _is_same(folder: Path, path: str, before: Stamp) -> bool:
    """A file rewritten with the same content counts as changed: in between it may have held anything."""
    return _stamp(folder, path) == before
