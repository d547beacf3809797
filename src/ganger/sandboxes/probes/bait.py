"""Where attacks are tried: a home, a project with a run in it and a neighbour, all made for the purpose, with bait."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.trial import throw_away_folder

_PROCESSES, _FILE_MB = 48, 64
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
_SECRET_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Yard:
    """`traces` finds what attacks changed outside; their own reports from inside do not count for that."""

    folder: Path
    name: str
    canary: str
    settings: SandboxSettings
    real_home: str
    victim: int
    tcp: socket.socket
    udp: socket.socket

    @property
    def project(self) -> Path:
        return self.settings.project

    @property
    def workspace(self) -> Path:
        return self.settings.state_dir / "run" / "work" / "own"

    @property
    def private(self) -> Path:
        """Where a run in direct mode is stored: outside the project, in which its agents work."""
        return self.folder / "state" / "project" / "direct"

    @property
    def in_place(self) -> SandboxSettings:
        """The settings for direct mode."""
        return replace(self.settings, state_dir=self.private.parent, shown=self.settings.state_dir)

    @property
    def prompt(self) -> Path:
        return self.folder / "prompt.md"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def fixed(self) -> tuple[Path, ...]:
        """What an agent that works in the project may read but not write."""
        return self.project / ".git", self.project / ".venv"

    def told(self) -> dict[str, str | int]:
        """What the attacker knows: everything."""
        return {
            "home": str(self.settings.home),
            "real_home": self.real_home,
            "project": str(self.project),
            "state": str(self.settings.state_dir),
            "private": str(self.private),
            "outside": str(self.outside),
            "secret": str(self.outside / "secret"),
            "tmp_file": str(self.outside / "secret"),
            "shm_file": str(_SHARED_MEMORY / self.name),
            "socket": str(self.outside / "socket"),
            "agent_socket": str(self.settings.home / ".ssh" / "agent"),
            "name": self.name,
            "canary": self.canary,
            "victim": self.victim,
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "processes": _PROCESSES,
            "file_mb": _FILE_MB,
        }

    def traces(self) -> dict[str, str]:
        written = [place / "written" for place in (self.outside, self.project, self.settings.home)]
        moved = [place.with_name(f"{place.name}.moved") for place in self._parents()]
        found = {
            "write-outside": [str(path) for path in written if path.exists()],
            "link-out-and-write": [str(path) for path in [self.outside / "linked"] if path.exists()],
            "rename-parents": [str(path) for path in moved if path.exists()],
            **self._of_fixed(),
            "change-modes-outside": ["a mode"] if self._mode_was_changed() else [],
            "reach-udp": ["a datagram"] if self._was_reached() else [],
            "rewrite-prompt": [str(self.prompt)] if self.prompt.read_text(encoding="utf-8") != self.canary else [],
        }
        return {name: f"left a trace: {', '.join(paths)}" if paths else "" for name, paths in found.items()}

    def _of_fixed(self) -> dict[str, list[str]]:
        """What differs from the original layout, also where the whole folder was replaced."""
        git, packages = self.fixed
        made = {
            "write-git-hooks-in-place": (git, ("hooks/post-checkout",)),
            "write-git-config-in-place": (git, ("config", "config.worktree", "commondir")),
            "write-git-info-in-place": (git, ("info/attributes", "info/exclude")),
            "write-packages-in-place": (packages, ("bin/python", "lib/start.pth")),
        }
        found = {
            name: [f"{place}/{n}" for n in names if self._was_written(place, n)]
            for name, (place, names) in made.items()
        }
        for name, place in (("replace-git-in-place", git), ("replace-packages-in-place", packages)):
            found[name] = [str(place)] if _old(place).exists() else []
        return found

    def _was_written(self, place: Path, name: str) -> bool:
        path = (_old(place) if _old(place).exists() else place) / name
        laid = _git_config(self.canary) if name == "config" else self.canary
        return path.exists() and path.read_text(encoding="utf-8") != laid

    def _was_reached(self) -> bool:
        self.udp.setblocking(False)
        try:
            return bool(self.udp.recv(64))
        except BlockingIOError:
            return False

    def put_back(self) -> None:
        for place in self._parents():
            with contextlib.suppress(OSError):
                place.with_name(f"{place.name}.moved").rename(place)

    def _parents(self) -> tuple[Path, ...]:
        return self.settings.home, self.project, self.settings.state_dir

    def _mode_was_changed(self) -> bool:
        return (self.outside / "secret").stat().st_mode & 0o777 != _SECRET_MODE


def _old(place: Path) -> Path:
    return place.with_name(f"{place.name}.old")


@contextlib.contextmanager
def lay_out(settings: SandboxSettings) -> Iterator[Yard]:
    """A yard for a sandbox with these settings; it is removed afterwards."""
    name, canary = f"ganger-probe-{os.urandom(6).hex()}", f"canary-{os.urandom(8).hex()}"
    with throw_away_folder() as folder, contextlib.ExitStack() as undo:
        own = _settings(folder, settings)
        _lay_bait(folder, own, canary)
        _own_as(own.project, settings.project)
        _listen(undo, socket.AF_UNIX, str(folder / "outside" / "socket"))
        _listen(undo, socket.AF_UNIX, str(own.home / ".ssh" / "agent"))
        _listen(undo, socket.AF_UNIX, f"\0{name}")
        shared = _SHARED_MEMORY / name
        undo.callback(shared.unlink, missing_ok=True)
        with contextlib.suppress(OSError):
            shared.write_text(canary, encoding="utf-8")
        tcp = _listen(undo, socket.AF_INET, ("127.0.0.1", 0))
        udp = undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        yard = Yard(folder, name, canary, own, _real_home(settings), _neighbour(undo, name, canary), tcp, udp)
        _lay_private_bait(yard)
        undo.callback(yard.put_back)
        yield yard


def _real_home(settings: SandboxSettings) -> str:
    """The user's name; in a container a user may have only an id."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return str(settings.home)


def _settings(folder: Path, settings: SandboxSettings) -> SandboxSettings:
    project = folder / "project"
    return replace(
        settings,
        project=project,
        state_dir=project / ".ganger",
        home=folder / "home",
        hidden=(),
        readable=(),
        writable=(),
        processes=_PROCESSES,
        file_mb=_FILE_MB,
    )


def _lay_bait(folder: Path, settings: SandboxSettings, canary: str) -> None:
    home, run = settings.home, settings.state_dir / "run"
    (run / "work" / "own").mkdir(parents=True)
    for path in (
        *(home / name for name in ("notes.txt", ".netrc", ".ssh/id_ed25519", ".aws/credentials")),
        *(settings.project / ".env", run / "ganger.db", run / "work/other/file.txt"),
        *(folder / "outside" / "secret", folder / "prompt.md"),
        *(settings.project / ".git" / name for name in ("config", "hooks/sample", "info/exclude")),
        *(settings.project / ".venv" / name for name in ("bin/python", "lib/package.py")),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(canary, encoding="utf-8")
        path.chmod(_SECRET_MODE)
    (settings.project / ".git" / "config").write_text(_git_config(canary), encoding="utf-8")
    (home / "notes.txt").chmod(0o644)


def _git_config(canary: str) -> str:
    """A git configuration with a token in it."""
    return f'[remote "origin"]\n\turl = https://me:{canary}@host.example/x\n'


def _own_as(folder: Path, pattern: Path) -> None:
    """Gives the project to the user who works in it."""
    if os.geteuid() == 0 and pattern.is_dir():
        found = pattern.stat()
        os.chown(folder, found.st_uid, found.st_gid)


def _lay_private_bait(yard: Yard) -> None:
    """The run's folder, with the links in the project that point to it."""
    shown = yard.settings.state_dir / yard.private.name
    for folder in (yard.private, shown):
        folder.mkdir(parents=True, mode=0o700)
    for name in ("ganger.db", "worker.key"):
        (yard.private / name).write_text(yard.canary, encoding="utf-8")
        (yard.private / name).chmod(_SECRET_MODE)
        (shown / name).symlink_to(yard.private / name)


def _listen(undo: contextlib.ExitStack, family: int, address: str | tuple[str, int]) -> socket.socket:
    made = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
    made.bind(address)
    made.listen(8)
    return made


def _neighbour(undo: contextlib.ExitStack, name: str, canary: str) -> int:
    """A process that waits until its input ends, with a name in its command line and a secret in its environment."""
    argv = ["/bin/sh", "-c", "read line", name]
    process = subprocess.Popen(argv, env={"SECRET": canary}, stdin=subprocess.PIPE)
    undo.callback(process.communicate)
    return process.pid
