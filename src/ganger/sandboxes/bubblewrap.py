"""The strong sandbox: bubblewrap's namespaces, which hold only what is granted, and a last program without privileges.

sh (stays until the agent's grace is over; ends with the agent's own code or signal)
└─ bwrap (separate mounts, processes, network, IPC)
   └─ ganger.sandboxes.inside (user, limits, filter; reports how the agent ended)
      └─ the agent
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ganger.ports import Launch, Room
from ganger.sandboxes import filters, machine
from ganger.sandboxes.inside import BOOT, PYTHON_FLAGS
from ganger.sandboxes.mounts import Mounts, Options
from ganger.sandboxes.process import environment, limits
from ganger.sandboxes.process.identity import identity_in, is_listed, owner_of_workspaces, users_with
from ganger.sandboxes.process.program import file_of, will_be_missed
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.view import replaced, view

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
        env = environment.inside(launch.env, home, renamed=not is_listed(uid), furnished=room.home is not None)
        orders = ["input=6", "report=3", f"network={self._settings.network}", "landlock=scopes", *mounts.orders()]
        orders += machine.orders(self._own_namespaces(user))
        orders += [f"without={name}" for name in environment.ADDED_ON_THE_WAY if name not in env]
        counted_apart = user is not None or limits.counts_namespaces_apart()
        orders += filters.orders(sockets=self._settings.network != "none")
        orders += limits.orders(self._settings, counted_apart=counted_apart)
        inner = (self._python, *PYTHON_FLAGS, BOOT, str(Path(__file__).parents[1]), *orders)
        shown = self._shown_otherwise(room)
        walls = (*self._namespaces(user), *mounts.words(), *shown, "--chdir", str(launch.cwd.absolute()))
        leader = ("/bin/sh", "-c", _LEADER, "sh", users_with(uid, gid, home), self._python, self._bwrap)
        named = (program or launch.argv[0], *launch.argv)
        return replace(launch, argv=(*leader, *walls, "--", *inner, "--", *named), env=env)

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
