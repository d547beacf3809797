"""The weaker sandbox, for a machine without user namespaces: Landlock's rules, the system call filter, the limits.

A process sees all others and every name, but opens only what is granted. Its home and its temporary folder are a real
folder of its own, removed at its end. The probes show what is open here and closed by bubblewrap.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes import filters, process
from ganger.sandboxes.inside import BOOT, PYTHON_FLAGS, ROOMS
from ganger.sandboxes.kernel import landlock_version
from ganger.sandboxes.paths import is_on_an_open_road, only_for_root, open_parts, temporary_folder
from ganger.sandboxes.process import file_of, identity_in, owner_of_workspaces, will_be_missed
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.view import Access, View, view

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_NEEDS_HOME = {"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm"}


def is_there() -> bool:
    return landlock_version() > 0


class Landlock:
    name = "landlock"

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._python = os.path.realpath(sys.executable)
        # A user who cannot reach the workspaces and the programs would be of no use.
        places = (settings.state_dir, Path(self._python), *map(Path, settings.path.split(os.pathsep)))
        self.closed = next((place for place in places if not is_on_an_open_road(place)), None)
        self.owner = owner_of_workspaces(settings.uid) if self.closed is None else None

    @property
    def kind(self) -> str:
        return f"{self.name} {landlock_version()}"

    def rebuilt(self, settings: SandboxSettings) -> Landlock:
        """The same kind of sandbox, with the same users and other settings."""
        made = Landlock(settings)
        made.owner, made.closed = self.owner, self.closed
        return made

    def confine(self, launch: Launch, room: Room) -> Launch:
        """A launch of a missing program is not changed: the launcher's error is clearer than that of a failing
        sandbox."""
        program = file_of(launch)
        if not program and will_be_missed(launch, room, self._settings):
            return launch
        seen = view(self._settings, room, launch, program)
        own = f"{temporary_folder()}/{ROOMS}{os.urandom(8).hex()}"
        home = str(room.home) if room.home is not None else own
        env = process.inside(launch.env, home, renamed=False, furnished=room.home is not None)
        env |= {"TMPDIR": own, "XDG_RUNTIME_DIR": own}
        for name, folder in _NEEDS_HOME.items():
            if (self._settings.home / folder).is_dir():
                env.setdefault(name, str(self._settings.home / folder))
        user = identity_in(room, self.owner or (0, 0)) if os.geteuid() == 0 else None
        orders = ["input=0", f"private={own}", "landlock=files", *_grants(seen, user)]
        # A separate user id owns nothing there; an agent with the operator's user id would reach what the operator
        # shares.
        apart = user is not None and user == self.owner
        if "/dev/shm" not in seen.of(Access.WRITE):  # noqa: S108
            orders += [f"memory={'shared' if apart else 'private'}:{self._settings.file_mb}"]
        orders += [f"uid={user[0]}", f"gid={user[1]}"] if user is not None else []
        orders += [f"without={name}" for name in process.ADDED_ON_THE_WAY if name not in env]
        orders += [f"network={'allow' if self._settings.network == 'allow' else 'none'}"]
        orders += filters.orders(sockets=self._settings.network == "allow")
        orders += process.orders(self._settings, counted_apart=user is not None and user == self.owner)
        inner = (self._python, *PYTHON_FLAGS, BOOT, str(Path(__file__).parents[1]), *orders)
        return replace(launch, argv=(*inner, "--", program or launch.argv[0], *launch.argv), env=env)

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        return view(self._settings, room, launch, file_of(launch)).shows(str(path))


def _grants(seen: View, user: tuple[int, int] | None) -> Iterator[str]:
    """Rules only add rights, so a mask works inside a readable folder, and not inside a writable one."""
    closed = seen.of(Access.HIDDEN)
    if user is not None and user[0] == 0:
        closed += only_for_root("/etc")
    for path in seen.of(Access.READ):
        yield from (f"read={part}" for part in open_parts(path, closed))
    yield from (f"write={path}" for path in seen.of(Access.WRITE))
    # An import lists the folder of the package.
    yield f"list={Path(__file__).parents[2]}"
    yield "read=/proc"
    yield from (f"device=/dev/{name}" for name in _DEVICES)
