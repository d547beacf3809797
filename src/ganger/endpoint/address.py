"""The address of a run's endpoint, the same for each lead: its socket, its port, and the file that names both."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import socket
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ganger.contracts.worker import PROTOCOL
from ganger.errors import GangerError
from ganger.local.atomic import put_file

FILE = "worker.json"
HOST = "127.0.0.1"
# Many may wait to connect, but few are accepted at once: an accepted connection is read before new ones displace it.
BACKLOG = 512
AT_ONCE = 32
_PREFIX = "ganger-r-"
_SOCKET = "report.sock"
_TEMPORARY = Path("/tmp")  # noqa: S108
# The kernel allows 107 bytes for a socket's path; the rest is for the longest name in it.
_LONGEST = 107 - len("/ganger-r-") - 16 - len("-") - 16 - len("/report.sock")
# Others may pass through the folder, because a confined worker can run as another user; the socket checks who may talk.
_FOLDER_MODE = 0o711
_SOCKET_MODE = 0o666


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """`url` is empty if nothing listens on loopback."""

    socket: Path
    url: str = ""

    @property
    def port(self) -> int:
        try:
            return urlsplit(self.url).port or 0
        except ValueError:
            return 0


def find(folder: Path) -> EndpointAddress:
    """The address of the run's previous lead, as far as it can be used again; else a new one."""
    run = f"{os.geteuid()}:{folder.absolute()}".encode(errors="surrogateescape")
    name = f"{_PREFIX}{hashlib.sha256(run).hexdigest()[:16]}"
    own = Path(f"/run/user/{os.geteuid()}")
    usable = [*([own] if os.access(own, os.W_OK | os.X_OK) else []), *_temporary()]
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
        before = EndpointAddress(Path(str(told["socket"])), str(told["url"]))
    except (OSError, ValueError, TypeError, KeyError):
        before = EndpointAddress(Path())
    places = [place / name for place in usable]
    if before.socket.name == _SOCKET and _is_of_run(before.socket.parent, places):
        places.insert(0, before.socket.parent)
    # A guessable name could be taken beforehand, and only its owner or root could remove it.
    free = next((place for place in places if _can_be_ours(place)), None)
    chosen = free or usable[0] / f"{name}-{secrets.token_hex(8)}"
    return EndpointAddress(chosen / _SOCKET, before.url)


def _temporary() -> list[Path]:
    """This user's own temporary folder, if a socket's path fits and others may pass through; then the shared ones."""
    own = Path(tempfile.gettempdir())
    short = len(os.fsencode(own)) <= _LONGEST
    try:
        passable = all(folder.stat().st_mode & 0o001 for folder in (own, *own.parents))
    except OSError:
        passable = False
    return [own, _TEMPORARY] if own != _TEMPORARY and short and passable else [_TEMPORARY]


def _is_of_run(folder: Path, places: list[Path]) -> bool:
    later = "(-[0-9a-f]{16})?"
    return any(folder.parent == place.parent and re.fullmatch(place.name + later, folder.name) for place in places)


def _can_be_ours(folder: Path) -> bool:
    """Whether it belongs only to this user, or does not exist yet."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_ours_alone(found)


def _is_ours_alone(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022


def publish(folder: Path, address: EndpointAddress) -> None:
    """Writes the address atomically, readable only by the run's owner."""
    text = json.dumps({"socket": str(address.socket), "url": address.url, "protocol": PROTOCOL}) + "\n"
    try:
        put_file(folder / FILE, text.encode(), synced=True)
    except OSError as problem:
        raise _error(
            f"{folder / FILE} cannot be written: {problem.strerror}", "Free space or fix its folder."
        ) from None


def make_folder(folder: Path) -> None:
    """Creates the socket's folder; raises GangerError if another user made it."""
    hint = f"Remove {folder} if you do not know it, then run again."
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=_FOLDER_MODE)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise _error(f"the folder {folder} for reports cannot be used: {problem.strerror}", hint) from None
    try:
        found = os.fstat(descriptor)
        if not _is_ours_alone(found):
            raise _error(f"the folder {folder} for reports was made by another user", hint)
        os.fchmod(descriptor, _FOLDER_MODE)
    finally:
        os.close(descriptor)


def listen_here(path: Path) -> socket.socket:
    """A new socket at this path, replacing whatever was there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        made.bind(str(path))
        path.chmod(_SOCKET_MODE)
        made.listen(BACKLOG)
    except OSError as problem:
        made.close()
        raise _error(f"nothing can listen at {path}: {problem.strerror}", f"Remove {path}, then run again.") from None
    made.setblocking(False)
    return made


def listen_on_loopback(wanted: int, before: int) -> socket.socket:
    """The wanted port; without one, the previous port if it is free, else any."""
    for port in (wanted,) if wanted else (before, 0):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, port))
            made.listen(BACKLOG)
        except (OSError, OverflowError) as problem:
            made.close()
            taken = isinstance(problem, OverflowError) or problem.errno in (errno.EADDRINUSE, errno.EACCES)
            if taken and port and not wanted:
                continue
            hint = "Choose another port, or none: Ganger then finds a free one."
            raise _error(f"nothing can listen on {HOST}:{port}: {problem}", hint) from None
        made.setblocking(False)
        return made
    raise AssertionError("any port is tried last")


def remove(folder: Path) -> None:
    """Removes the folder of a finished run. Between leads it stays, because confined workers hold it open."""
    path = find(folder).socket
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        path.parent.rmdir()


def is_ours(path: Path, made: os.stat_result) -> bool:
    """Whether this socket is still the one at the path: a later lead may have replaced it."""
    with contextlib.suppress(OSError):
        return os.path.samestat(path.lstat(), made)
    return False


def taken(path: Path) -> GangerError:
    return _error(f"another process answers at {path}", "Stop the other lead of this run, then run again.")


def _error(message: str, hint: str) -> GangerError:
    return GangerError(message, hint=hint, code="ENDPOINT_ERROR")
