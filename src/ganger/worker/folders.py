"""Where a project's runs are: in its own state folder, or, if agents work in the project itself, in the user's.

The user's folder is found from the project's real path. What is in the project then is only for display; of runs
that are kept there anyway, only those on the list in the user's folder count.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

# The file that says which project a folder is for, and what Ganger made in the project's own state folder.
BOOK = "project.json"
# Each run has one of these: its events where they are a file, its lock wherever they are.
SIGNS = ("ganger.db", "lead.lock")
# The file that says which run was led last. Only leads write it; reading a store changes file times.
LED = "led.json"
_LONGEST_LED = 4096
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_LONGEST_NAME = 40
_LONGEST_BOOK = 4 * 1024 * 1024
# If root works on another user's project, its agents cannot reach root's home.
_FOR_ALL = "/var/lib"


def state_home(root: str, environ: Mapping[str, str]) -> str:
    """The user's folder for state; empty if unknown."""
    given = environ.get("XDG_STATE_HOME", "")
    if given.startswith("/"):
        return given.rstrip("/")
    if os.geteuid() == 0 and _owner(root) != 0:
        return _FOR_ALL
    home = environ.get("HOME", "")
    return f"{home.rstrip('/')}/.local/state" if home.startswith("/") else ""


def user_file(environ: Mapping[str, str]) -> str:
    """The user's own settings, which each project's settings override."""
    home = environ.get("GANGER_HOME")
    if home:
        return f"{home}/config.toml"
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME') or ''}/.config"
    return f"{base}/ganger/config.toml"


def private_folder(root: str, environ: Mapping[str, str]) -> str:
    """The user's folder for this project, with a name that is recognisable and unique to its path."""
    import hashlib

    base, real = state_home(root, environ), os.path.realpath(root)
    if not base:
        return ""
    name = "".join(c for c in os.path.basename(real) if c in _PLAIN).strip(".")[:_LONGEST_NAME] or "project"
    return f"{base}/ganger/{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"


def read_book(private: str) -> dict[str, Any] | None:
    try:
        with open(f"{private}/{BOOK}", encoding="utf-8") as stream:
            book = json.loads(stream.read(_LONGEST_BOOK))
    except (OSError, ValueError, RecursionError):
        return None
    return book if isinstance(book, dict) else None


def listed(book: Mapping[str, Any]) -> list[str]:
    """The names that Ganger made in the project's own state folder."""
    names = book.get("shown")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def run_folders(shown: str, private: str, kept_in: Callable[[str], list[str]] | None = None) -> list[str]:
    """The folders of the project's runs. Links are only for display, and folders that agents put there do not count.

    `kept_in` finds the runs of a folder. Without it they are known by a file: a worker is plain files for any Python,
    so it opens no store and asks none.
    """
    found, book = kept_in or _kept_in, read_book(private) if private else None
    if book is None:
        return found(shown)
    own = found(private)
    names = set(listed(book)) - {os.path.basename(folder) for folder in own}
    return own + [folder for folder in found(shown) if os.path.basename(folder) in names]


def newest_first(folders: Iterable[str]) -> list[str]:
    """Sorted by the time of the last start or continuation, independent of clocks and file times. A copy of a folder
    comes after it; runs of earlier versions, which have no number, come last."""
    return sorted(folders, key=_led_last, reverse=True)


def lead_number(folder: str) -> int:
    """The number of its last lead, counted over all runs of the project; 0 if unknown."""
    return _led(folder)[0]


def _led_last(folder: str) -> tuple[int, bool, int, str]:
    number, name = _led(folder)
    try:
        # Written only by leads, never by commands that read.
        written = os.lstat(f"{folder}/state.json").st_mtime_ns
    except OSError:
        written = 0
    return number, name == os.path.basename(folder), written, folder


def _led(folder: str) -> tuple[int, str]:
    try:
        with open(os.open(f"{folder}/{LED}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as stream:
            noted = json.loads(stream.read(_LONGEST_LED))
    except (OSError, ValueError, RecursionError):
        return 0, ""
    number = noted.get("number") if isinstance(noted, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        return 0, ""
    return number, str(noted.get("folder", ""))


def _kept_in(above: str) -> list[str]:
    try:
        folders = sorted(entry.path for entry in os.scandir(above) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [folder for folder in folders if any(_is_file(f"{folder}/{sign}") for sign in SIGNS)]


def _is_file(path: str) -> bool:
    import stat

    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _owner(path: str) -> int:
    try:
        return os.stat(path).st_uid
    except OSError:
        return 0
