"""A view as bubblewrap's mounts, parents first, and what the program inside still has to do with them as root."""

# ruff: noqa: PTH112, PTH113, PTH114, PTH115, PTH116, PTH120
# Places are compared as text, component by component; a run's start compares thousands of them.

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from ganger.sandboxes.paths import SYSTEM, only_for_root
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.view import VISIBLE, Access, Spot, View

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
