"""The strong sandbox: bubblewrap's namespaces, in which only what is granted exists, and its mounts."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes import filters, machine, process
from ganger.sandboxes.inside import BOOT, PYTHON_FLAGS
from ganger.sandboxes.paths import SYSTEM, only_for_root
from ganger.sandboxes.process import file_of, identity_in, is_listed, owner_of_workspaces, users_with, will_be_missed
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.view import VISIBLE, Access, Spot, View, replaced, view

# ruff: noqa: PTH112, PTH113, PTH114, PTH115, PTH116, PTH120
# Places are compared as text, component by component; a run's start compares thousands of them.


_COPIES = "/run/ganger"
_FOR_ALL = 0o004
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """Options that not every bubblewrap has; found out by trying."""

    sizes: bool = True
    no_nested_users: bool = True


class Mounts:
    """`user` is the user that root becomes; None for an ordinary user, who stays the same and owns everything made
    here."""

    def __init__(self, seen: View, settings: SandboxSettings, options: Options, user: tuple[int, int] | None) -> None:
        self._seen = seen
        self._user = user
        self._size = ("--size", str(settings.file_mb * _MB)) if options.sizes else ()
        self._perms = ("--perms", "0644") if options.sizes else ()
        self._copied = [spot.path for spot in seen.spots if self._is_to_be_copied(spot)]

    def words(self) -> Iterator[str]:
        yield from ("--dir", "/run", "--dir", "/var", "--symlink", "/run", "/var/run")
        for spot in self._seen.spots:
            for folder in reversed(list(self._leading_to(spot.path))):
                yield from ("--dir", folder)
            yield from self._mount(spot)
        for number, path in enumerate(self._copied):
            yield from ("--ro-bind", path, f"{_COPIES}/{number}")
        yield from ("--proc", "/proc", "--dev", "/dev", *self._size, "--tmpfs", "/dev/shm")  # noqa: S108
        if self._user is not None:
            for path in ("/proc/sys", "/proc/sysrq-trigger"):
                yield from ("--ro-bind-try", path, path)
        yield from (*self._perms, "--ro-bind-data", "5", "/etc/passwd")
        if self._user is not None and self._user[0] == 0:
            for path in only_for_root("/etc"):
                yield from _mask(path)
        yield from ("--dir", self._seen.home, "--dir", "/tmp/run")  # noqa: S108
        for path in self._seen.of(Access.HIDDEN):
            if os.path.isdir(path):
                yield from ("--remount-ro", path)
        if not self._copied:
            yield from ("--remount-ro", "/")

    def orders(self) -> Iterator[str]:
        for path in self._seen.of(Access.PRIVATE, Access.HIDDEN):
            if os.path.isdir(path):
                yield f"made={path}"
        if self._user is None:
            return
        yield f"uid={self._user[0]}"
        yield f"gid={self._user[1]}"
        for path in self._made():
            yield f"own={path}"
        yield "shared=/dev/shm"
        for number, path in enumerate(self._copied):
            yield f"copy={_COPIES}/{number}:{path}"

    def _mount(self, spot: Spot) -> Iterator[str]:
        path = spot.path
        if spot.access is Access.PRIVATE:
            yield from (*self._size, "--tmpfs", path)
        elif spot.access is Access.HIDDEN:
            yield from _mask(path)
        elif path in SYSTEM and os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif path not in self._copied:
            yield from ("--bind" if spot.access is Access.WRITE else "--ro-bind", path, path)

    def _made(self) -> Iterator[str]:
        """The private folders, and the folders in them on the way to something granted."""
        own_home = [self._seen.home] if self._exists_only_inside(self._seen.home) else []
        yield from (*self._seen.of(Access.PRIVATE), *own_home, "/tmp/run")  # noqa: S108
        for spot in self._seen.spots:
            around = self._seen.around(os.path.dirname(spot.path))
            if around is not None and around.access is Access.PRIVATE:
                yield from self._leading_to(spot.path)

    def _leading_to(self, path: str) -> Iterator[str]:
        """The parent folders that exist only for this path, lowest first; bubblewrap would close them to all but
        root."""
        folder = os.path.dirname(path)
        while folder != "/" and self._exists_only_inside(folder):
            yield folder
            folder = os.path.dirname(folder)

    def _exists_only_inside(self, folder: str) -> bool:
        around = self._seen.around(folder)
        return around is None or (around.path != folder and around.access not in VISIBLE)

    def _is_to_be_copied(self, spot: Spot) -> bool:
        if self._user is None or self._user[0] == 0 or spot.access is not Access.READ or not os.path.isfile(spot.path):
            return False
        around = self._seen.around(os.path.dirname(spot.path))
        return not os.stat(spot.path).st_mode & _FOR_ALL and (around is None or around.access not in VISIBLE)


def _mask(path: str) -> tuple[str, ...]:
    return ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)


# The descriptors: 3 reports how the agent ended, 4 is the log, 5 the list of users, 6 the prompt. None of bubblewrap's
# own processes keeps the prompt open.
_LEADER = """ulimit -c 0
trap '' HUP INT TERM
users=$1 python=$2
shift 2
exec 4>&1 6<&0
said=$("$@" 3>&1 1>&4 4>&- 0</dev/null 5<<ENDOFUSERS
$users
ENDOFUSERS
)
code=$?
trap - HUP INT TERM
case $said in
s[1-9] | s[1-6][0-9])
  kill "-${said#s}" $$
  # A shell cannot take back that a signal was ignored when it began, as under nohup.
  exec "$python" -I -S -c 'import os, signal, sys
number = int(sys.argv[1])
signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
signal.signal(number, signal.SIG_DFL)
os.kill(os.getpid(), number)' "${said#s}" ;;
e*) exit "$code" ;;
esac
echo "ganger: the sandbox ended before the program in it did (bwrap: exit $code)" >&2
exit 125"""
_ROOT_NEEDS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_CHOWN", "CAP_FOWNER", "CAP_DAC_OVERRIDE")
_PLACES = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"


def find_bwrap(path: str) -> str | None:
    return shutil.which("bwrap", path=f"{_PLACES}:{path}")


class Bubblewrap:
    name = "bubblewrap"

    def __init__(self, settings: SandboxSettings, bwrap: str, options: Options) -> None:
        self.owner = owner_of_workspaces(settings.uid)
        self._settings = settings
        self._bwrap = bwrap
        self._options = options
        self._python = os.path.realpath(sys.executable)

    @property
    def kind(self) -> str:
        """Identifies this sandbox, with its bubblewrap and options."""
        found = Path(self._bwrap).stat()
        return f"{self.name} {self._bwrap} {found.st_size} {found.st_mtime_ns} {self._options}"

    def rebuilt(self, settings: SandboxSettings) -> Bubblewrap:
        """The same kind of sandbox with other settings."""
        return Bubblewrap(settings, self._bwrap, self._options)

    def confine(self, launch: Launch, room: Room) -> Launch:
        """A launch of a missing program is not changed: the launcher's error is clearer than that of a failing
        sandbox."""
        program = file_of(launch)
        if not program and will_be_missed(launch, room, self._settings):
            return launch
        seen = view(self._settings, room, launch, program)
        user = identity_in(room, self.owner) if self.owner is not None else None
        uid, gid = user or (os.geteuid(), os.getegid())
        mounts = Mounts(seen, self._settings, self._options, user)
        home = str(room.home) if room.home is not None else seen.home
        env = process.inside(launch.env, home, renamed=not is_listed(uid), furnished=room.home is not None)
        orders = ["input=6", "report=3", f"network={self._settings.network}", "landlock=scopes", *mounts.orders()]
        orders += machine.orders(self._own_namespaces(user))
        orders += [f"without={name}" for name in process.ADDED_ON_THE_WAY if name not in env]
        counted_apart = user is not None or process.counts_namespaces_apart()
        orders += filters.orders(sockets=self._settings.network != "none")
        orders += process.orders(self._settings, counted_apart=counted_apart)
        inner = (self._python, *PYTHON_FLAGS, BOOT, str(Path(__file__).parents[1]), *orders)
        shown = self._shown_otherwise(room)
        sandbox = (*self._namespaces(user), *mounts.words(), *shown, "--chdir", str(launch.cwd.absolute()))
        leader = ("/bin/sh", "-c", _LEADER, "sh", users_with(uid, gid, home), self._python, self._bwrap)
        named = (program or launch.argv[0], *launch.argv)
        return replace(launch, argv=(*leader, *sandbox, "--", *inner, "--", *named), env=env)

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        return view(self._settings, room, launch, file_of(launch)).shows(str(path))

    def _own_namespaces(self, user: tuple[int, int] | None) -> Iterator[str]:
        """The namespaces that the program inside must not share with the machine, by the kernel's names."""
        yield from ("mnt", "pid", "ipc", "uts")
        if self._settings.network != "allow":
            yield "net"
        if user is None:
            yield "user"

    def _shown_otherwise(self, room: Room) -> Iterator[str]:
        """Replacements for files; each is a copy beside the run that is visible in the file's place."""
        for path, content in replaced(self._settings, room):
            copy = self._settings.state_dir / "shown" / hashlib.sha256(content).hexdigest()[:32]
            if not copy.exists():
                copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                fresh = copy.with_name(f"{copy.name}.{os.getpid()}")
                fresh.write_bytes(content)
                fresh.chmod(0o644)
                fresh.rename(copy)
            yield from ("--ro-bind", str(copy.absolute()), path)

    def _namespaces(self, user: tuple[int, int] | None) -> Iterator[str]:
        yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent")
        if self._settings.network != "allow":
            yield "--unshare-net"
        yield from ("--cap-drop", "ALL")
        if user is not None:
            for capability in _ROOT_NEEDS:
                yield from ("--cap-add", capability)
        else:
            yield "--unshare-user"
            if self._options.no_nested_users:
                yield "--disable-userns"
