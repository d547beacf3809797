"""The real agent programs, and test runners of npm's, at pinned versions, in the project's own folder.

`python tests/agents/installed.py [NAME… | cheap]` fetches them, so that no test has to wait for that.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".agents"
# Taken before the tests get a world of their own: where packages come from is the machine's business.
MACHINE = dict(os.environ)
INSTALL_SEC = 900.0
VERSION_SEC = 90.0
FAILED_SEC = 900.0
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True, slots=True)
class Pin:
    """`node` is the oldest major version it runs with; 0: none is needed. `cheap`: its tests run every time."""

    name: str
    package: str
    version: str
    node: int
    bin: str
    cheap: bool

    @property
    def folder(self) -> Path:
        return PLACE / f"{self.name}-{self.version}"


@dataclass(frozen=True, slots=True)
class Installed:
    """`argv` starts with the absolute path of the program; `path` is the PATH it needs."""

    name: str
    version: str
    argv: tuple[str, ...]
    path: str


class CannotInstall(Exception):
    """The machine lacks what it takes; the text says what."""


def pins() -> dict[str, Pin]:
    rows = json.loads(Path(__file__).with_name("pins.json").read_text(encoding="utf-8"))
    return {name: Pin(name=name, **row) for name, row in rows.items()}


def installed(name: str) -> Installed:
    """For tests: the program, fetched where it is not there yet; without npm the test is skipped, under CI it fails."""
    try:
        return fetch(name)
    except CannotInstall as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}, and under CI=true nothing is skipped for want of it", pytrace=False)
        pytest.skip(str(reason))


@cache
def fetch(name: str) -> Installed:
    pin = pins()[name]
    path = _path(pin)
    program = pin.folder / "node_modules" / ".bin" / pin.bin
    if not program.exists():
        with _locked(pin.folder.with_suffix(f"{pin.folder.suffix}.lock")):
            if not program.exists():
                _install_once(pin, path)
    return Installed(pin.name, pin.version, (str(program),), path)


def _path(pin: Pin) -> str:
    """The machine's PATH, with a newer node before it where the machine's is too old for this program."""
    found = MACHINE.get("PATH") or os.defpath
    if pin.node == 0 or _machine_node() >= pin.node:
        return found
    return f"{Path(fetch('node').argv[0]).resolve().parent}{os.pathsep}{found}"


@cache
def _machine_node() -> int:
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, env=MACHINE, check=False)
    except OSError:
        return 0
    number = re.match(r"v(\d+)\.", said.stdout)
    return int(number[1]) if number else 0


def _install_once(pin: Pin, path: str) -> None:
    """What could not be had a moment ago is not waited for again by every test that needs it."""
    failed = pin.folder.with_suffix(f"{pin.folder.suffix}.failed")
    if failed.exists() and time.time() - failed.stat().st_mtime < FAILED_SEC:
        raise CannotInstall(failed.read_text(encoding="utf-8"))
    failed.unlink(missing_ok=True)
    try:
        _install(pin, path)
    except CannotInstall as reason:
        failed.write_text(str(reason), encoding="utf-8")
        raise


def _install(pin: Pin, path: str) -> None:
    """Made beside its place and moved there when it is whole, so that a broken-off one is never used."""
    npm = shutil.which("npm", path=MACHINE.get("PATH"))
    if npm is None:
        raise CannotInstall(f"needs npm to install {pin.package} {pin.version}")
    made = Path(tempfile.mkdtemp(prefix=f".{pin.name}-", dir=PLACE))
    try:
        (made / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        command = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--save-exact",
            "--loglevel=error",
            "--fetch-retries=2",
        ]
        # In its own folder and not by --prefix, which would hide the machine's settings for all from npm.
        done = _run([*command, f"{pin.package}@{pin.version}"], path, INSTALL_SEC, where=made)
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip()[-600:]
            raise CannotInstall(f"npm could not install {pin.package} {pin.version}: {words or 'it does not say why'}")
        _compare(pin, made / "node_modules" / ".bin" / pin.bin, path)
        # A folder without its program is what is left of one that somebody tried to remove.
        shutil.rmtree(pin.folder, ignore_errors=True)
        made.chmod(0o755)
        made.rename(pin.folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _compare(pin: Pin, program: Path, path: str) -> None:
    """npm chooses an older version without a word where the one it was asked for does not fit."""
    with tempfile.TemporaryDirectory() as home:
        said = _run([str(program), "--version"], path, VERSION_SEC, HOME=home, CI="1")
    if pin.version not in f"{said.stdout} {said.stderr}":
        raise CannotInstall(f"{pin.name} says {said.stdout.strip()[-200:]!r}, and {pin.version} is pinned")


def _run(
    command: list[str], path: str, seconds: float, *, where: Path = PLACE, **more: str
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env={**_environment(), "PATH": path, **more},
            cwd=where,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{Path(command[0]).name} was not through after {seconds:g} s") from None


def _environment() -> Mapping[str, str]:
    """The machine's own certificates count also where nobody told node of them."""
    given = {"npm_config_cache": str(PLACE / "npm-cache")}
    if any(name.lower() == "npm_config_cache" for name in MACHINE):
        given.clear()
    if AUTHORITIES.is_file():
        given["NODE_EXTRA_CA_CERTS"] = str(AUTHORITIES)
    return {**given, **MACHINE}


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One process installs, the others wait for it."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / ".gitignore").write_text("*\n", encoding="utf-8")
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(names: list[str]) -> int:
    known = {name: pin for name, pin in pins().items() if name != "node"}
    chosen = [name for name, pin in known.items() if not names or name in names or ("cheap" in names and pin.cheap)]
    unknown = set(names) - set(known) - {"cheap"}
    if unknown:
        sys.stderr.write(f"there is no {', '.join(sorted(unknown))}; known: {', '.join(known)}, cheap\n")
        return 2
    for name in chosen:
        try:
            found = fetch(name)
        except CannotInstall as reason:
            sys.stderr.write(f"{name}: {reason}\n")
            return 1
        sys.stdout.write(f"{name} {found.version} {found.argv[0]}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
