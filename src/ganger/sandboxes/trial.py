"""One program in the walls of a throw-away workspace, to see whether they stand."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ganger.ports import Launch, Room, Sandbox
from ganger.sandboxes.places import temporary_folder
from ganger.scratch import scratch_folder

_PATIENCE_SEC = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


@contextlib.contextmanager
def throw_away_folder() -> Iterator[Path]:
    """One that everybody can enter, as the folders above a workspace are."""
    with scratch_folder("trial", temporary_folder()) as made:
        folder = Path(made)
        folder.chmod(0o755)
        yield folder


def give(walls: Sandbox, *places: Path) -> None:
    """To whoever works within these walls."""
    if walls.owner is not None:
        for place in places:
            os.chown(place, *walls.owner)


def run(
    walls: Sandbox, argv: tuple[str, ...], room: Room, env: Mapping[str, str], stdin: Path | None = None
) -> Outcome:
    """Runs it in the room's first folder."""
    cwd = room.writable[0]
    launch = walls.confine(Launch("trial", argv, cwd, env, stdin, cwd / "log", None), room)
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
            return Outcome(-1, "", str(problem))
    return Outcome(ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace"))
