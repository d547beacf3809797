"""The folders that the programs on PATH need besides system folders: never a home, never its keys."""

# ruff: noqa: PTH110, PTH112, PTH113, PTH114, PTH115, PTH117, PTH118, PTH119, PTH120
# Places are compared as text, component by component; a run's start compares thousands of them.

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Iterator

from ganger.sandboxes.paths import CREDENTIALS, is_within

_MANAGERS = (
    *(".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".asdf", ".rustup", ".nvm", ".volta", ".sdkman", ".bun"),
    *(".deno", ".proto", ".ghcup", ".juliaup", ".dotnet", ".local/share/mise", ".local/share/uv", ".local/share/pipx"),
)
_PREFIX_PARTS = ("lib", "lib32", "lib64", "libexec", "include", "share")
_PROGRAM_FOLDERS = ("bin", "sbin")
_MOST_ENTRIES = 2000
_LONGEST_SHEBANG = 256


@functools.lru_cache(maxsize=16)
def on_path(path: str, home: str, system: tuple[str, ...]) -> tuple[str, ...]:
    """What the programs in the folders of PATH need outside the system folders."""
    found: dict[str, None] = {}
    for folder in dict.fromkeys(path.split(os.pathsep)):
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            continue
        inside_system = any(is_within(folder, root) for root in system)
        if not inside_system:
            found.update(dict.fromkeys(_prefix(folder, home)))
        if not inside_system or folder == "/usr/local/bin":
            found.update(dict.fromkeys(_entries(folder, home)))
    return tuple(place for place in found if not any(is_within(place, root) for root in system))


def of_program(program: str, home: str) -> tuple[str, ...]:
    """What one program needs: itself, its link targets, and the interpreter in its first line."""
    found = dict.fromkeys(_chase(program, home, depth=4))
    return tuple(place for place in found if os.path.exists(place))


def _entries(folder: str, home: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > _MOST_ENTRIES:
                return
            if entry.is_symlink() or (entry.is_file() and not is_within(folder, "/usr")):
                yield from _chase(entry.path, home, depth=4, itself=False)


def _chase(program: str, home: str, *, depth: int, itself: bool = True) -> Iterator[str]:
    if itself:
        yield from _around(program, home)
    real = os.path.realpath(program)
    if real != program:
        yield from _around(real, home)
        # A link to a link: every folder on the way must exist as well.
        step = program
        while os.path.islink(step) and depth > 0:
            step = os.path.normpath(os.path.join(os.path.dirname(step), os.readlink(step)))
            yield from _around(step, home)
            depth -= 1
    interpreter = _interpreter(real)
    if interpreter and depth > 0:
        yield from _chase(interpreter, home, depth=depth - 1)


def _interpreter(file: str) -> str:
    try:
        with open(file, "rb", buffering=0) as opened:
            first = opened.read(_LONGEST_SHEBANG).partition(b"\n")[0]
    except OSError:
        return ""
    words = first[2:].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") else ""


def _around(file: str, home: str) -> tuple[str, ...]:
    """The folders a program's file needs next to it."""
    if is_within(file, "/usr"):
        return ()
    folder, modules, _ = file.partition("/node_modules/")
    if modules:
        return _safe([f"{folder}/node_modules"], home)
    return _prefix(os.path.dirname(file), home) or _safe([file], home)


@functools.lru_cache(maxsize=1024)
def _prefix(folder: str, home: str) -> tuple[str, ...]:
    for manager in _MANAGERS:
        above, found, _ = f"{folder}/".partition(f"/{manager}/")
        if found:
            return _safe([f"{above}/{manager}"], home)
    above = os.path.dirname(folder)
    if folder.endswith("/.cargo/bin"):
        return _safe([folder, f"{os.path.dirname(above)}/.rustup"], home)
    if os.path.basename(folder) not in _PROGRAM_FOLDERS:
        return _safe([folder], home)
    if os.path.isfile(f"{above}/pyvenv.cfg"):
        return _safe([above], home)
    parts = [part for part in _PREFIX_PARTS if (above, part) != (f"{home}/.local", "share")]
    return _safe([folder, *(f"{above}/{part}" for part in parts)] if above not in ("/", home) else [folder], home)


def _safe(places: list[str], home: str) -> tuple[str, ...]:
    """Never a folder that contains a home or a place of credentials, nor such a place itself."""
    homes = (home, _listed_home())
    keys = [*homes, *(f"{each}/{name}" for each in homes for name in CREDENTIALS)]
    return tuple(p for p in places if p != "/" and os.path.exists(p) and not any(is_within(key, p) for key in keys))


@functools.cache
def _listed_home() -> str:
    """The user's real home, which holds the user's keys even if HOME points elsewhere."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"
