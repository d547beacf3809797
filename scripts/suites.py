"""Runs the unchanged test-suites of well-known packages as Ganger's checks run, in each sandbox, beside a plain run.

`python scripts/suites.py FOLDER [PACKAGE…]` keeps everything it fetches and makes in FOLDER, outside this repository,
and prints one table; exit code 1 where a sandbox has failures that the plain run has not. Needs pip's index and npm's
registry the first time.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ganger.core.logs.telling_line import ESCAPE_SEQUENCE
from ganger.core.verify.commands import DEFAULT_DENY
from ganger.core.verify.environment import tool_environment
from ganger.core.verify.tiers import TieredStep
from ganger.engine.verification.steps import run_steps
from ganger.launchers.launcher import KeptLauncher
from ganger.ports.sandbox import Room
from ganger.sandboxes.choose import AnySandbox, SandboxSettings, candidates, fault_of
from ganger.sandboxes.none import NoSandbox

_LONGEST_SEC = 600.0
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)|^not ok \d+ (.+)$", re.MULTILINE)
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b|^# (tests|pass|fail) +(\d+)", re.MULTILINE)
PYTEST = "{python} -m pytest -q -rfE -p no:cacheprovider {tests}"


@dataclass(frozen=True)
class Suite:
    """`needs` is what its tests import beside itself; `cmd` is run in its unpacked sources."""

    package: str
    tests: str = "tests"
    needs: tuple[str, ...] = ()
    cmd: str = PYTEST


SUITES = (
    Suite("toolz", "toolz tlz"),
    Suite("more-itertools"),
    Suite("attrs", "tests", ("hypothesis", "cloudpickle", "pytest-xdist")),
    Suite("click"),
    Suite("jinja2", "tests", ("trio",)),
    Suite("markupsafe"),
    Suite("pluggy", "testing"),
    Suite("packaging", "tests", ("pretend", "hypothesis", "tomli-w")),
    Suite("itsdangerous", "tests", ("freezegun",)),
    Suite("werkzeug", "tests", ("ephemeral-port-reserve", "watchdog", "cryptography", "pytest-timeout")),
    Suite("flask", "tests", ("asgiref", "python-dotenv")),
    Suite("joblib", "joblib/test/test_parallel.py -k simple_parallel"),
    Suite("minimist", cmd="node node_modules/tape/bin/tape test/*.js"),
)


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]).resolve()
    wanted = set(arguments[1:])
    rows: list[str] = []
    worse = False
    for suite in SUITES:
        if not wanted or suite.package in wanted:
            row, is_worse = _compared(suite, folder)
            print(row, flush=True)
            rows.append(row)
            worse = worse or is_worse
    kinds = ["plain", *(walls.name for walls in _walls(folder))]
    print("\n".join([f"| package | {' | '.join(kinds)} |", f"|{' --- |' * (len(kinds) + 1)}", *rows]))
    return 1 if worse else 0


def _compared(suite: Suite, folder: Path) -> tuple[str, bool]:
    sources, command, readable = _fetched(suite, folder)
    plain = _plain(command, _fresh(sources, folder / "plain"))
    shown, worse = [_told(plain)], False
    known = _failures(plain)
    for walls in _walls(folder):
        said = asyncio.run(_checked(command, _fresh(sources, folder / "work", walls), walls, readable, folder))
        more = sorted(_failures(said) - known)
        worse = worse or bool(more)
        shown.append(_told(said) + (f"; only here: {', '.join(more[:4])}" if more else ""))
        (folder / f"{suite.package}.{walls.name}.log").write_text(said, encoding="utf-8")
    return f"| {sources.name} | {' | '.join(shown)} |", worse


def _fetched(suite: Suite, folder: Path) -> tuple[Path, str, tuple[Path, ...]]:
    top = folder / suite.package
    if not (top / "done").exists():
        shutil.rmtree(top, ignore_errors=True)
        (top / "sources").mkdir(parents=True)
        _fetch_node(suite, top) if suite.cmd != PYTEST else _fetch_python(suite, top)
        (top / "done").touch()
    sources = next(path for path in (top / "sources").iterdir() if path.is_dir())
    python = top / "venv" / "bin" / "python"
    return sources, suite.cmd.format(python=python, tests=suite.tests), (top / "venv",)


def _fetch_python(suite: Suite, top: Path) -> None:
    _run(sys.executable, "-m", "venv", str(top / "venv"))
    pip = (str(top / "venv" / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check")
    _run(*pip, "install", "pytest", suite.package, *suite.needs)
    _run(*pip, "download", "--no-deps", "--no-binary", suite.package, "-d", str(top), suite.package)
    with tarfile.open(next(top.glob("*.tar.gz"))) as archive:
        archive.extractall(top / "sources", filter="data")


def _fetch_node(suite: Suite, top: Path) -> None:
    _run("npm", "pack", "--silent", "--pack-destination", str(top), suite.package)
    found = next(top.glob("*.tgz"))
    with tarfile.open(found) as archive:
        archive.extractall(top / "sources", filter="data")
    package = (top / "sources" / "package").rename(top / "sources" / found.name.removesuffix(".tgz"))
    _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "tape@5", cwd=package)


def _run(*words: str, cwd: Path | None = None) -> None:
    subprocess.run(words, cwd=cwd, check=True)


def _fresh(sources: Path, place: Path, walls: AnySandbox | None = None) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(sources, place / sources.name, symlinks=True)
    if walls is not None and walls.owner is not None:
        for path in (place / sources.name, *(place / sources.name).rglob("*")):
            os.chown(path, *walls.owner, follow_symlinks=False)
    return place / sources.name


def _plain(command: str, place: Path) -> str:
    words = [word for part in command.split() for word in _spread(part, place)]
    env = tool_environment(os.environ)
    with (place.parent / "log").open("wb") as log:
        subprocess.run(
            words,
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=_LONGEST_SEC,
            check=False,
        )
    return (place.parent / "log").read_text(encoding="utf-8", errors="replace")


def _spread(part: str, place: Path) -> list[str]:
    return sorted(str(p.relative_to(place)) for p in place.glob(part)) if "*" in part else [part]


async def _checked(command: str, place: Path, walls: AnySandbox, readable: tuple[Path, ...], folder: Path) -> str:
    """As a check: by the keeper, confined, with a check's environment."""
    log = folder / "check.log"
    log.unlink(missing_ok=True)
    room = folder / "keeper"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir()
    launcher = KeptLauncher(room, grace_sec=1.0)
    spread = " ".join(word for part in command.split() for word in _spread(part, place))
    try:
        await run_steps(
            (TieredStep("suite", spread),),
            workspace=place,
            log_path=log,
            env=tool_environment(os.environ),
            launcher=launcher,
            deny=DEFAULT_DENY,
            default_timeout_sec=_LONGEST_SEC,
            key_prefix=f"{room}/suite",
            confine=lambda launch: walls.confine(launch, Room(writable=(place,), readable=readable)),
        )
    finally:
        await launcher.close()
    return log.read_text(encoding="utf-8", errors="replace")


def _walls(folder: Path) -> Iterator[AnySandbox]:
    settings = SandboxSettings(folder / "project", folder / "work", Path.home(), os.environ.get("PATH", ""))
    (folder / "project").mkdir(parents=True, exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    known: set[str] = set()
    for walls in candidates(settings):
        if walls.name not in known and not fault_of(walls, settings):
            known.add(walls.name)
            yield walls
    yield NoSandbox()


def _told(said: str) -> str:
    tail = ESCAPE_SEQUENCE.sub("", said[-40_000:])
    counts = {f"{m[2] or m[3]}": m[1] or m[4] for m in _COUNTS.finditer(tail)}
    return ", ".join(f"{number} {name}" for name, number in counts.items()) or said.strip()[-200:].replace("\n", " ")


def _failures(said: str) -> set[str]:
    return {m[1] or m[2] for m in _FAILED.finditer(said)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
