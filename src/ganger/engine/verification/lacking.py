"""A check that could not run: whether the change or the environment is to blame, and which setting fixes it.

A worker may have invented what a program prints. So the same steps run without the change: what is missing there too is
the environment's fault, what is missing only with the change is the worker's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from ganger.core.logs.hints import absent_paths, sandbox_hint
from ganger.core.verify.lacks import SIGNAL, Lack
from ganger.engine.verification.proof import Proof
from ganger.engine.verification.steps import StepResult, Verdict, note_in
from ganger.local.run_folder import open_log
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room, Sandbox

if TYPE_CHECKING:
    from ganger.engine.verification.checks import Checks
    from ganger.engine.verification.proving import Job

_LEAST_FREE_BYTES = 1 << 20
_LONGEST_FIRST_LINE = 256
_MOST_LINKS = 8


def log_without_change(log: Path) -> Path:
    return log.with_name(f"{log.name.removesuffix('.log')}.without.log")


class Lacking:
    """Judges the lack of one failed verification."""

    def __init__(self, checks: Checks, job: Job, proof: Proof | None) -> None:
        self.checks, self.job, self.proof = checks, job, proof

    async def judge(self, verdict: Verdict) -> Verdict:
        """A step that stays `not_started` could not run for a reason outside the change. A step that keeps its lack of
        kind `signal` is ended by a signal without the change as well. Any other step has failed."""
        bad = verdict.failed
        if bad is None or bad.lack is None:
            return verdict
        if await self._is_environments(bad, bad.lack):
            if bad.lack.kind == SIGNAL:
                note_in(self.job.log, f"ended by signal {bad.lack.name} each time, with or without the change")
                return verdict
            words = f"{_what(bad.lack)}; {self._remedy(bad.lack)}"
            note_in(self.job.log, f"could not run, with or without the change: {words}")
            return _with(verdict, bad, replace(bad, outcome="not_started", first_error=words))
        return _with(verdict, bad, replace(bad, outcome="failed", lack=None))

    # --- whose fault ------------------------------------------------------------------------------------------------

    async def _is_environments(self, bad: StepResult, lack: Lack) -> bool:
        if lack.kind == "disk":
            return _is_full(self.job.folder)
        if self._is_the_changes_own(lack):
            return False
        if self.proof is None:
            return self._is_seen_missing(lack)
        async with self.proof.without() as copied:
            if copied is None:
                return self._is_seen_missing(lack)
            folder, readable = copied
            log = log_without_change(self.job.log)
            job = replace(
                self.job, folder=folder, log=log, key=f"{self.job.key}.without", fixed=(), made=(), readable=readable
            )
            with self.checks.reported(folder, readable) as reported:
                alone = await self.checks.steps_until(job, bad.name, reported)
        return alone.failed is not None and alone.failed.name == bad.name and lack.is_same(alone.failed.lack)

    def _is_the_changes_own(self, lack: Lack) -> bool:
        """What the change touches, and what its task must create, is the worker's responsibility."""
        if lack.kind not in ("program", "folder") or self.proof is None:
            return False
        name = os.path.normpath(lack.name)
        touched = any(file == name or file.startswith(f"{name}/") for file in self.proof.files)
        return touched or any(
            fnmatchcase(name, wanted) or wanted.startswith(f"{name}/") for wanted in self.proof.promised
        )

    def _is_seen_missing(self, lack: Lack) -> bool:
        """If nothing can be compared, only what Ganger can check itself counts."""
        if lack.kind == "sandbox":
            return True
        if lack.kind == "folder":
            return self.proof is not None
        if lack.kind != "program" or lack.there:
            return False
        if "/" not in lack.name:
            return shutil.which(lack.name, path=self.checks.env.get("PATH")) is None
        return self.proof is not None and not self._place(lack.name).exists()

    # --- how to fix it ----------------------------------------------------------------------------------------------

    def _remedy(self, lack: Lack) -> str:
        if lack.kind == "disk":
            return f"free some space for {self.job.folder.parent}, then ganger run"
        if lack.kind == "sandbox":
            return "ganger doctor says what prevents it"
        if lack.kind == "module":
            return f"install {lack.name} for the Python of the check, or correct the step"
        if lack.kind == "library":
            return "install it, or name its folder in LD_LIBRARY_PATH and in sandbox.readable"
        hidden = self._hidden(lack)
        if hidden:
            return hidden
        named = "/" in lack.name or lack.kind == "folder"
        if named and self.checks.project is not None and os.path.lexists(self.checks.project / lack.name):
            top = os.path.normpath(lack.name).partition("/")[0]
            return f'it is in your project and not tracked by git: linked = ["{top}"] or copied under [workspace]'
        if lack.there:
            return "make it a program this machine can run (chmod +x, its #! line), or correct the step"
        return "install it or correct the step" if not named else "add it to the project or correct the step"

    def _hidden(self, lack: Lack) -> str:
        """A place on the way to a program that is on the machine and not in the sandbox, or nowhere."""
        if lack.kind != "program":
            return ""
        found = shutil.which(lack.name, path=self.checks.env.get("PATH")) if "/" not in lack.name else None
        begin = Path(found) if found is not None else self._place(lack.name)
        launch = plain_launch(self.job.folder, self.checks.env.get("PATH", ""))
        room = self.checks.room(self.job.folder, self.job.readable)
        for place in _way(begin):
            if not os.path.lexists(place):
                return f"it leads to {place}, which does not exist: recreate it" if place != begin else ""
            # A link's target is the next place on the way.
            if not self.checks.sandbox.shows(place.parent if place.is_symlink() else place, launch, room):
                return is_hidden(place)
        return ""

    def _place(self, name: str) -> Path:
        return Path(os.path.normpath(self.job.folder / name))


def _with(verdict: Verdict, bad: StepResult, told: StepResult) -> Verdict:
    return replace(verdict, steps=tuple(told if step is bad else step for step in verdict.steps), failed=told)


def _what(lack: Lack) -> str:
    match lack.kind:
        case "module":
            return f"the module {lack.name} is not installed"
        case "library":
            return f"the library {lack.name} is not there"
        case "folder":
            return f"there is no folder {lack.name}"
        case "disk":
            return f"the disk is full ({lack.said})"
        case "sandbox":
            return lack.said
    if " " in lack.name:
        return lack.said
    if lack.there:
        return f"{lack.name} cannot be executed"
    return f"{lack.name} is not there" if "/" in lack.name else f"{lack.name} is not on PATH"


def _is_full(folder: Path) -> bool:
    try:
        seen = os.statvfs(folder)
    except OSError:
        return False
    return seen.f_bavail * seen.f_frsize < _LEAST_FREE_BYTES or (seen.f_files > 0 and seen.f_favail == 0)


def _way(place: Path) -> Iterator[Path]:
    """A program's file, every link on the way to it, and the interpreter in its first line."""
    for _ in range(_MOST_LINKS):
        yield place
        if place.is_symlink():
            place = Path(os.path.normpath(place.parent / place.readlink()))
            continue
        interpreter = _interpreter(place)
        if not interpreter:
            return
        place = Path(interpreter)


def _interpreter(file: Path) -> str:
    try:
        with open_log(file) as opened:
            words = opened.read(_LONGEST_FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return ""
    named = words[2:].split() if words.startswith(b"#!") else []
    return os.fsdecode(named[0]) if named and named[0].startswith(b"/") else ""


# --- hints ----------------------------------------------------------------------------------------------------------


def is_hidden(place: Path) -> str:
    folder = place.parent.parent if place.parent.name == "bin" else place
    return f'{place} is on this machine but not in the sandbox: add "{folder}" to sandbox.readable'


def hint_at(line: str, sandbox: Sandbox, launch: Launch, room: Room, network: str, around: str = "") -> str:
    """For a person, never for an agent: it says what is on the machine. `around` is the text around the line."""
    for path in absent_paths(line, around):
        place = Path(path)
        if _is_there(place) and not sandbox.shows(place, launch, room):
            return is_hidden(place)
    return sandbox_hint(line, network=network, walled=sandbox.name != "none")


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:
        return False


def plain_launch(folder: Path, path: str) -> Launch:
    """For no program: enough to ask what is visible from a folder."""
    return Launch("", ("",), folder, {"PATH": path}, None, folder / "log", None)
