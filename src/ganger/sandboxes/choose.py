"""Which sandboxes work on this machine, found out by a trial and remembered until the next boot or bubblewrap."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ganger.errors import GangerError
from ganger.local.atomic import put_file
from ganger.local.procfs import boot_id
from ganger.ports.sandbox import Room
from ganger.sandboxes import landlock
from ganger.sandboxes.bubblewrap import Bubblewrap, Options, find_bwrap
from ganger.sandboxes.landlock import Landlock
from ganger.sandboxes.none import NoSandbox
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.trial import TrialOutcome, give, run, throw_away_folder

__all__ = ["AnySandbox", "SandboxSettings", "choose"]

AnySandbox = NoSandbox | Landlock | Bubblewrap

HOW_TO_GET_SANDBOX = "install bubblewrap (apt install bubblewrap) and allow user namespaces"
NO_SHARED_MEMORY = "there is no shared memory (/dev/shm) in this sandbox: checks that use multiprocessing fail"
HOW_TO_SHARE_MEMORY = 'install bubblewrap, or open the machine\'s own: writable = ["/dev/shm"] under [sandbox]'
_TRIAL = "echo x >new && ! cat ../secret 2>/dev/null || exit 1; { echo x >../out; } 2>/dev/null; echo held"
_TRIAL_IN_PLACE = """echo x >new || exit 1
{ echo x >.git/config; echo x >.git/hooks/new; mv .git moved; rm -r .git; } 2>/dev/null
{ echo x >.venv/new; mv .venv moved; } 2>/dev/null
echo held"""
_MEMORY = "sandbox.json"
_stood: set[str] = set()
_kept: dict[str, bool] = {}


def choose(settings: SandboxSettings) -> AnySandbox:
    """The strongest sandbox that works; raises SANDBOX_UNAVAILABLE where one is required and none works."""
    if settings.use == "off":
        return NoSandbox()
    fallen: list[str] = []
    for sandbox in candidates(settings):
        problem = "" if _is_known_to_stand(sandbox, settings) else fault_of(sandbox, settings)
        if not problem:
            _remember(sandbox, settings)
            if settings.use != "require" or not settings.in_place or keeps_in_place(sandbox, settings):
                return sandbox
            problem = "in it .git and installed packages of the project can be written by agents that work there"
        fallen.append(f"{sandbox.name}: {problem}")
    if settings.use == "require":
        other = 'set mode = "local-git" under [workspace]' if settings.in_place else 'set use = "auto" under [sandbox]'
        raise GangerError(
            f"a sandbox is required, and none works on this machine ({'; '.join(fallen) or 'there is none'})",
            hint=f"{HOW_TO_GET_SANDBOX}; or {other}",
            code="SANDBOX_UNAVAILABLE",
        )
    return NoSandbox()


def keeps_in_place(sandbox: AnySandbox, settings: SandboxSettings) -> bool:
    """Whether fixed paths stay protected in a writable folder; tried each time, and never stored where agents can
    write."""
    if isinstance(sandbox, NoSandbox):
        return False
    if sandbox.kind not in _kept:
        _kept[sandbox.kind] = _held_in_place(sandbox, settings)
    return _kept[sandbox.kind]


def _held_in_place(sandbox: AnySandbox, settings: SandboxSettings) -> bool:
    with throw_away_folder() as folder:
        fixed = folder / ".git", folder / ".venv"
        for place in (*fixed, folder / ".git/hooks"):
            place.mkdir()
        (folder / ".git/config").write_text("", encoding="utf-8")
        give(sandbox, folder, *fixed, folder / ".git/hooks", folder / ".git/config")
        before = _listing(folder)
        room = Room(writable=(folder,), fixed=fixed)
        ended = run(sandbox, ("/bin/sh", "-c", _TRIAL_IN_PLACE), room, {"PATH": settings.path})
        after = {path: size for path, size in _listing(folder).items() if path != "new"}
        return (ended.code, ended.out) == (0, "held\n") and after == before


def has_shared_memory(sandbox: AnySandbox, settings: SandboxSettings) -> bool:
    """Whether processes inside can share memory and locks, as Python's `multiprocessing` does; found out by a trial."""
    with throw_away_folder() as folder:
        give(sandbox, folder)
        code = 'f=/dev/shm/ganger-$$; : >"$f" && rm "$f"'
        return run(sandbox, ("/bin/sh", "-c", code), Room(writable=(folder,)), {"PATH": settings.path}).code == 0


def _listing(folder: Path) -> dict[str, int]:
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): 0 if path.is_dir() else path.stat().st_size for path in found}


def candidates(settings: SandboxSettings) -> Iterator[AnySandbox]:
    """The possible sandboxes, strongest first."""
    bwrap = find_bwrap(settings.path)
    if bwrap is not None:
        yield Bubblewrap(settings, bwrap, Options())
        yield Bubblewrap(settings, bwrap, Options(sizes=False, no_nested_users=False))
    if landlock.is_there():
        yield Landlock(settings)


def who(sandbox: AnySandbox) -> str:
    """The user that agents run as in their own workspaces."""
    if sandbox.owner is not None:
        return f"agents become user {sandbox.owner[0]}"
    if os.geteuid() != 0:
        return "agents keep your user id"
    closed = sandbox.closed if isinstance(sandbox, Landlock) else None
    return "agents keep root's user id" + (f" because others cannot enter {closed}" if closed is not None else "")


def fault_of(sandbox: AnySandbox, settings: SandboxSettings) -> str:
    """Why the sandbox does not work; empty when a program inside runs, writes its workspace, and cannot read
    outside."""
    with throw_away_folder() as folder:
        workspace = folder / "workspace"
        workspace.mkdir()
        (folder / "secret").write_text("secret\n", encoding="utf-8")
        give(sandbox, workspace)
        ended = run(sandbox, ("/bin/sh", "-c", _TRIAL), Room(writable=(workspace,)), {"PATH": settings.path})
        if (folder / "out").exists():
            return "a program in it wrote outside"
        return "" if ended.code == 0 and ended.out == "held\n" else _reason(ended)


def _reason(ended: TrialOutcome) -> str:
    said = ended.err.strip().splitlines()
    return said[0][:200] if said else f"a program in it ended with {ended.code} and {ended.out[:100]!r}"


def _is_known_to_stand(sandbox: AnySandbox, settings: SandboxSettings) -> bool:
    mark = _mark(sandbox)
    return mark != "" and (mark in _stood or mark in _remembered(settings))


def _remember(sandbox: AnySandbox, settings: SandboxSettings) -> None:
    """Stores the result; a failure does no harm, because the next run tries again."""
    mark = _mark(sandbox)
    _stood.add(mark)
    with contextlib.suppress(OSError):
        put_file(settings.state_dir / _MEMORY, json.dumps([mark]).encode(), 0o644)


def _remembered(settings: SandboxSettings) -> list[object]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((settings.state_dir / _MEMORY).read_text(encoding="utf-8"))
        return found if isinstance(found, list) else []
    return []


def _mark(sandbox: AnySandbox) -> str:
    """Identifies this sandbox, on this boot of this machine, with these programs, for this user."""
    boot = boot_id()
    return f"{sandbox.kind} {boot} {os.geteuid()} {sys.executable} {sys.version}" if boot else ""
