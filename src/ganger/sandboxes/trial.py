"""Runs one program in a sandbox with a temporary workspace, to see whether the sandbox works."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ganger.local.scratch import scratch_folder
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room, Sandbox
from ganger.sandboxes.paths import temporary_folder

_PATIENCE_SEC = 60.0


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    code: int
    out: str
    err: str


@contextlib.contextmanager
def throw_away_folder() -> Iterator[Path]:
    """A temporary folder that every user can enter, like the folders above a workspace."""
    with scratch_folder("trial", temporary_folder()) as made:
        folder = Path(made)
        folder.chmod(0o755)
        yield folder


def give(sandbox: Sandbox, *places: Path) -> None:
    """Gives files to the user of this sandbox."""
    if sandbox.owner is not None:
        for place in places:
            os.chown(place, *sandbox.owner)


def run(
    sandbox: Sandbox, argv: tuple[str, ...], room: Room, env: Mapping[str, str], stdin: Path | None = None
) -> TrialOutcome:
    """Runs the program in the room's first folder."""
    cwd = room.writable[0]
    launch = sandbox.confine(Launch("trial", argv, cwd, env, stdin, cwd / "log", None), room)
    with open(stdin or os.devnull, "rb") as opened:
        try:
            ended = subprocess.run(
                launch.argv,
                env=dict(launch.env),
                cwd=launch.cwd,
                stdin=opened,
                capture_output=True,
                start_new_session=True,
                check=False,
                timeout=_PATIENCE_SEC,
            )
        except (OSError, subprocess.SubprocessError) as problem:
            return TrialOutcome(-1, "", str(problem))
    return TrialOutcome(ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace"))
