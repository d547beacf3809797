"""The versions of agent programs: asked once per program file, because some take seconds."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

_WITHIN_SEC = 20.0
_MOST_KEPT = 200
NUMBERED = re.compile(r"\d+\.\d+")
_MAJOR = re.compile(r"(\d+)\.\d+")


def version_of(argv: tuple[str, ...], env: Mapping[str, str], cache: Path | None) -> str:
    """The line of `--version` with a number; empty if there is none."""
    key = _key(argv)
    known = _read(cache)
    if key and key in known:
        return known[key]
    said = _ask(argv, env)
    if key and said and cache is not None:
        _write(cache, {**known, key: said})
    return said


def cache_in(environ: Mapping[str, str]) -> Path | None:
    base = environ.get("XDG_CACHE_HOME") or (f"{environ['HOME']}/.cache" if environ.get("HOME") else "")
    return Path(base) / "ganger" / "agent-versions.json" if base else None


def is_other_major(version: str, tried: str) -> bool:
    """Whether the program is of another generation than the one its adapter was tried with."""
    found, known = _MAJOR.search(version), _MAJOR.search(tried)
    return found is not None and known is not None and found[1] != known[1]


def _ask(argv: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Runs the program; one that does not answer is killed with everything it started."""
    words = [*argv, "--version"]
    try:
        asked = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return ""
    with asked:
        try:
            said = asked.communicate(timeout=_WITHIN_SEC)[0]
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(asked.pid, signal.SIGKILL)
            return ""
    lines = said.decode("utf-8", "replace").strip().splitlines() if asked.returncode == 0 else []
    return next((line.strip()[:80] for line in lines if NUMBERED.search(line)), "")


def _key(argv: tuple[str, ...]) -> str:
    """The cache key: the program's file and its link target."""
    try:
        real = Path(argv[0]).resolve(strict=True)
        found = real.stat()
    except OSError:
        return ""
    return f"{' '.join(argv)}|{real}|{found.st_size}|{found.st_mtime_ns}"


def _read(cache: Path | None) -> dict[str, str]:
    try:
        data = json.loads(cache.read_text(encoding="utf-8")) if cache is not None else {}
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, dict) else {}


def _write(cache: Path, known: Mapping[str, str]) -> None:
    """Writes the cache; a failure is ignored."""
    kept = dict(list(known.items())[-_MOST_KEPT:])
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
        fresh.write_text(json.dumps(kept), encoding="utf-8")
        fresh.replace(cache)
