"""Requests that must not be lost: each a file in the desk's spool before it is sent, removed once acknowledged.

Others may write to the desk too, so links in it are not followed, and files that are not requests are left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time

from .errors import Away
from .http import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .http import LeadAnswer

    Send = Callable[[str, str, dict[str, Any]], LeadAnswer]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 16 * 1024 * 1024
_TURN_SEC = 0.05
_LAST_TIME = 10**20 - 1


class SpooledRequest:
    """The outcomes of the requests in a delivery, by name and in order; `away` is why it stopped early."""

    __slots__ = ("answers", "away", "verbs")

    def __init__(self) -> None:
        self.answers: dict[str, LeadAnswer] = {}
        self.verbs: dict[str, str] = {}
        self.away: Away | None = None


class Spool:
    """`desk` must exist; raises OSError if the spool is not a folder in it, or cannot be written."""

    def __init__(self, desk: str) -> None:
        self._desk = os.open(desk, _FOLDER)
        try:
            self._fd = self._inner("spool")
        except OSError:
            os.close(self._desk)
            raise

    def _inner(self, name: str) -> int:
        try:
            os.mkdir(name, 0o700, dir_fd=self._desk)
        except FileExistsError:
            pass
        return os.open(name, _FOLDER, dir_fd=self._desk)

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._desk)

    def names(self) -> list[str]:
        """Every request in it, oldest first."""
        return sorted(name for name in os.listdir(self._fd) if name.endswith(".json") and name[:20].isdigit())

    def has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def was_refused(self, name: str) -> bool:
        try:
            os.stat(f"refused/{name}", dir_fd=self._desk, follow_symlinks=False)
        except OSError:
            return False
        return True

    def put(self, verb: str, token: str, body: dict[str, Any]) -> str:
        """Stores a request durably and returns its name."""
        name = f"{self._moment():020d}-{os.urandom(6).hex()}.json"
        content = encoded({"verb": verb, "token": token, "body": body})
        unfinished = f"{name}.tmp"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._fd)
        try:
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(file, view) :]
                os.fsync(file)
            finally:
                os.close(file)
            os.rename(unfinished, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError:
            self._remove(unfinished)
            raise
        os.fsync(self._fd)
        return name

    def _moment(self) -> int:
        """The time now, but later than everything in the spool: a clock set back does not change the order."""
        newest = max((int(name[:20]) for name in self.names()), default=0)
        return min(max(time.time_ns(), newest + 1), _LAST_TIME)

    def take(self, name: str) -> tuple[str, str, dict[str, Any]] | None:
        """A request of the spool; None for anything else: a torn file, a link, a pipe."""
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError:
            return None
        try:
            kind = os.fstat(file)
            if not stat.S_ISREG(kind.st_mode) or kind.st_size > _LONGEST:
                return None
            found = json.loads(_bytes(file, kind.st_size))
            verb, token, body = found["verb"], found["token"], found["body"]
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            return None
        finally:
            os.close(file)
        whole = isinstance(verb, str) and isinstance(token, str) and isinstance(body, dict)
        return (verb, token, body) if whole else None

    def deliver(self, send: Send, until: float, *, last: str = "") -> SpooledRequest:
        """Sends the requests in order, up to `last`; stops at the first that cannot be sent now.

        Only one process of a worker sends at a time. One that waits too long for its turn has sent nothing.
        """
        done = SpooledRequest()
        if not self._in_turn(until, last):
            return done
        try:
            for name in self.names():
                if last and name > last:
                    break
                request = self.take(name)
                if request is None:
                    continue
                verb, token, body = request
                if verb == "done" and self._lost_report(done):
                    # The done mark says that the report was accepted, and it was not.
                    self._refuse(name)
                    continue
                answer = done.answers[name] = send(verb, token, body)
                done.verbs[name] = verb
                if answer.taken:
                    self._remove(name)
                else:
                    self._refuse(name)
        except Away as away:
            done.away = away
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        return done

    def _lost_report(self, done: SpooledRequest) -> bool:
        return any(verb == "report" and not done.answers[name].taken for name, verb in done.verbs.items())

    def _in_turn(self, until: float, last: str) -> bool:
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until or (last and not self.has(last)):
                    return False
                time.sleep(_TURN_SEC)
            else:
                return True

    def _refuse(self, name: str) -> None:
        """Moves a refused request aside without deleting it."""
        try:
            folder = self._inner("refused")
        except OSError:
            self._remove(name)
            return
        try:
            os.rename(name, name, src_dir_fd=self._fd, dst_dir_fd=folder)
        except FileNotFoundError:
            pass
        finally:
            os.close(folder)

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._fd)
        except FileNotFoundError:
            pass


def _bytes(file: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.read(file, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
