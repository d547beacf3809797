"""A sandbox to try things in: a home, a project and a workspace of a test's own, and short ways to run programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes import landlock
from ganger.sandboxes.choose import AnySandbox, SandboxSettings, candidates, fault_of
from ganger.sandboxes.trial import TrialOutcome, give, run

KINDS = [pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")), "landlock"]
STRONGEST = "bubblewrap" if shutil.which("bwrap") else "landlock"
ROOT = Path(__file__).resolve().parents[2]
PYTHON = str(Path(sys.executable).resolve())
PATH = os.environ["PATH"]
ORDINARY = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
_OWN_FOLDERS = """mount --bind "$1" /mnt && mount --bind "$2" /srv && shift 2 || exit 99
for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs $folder || exit 99; done
exec "$@" """


@dataclass(frozen=True)
class Place:
    """One workspace in one project, and the walls around it."""

    walls: AnySandbox
    settings: SandboxSettings

    @property
    def workspace(self) -> Path:
        return self.settings.state_dir / "run" / "work" / "own"

    @property
    def room(self) -> Room:
        return Room(writable=(self.workspace,))

    def launch(self, *argv: str, env: Mapping[str, str] | None = None, stdin: Path | None = None) -> Launch:
        log = self.settings.state_dir / "run" / "out.log"
        return Launch("k", argv, self.workspace, env or {"PATH": PATH}, stdin, log, 60)

    def run(self, *argv: str, env: Mapping[str, str] | None = None, room: Room | None = None) -> TrialOutcome:
        return run(self.walls, argv, room or self.room, env or {"PATH": PATH})

    def shell(self, code: str, room: Room | None = None) -> TrialOutcome:
        return self.run("sh", "-c", code, room=room)


def place(folder: Path, kind: str, **wanted: object) -> Place:
    for part in ("home", "project/.ganger/run/work/own"):
        (folder / part).mkdir(parents=True)
    project = folder / "project"
    settings = SandboxSettings(project, project / ".ganger", folder / "home", PATH, **wanted)  # type: ignore[arg-type]
    walls = walls_of(kind, settings)
    made = Place(walls, settings)
    give(walls, made.workspace)
    return made


def walls_of(kind: str, settings: SandboxSettings) -> AnySandbox:
    if kind == "landlock" and not landlock.is_there():
        pytest.skip("needs Landlock in the kernel")
    found = next(
        (walls for walls in candidates(settings) if walls.name == kind and not fault_of(walls, settings)), None
    )
    assert found is not None, f"{kind} does not stand on this machine"
    return found


def with_own_folders(code: str, *arguments: str, user: tuple[str, ...] = ()) -> str:
    """Runs Python as root, or as this user, where /tmp, /var/tmp and /dev/shm are its own: it can harm nobody's.

    The interpreter and Ganger are where every user reaches them.
    """
    words = ["unshare", "--mount", "sh", "-c", _OWN_FOLDERS, "sh", str(ROOT / "src"), str(Path(PYTHON).parents[1])]
    words += [*user, f"/srv/bin/{Path(PYTHON).name}", "-S", "-c", code, *arguments]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/mnt", "HOME": "/tmp"}
    ended = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def as_nobody(code: str, folder: Path) -> str:
    """Runs Python as an ordinary user who can reach the interpreter wherever that is, but no home of root."""
    folder.mkdir(mode=0o755)
    os.chown(folder, 65534, 65534)
    prefix, source = str(Path(PYTHON).parents[1]), str(ROOT / "src" / "ganger")
    world = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/root", "--bind", str(folder), "/mnt"]
    for needed in (prefix, source):
        for above in reversed(Path(needed).parents):
            world += ["--dir", str(above)]
        world += ["--ro-bind", needed, needed]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    env = {
        "PATH": f"{prefix}/bin:/usr/bin:/bin",
        "HOME": "/mnt",
        "PYTHONPATH": str(ROOT / "src"),
        "SECRET": "canary-5e17",
    }
    words = [*world, "--", *user, PYTHON, "-S", "-c", code]
    ended = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
