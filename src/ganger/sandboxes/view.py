"""What a sandboxed process sees of the file system: one list of places, in which the deeper one wins."""

# ruff: noqa: PTH100, PTH110, PTH112, PTH113, PTH120
# Places are compared as text, component by component; a run's start compares thousands of them.

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.concealed import concealed, git_settings
from ganger.sandboxes.paths import CREDENTIALS, SYSTEM, TEMPORARY, depth, is_within, standing_system
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.toolchains import of_program, on_path

_LONGEST_PATH = 4096
_KERNELS_OWN = ("/proc", "/dev")
_SPARE_HOME = "/tmp/home"  # noqa: S108


class Access(StrEnum):
    HIDDEN = "hidden"
    PRIVATE = "private"
    READ = "read"
    WRITE = "write"


VISIBLE = (Access.READ, Access.WRITE)


@dataclass(frozen=True, slots=True)
class Spot:
    path: str
    access: Access


@dataclass(frozen=True, slots=True)
class View:
    """Spots, parents before children. A path in no spot does not exist inside."""

    spots: tuple[Spot, ...]
    home: str

    def around(self, path: str) -> Spot | None:
        """The spot that decides about a path."""
        return next((spot for spot in reversed(self.spots) if is_within(path, spot.path)), None)

    def shows(self, path: str) -> bool:
        """Whether the machine's entry at this path is visible, with links on the way resolved."""
        ways = (os.path.abspath(path), os.path.realpath(path))
        return all(any(is_within(way, own) for own in _KERNELS_OWN) or self._is_seen(way) for way in ways)

    def _is_seen(self, path: str) -> bool:
        around = self.around(path)
        return around is not None and around.access in VISIBLE

    def of(self, *wanted: Access) -> tuple[str, ...]:
        return tuple(spot.path for spot in self.spots if spot.access in wanted)


def view(settings: SandboxSettings, room: Room, launch: Launch, program: str) -> View:
    """The deeper place wins; of several rules for one place the last of: system, masks, grants, hidden.

    Content of an agent's writable place never opens another place: a link there may be the agent's.
    """
    home, masked = _home(str(settings.home))
    decided: dict[str, Access] = dict.fromkeys(standing_system(), Access.READ)
    decided.update(dict.fromkeys(TEMPORARY, Access.PRIVATE))
    if masked:
        decided[home] = Access.PRIVATE
    for masks in ((settings.project, settings.state_dir, *settings.repos), _credentials(settings.home)):
        decided.update((path, Access.HIDDEN) for path in _paths(masks))
    _grant(decided, (*settings.writable, *room.writable), Access.WRITE)
    _grant(decided, (*settings.readable, *room.readable), Access.READ)
    own = {str(place) for place in settings.writable}
    for place in room.fixed:
        # A link may be the agent's, and what the operator opened stays open.
        if os.path.realpath(place) == os.path.abspath(place) and os.path.exists(place) and str(place) not in own:
            decided[os.path.abspath(place)] = Access.READ
    decided.update((path, Access.HIDDEN) for path in _paths((*settings.hidden, *_shown(settings))))
    decided.update((os.path.abspath(path), Access.HIDDEN) for path in room.unread if path.is_dir())
    for path in _needed(settings, launch, program, home, decided):
        if _access(decided, path) not in VISIBLE and path not in decided:
            decided[path] = Access.READ
    return View(tuple(_pruned(decided)), _SPARE_HOME if decided.get(home) is Access.READ else home)


def _own_folder(settings: SandboxSettings, room: Room) -> list[str]:
    """The project's own folder, where the process works in it."""
    own = os.path.realpath(settings.project)
    return [own] if any(os.path.realpath(place) == own for place in room.writable) else []


def replaced(settings: SandboxSettings, room: Room) -> list[tuple[str, bytes]]:
    """Files that are shown with other content: secret ones empty, git's settings without tokens.

    A secret file is shown as an empty file and not as a device, so that programs which read it keep working.
    """
    roots = _own_folder(settings, room)
    empty = [(path, b"") for root in roots for path in concealed(settings, root)]
    empty += [(str(path), b"") for path in room.unread if path.is_file()]
    return [*empty, *(found for root in roots for found in git_settings(root))]


def _grant(decided: dict[str, Access], places: tuple[Path, ...], access: Access) -> None:
    """Both the name and the resolved path, unless the name lies in a place that agents write."""
    for place in sorted(places, key=lambda place: depth(os.path.abspath(place))):
        if _access(decided, os.path.dirname(os.path.abspath(place))) is not Access.WRITE:
            for path in _paths((place,)):
                if decided.get(path) is not Access.WRITE:
                    decided[path] = access


def _access(decided: dict[str, Access], path: str) -> Access:
    around = max((known for known in decided if is_within(path, known)), key=depth, default=None)
    return Access.HIDDEN if around is None else decided[around]


def _home(home: str) -> tuple[str, bool]:
    """The home inside; an account whose home is a system folder, or that has none, gets a new one."""
    own = os.path.isdir(home) and home != "/" and not any(is_within(home, root) for root in SYSTEM)
    return (os.path.abspath(home), True) if own else (_SPARE_HOME, False)


def _credentials(home: Path) -> list[Path]:
    return [home / name for name in CREDENTIALS if os.path.exists(home / name)]


def _shown(settings: SandboxSettings) -> tuple[Path, ...]:
    """The folder that shows the runs, unless it is a link: that may be an agent's, and its target must not be
    masked."""
    return (settings.shown,) if settings.shown is not None and not settings.shown.is_symlink() else ()


def _paths(places: tuple[Path, ...] | list[Path]) -> Iterator[str]:
    """The given names and the resolved paths, so that a link on the way makes no difference."""
    for place in places:
        if os.path.exists(place):
            yield os.path.abspath(place)
            yield os.path.realpath(place)


def _needed(
    settings: SandboxSettings, launch: Launch, program: str, home: str, decided: dict[str, Access]
) -> Iterator[str]:
    folders = [path for path in settings.path.split(os.pathsep) if _access(decided, path) is not Access.WRITE]
    yield str(Path(__file__).parents[1])
    yield from on_path(os.pathsep.join(folders), home, SYSTEM)
    yield from of_program(os.path.realpath(sys.executable), home)
    for each in (program, *launch.programs):
        if each and _access(decided, each) is not Access.WRITE:
            yield from of_program(each, home)
    private = [*_paths((settings.state_dir, *settings.hidden, *_shown(settings))), *_paths(_credentials(settings.home))]
    for word in launch.argv[1:]:
        if _access(decided, os.path.normpath(word)) is not Access.WRITE:
            yield from _named_file(word, private)
    names = os.path.realpath("/etc/resolv.conf")
    if os.path.isfile(names):
        yield names


def _named_file(word: str, private: list[str]) -> tuple[str, ...]:
    """A file that the operator's command line names by its full path, unless it is Ganger's or a key."""
    if not word.startswith("/") or "\0" in word or len(word) >= _LONGEST_PATH:
        return ()
    real = os.path.realpath(word)
    if not os.path.isfile(real) or any(is_within(real, place) for place in private):
        return ()
    return os.path.normpath(word), real


def _pruned(decided: dict[str, Access]) -> Iterator[Spot]:
    """The spots without redundant ones: a mask over something absent, a grant within an equal grant."""
    kept: list[Spot] = []
    for path in sorted(decided, key=depth):
        access = decided[path]
        around = next((spot.access for spot in reversed(kept) if is_within(path, spot.path)), Access.HIDDEN)
        unseen = access is Access.HIDDEN and around not in VISIBLE
        if not unseen and (access is not around or access is Access.PRIVATE):
            kept.append(Spot(path, access))
    return iter(kept)
