"""Which walls this machine can build, found out by building them once."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ganger.errors import GangerError
from ganger.ports import Launch, Room
from ganger.sandboxes import landlock
from ganger.sandboxes.bare import Bare
from ganger.sandboxes.bubblewrap import Bubblewrap, find_bwrap
from ganger.sandboxes.landlock import Landlock
from ganger.sandboxes.mounts import Options
from ganger.sandboxes.settings import SandboxSettings

__all__ = ["SandboxSettings", "Walls", "choose"]

Walls = Bare | Landlock | Bubblewrap

_TRIAL = "echo x >new && ! cat ../secret 2>/dev/null || exit 1; { echo x >../out; } 2>/dev/null; echo held"
_TRIAL_SEC = 20.0
_tried: dict[tuple[object, ...], bool] = {}


def choose(settings: SandboxSettings) -> Walls:
    """The strongest walls that stand; raises SANDBOX_UNAVAILABLE where some are required and none does."""
    if settings.use == "off":
        return Bare()
    for walls in _candidates(settings):
        if stands(walls, settings):
            return walls
    if settings.use == "require":
        raise GangerError(
            "a sandbox is required, and this machine has none that holds",
            hint="apt install bubblewrap, allow user namespaces (ganger doctor says what is missing), "
            'or set [sandbox] use = "auto"',
            code="SANDBOX_UNAVAILABLE",
        )
    return Bare()


def _candidates(settings: SandboxSettings) -> Iterator[Walls]:
    bwrap = find_bwrap(settings.path)
    if bwrap is not None:
        yield Bubblewrap(settings, bwrap, Options())
        yield Bubblewrap(settings, bwrap, Options(sizes=False, no_nested_users=False))
    if landlock.is_there():
        yield Landlock(settings)


def stands(walls: Walls, settings: SandboxSettings) -> bool:
    """Whether a program runs within them, writes its workspace, and neither sees nor writes what it must not."""
    with tempfile.TemporaryDirectory(prefix="ganger-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "workspace").mkdir()
        (folder / "secret").write_text("secret\n")
        if walls.owner is not None:
            os.chown(folder / "workspace", *walls.owner)
        launch = Launch(
            "", ("/bin/sh", "-c", _TRIAL), folder / "workspace", {"PATH": settings.path}, None, folder / "log", None
        )
        inside = walls.confine(launch, Room(writable=(folder / "workspace",)))
        try:
            ended = subprocess.run(
                inside.argv,
                env=dict(inside.env),
                cwd=inside.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                start_new_session=True,
                check=False,
                timeout=_TRIAL_SEC,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return ended.returncode == 0 and ended.stdout == b"held\n" and not (folder / "out").exists()
