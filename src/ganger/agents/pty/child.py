"""A program in its own terminal: started, read, typed to, and stopped with everything it started."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ganger.agents.child_processes import below

_PIECE = 1024
_READ = 64 * 1024
_DEATH_SIGNAL, _SUBREAPER = 1, 36
_PAUSE_SEC = 0.05
# Interactive programs take keys that come all at once for a paste, or lose them.
_KEY_SEC = 0.06
_KEY = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])|[\xc0-\xff][\x80-\xbf]+|.", re.DOTALL)
_ON_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class PtyChild:
    """`stopped` becomes true when this process is asked to end."""

    def __init__(self, argv: list[str], *, columns: int, rows: int) -> None:
        self._libc = ctypes.CDLL(None)
        # Processes the program leaves behind become our children, so that they are found and stopped too.
        self._libc.prctl(_SUBREAPER, 1, 0, 0, 0)
        self.stopped = False
        self._wake, own = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in _ON_SIGNALS:
            signal.signal(number, self._stop)
        signal.set_wakeup_fd(own, warn_on_full_buffer=False)
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.set_blocking(self._master, False)
        self._waiting = bytearray()
        self._keys: deque[bytes] = deque()
        self._next_key = 0.0
        try:
            self._process = subprocess.Popen(
                argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=self._take_terminal
            )
        finally:
            os.close(slave)

    def _take_terminal(self) -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self._libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)

    def _stop(self, number: int, frame: object) -> None:
        self.stopped = True

    # --- talking ------------------------------------------------------------------------------------------------------

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    @property
    def has_unread(self) -> bool:
        """Whether some typed input is not read yet."""
        return bool(self._waiting or self._keys)

    @property
    def by_line(self) -> bool:
        """Whether its terminal is in line mode, where long lines are cut."""
        try:
            return bool(termios.tcgetattr(self._master)[3] & termios.ICANON)
        except termios.error:
            return False

    def type(self, text: bytes) -> None:
        """Types the text as fast as the program reads it."""
        self._waiting += text

    def press(self, keys: bytes) -> None:
        """Presses one key after another."""
        self._keys.extend(_KEY.findall(keys))

    def read(self, wait_sec: float) -> bytes | None:
        """What it prints within that time; None if its terminal is closed."""
        if self._keys and not self._waiting and time.monotonic() >= self._next_key:
            self._waiting += self._keys.popleft()
            self._next_key = time.monotonic() + _KEY_SEC
        typing = [self._master] if self._waiting else []
        readable, writable, _ = select.select([self._master, self._wake], typing, [], wait_sec)
        if self._wake in readable:
            with suppress(BlockingIOError):
                os.read(self._wake, _PIECE)
        if writable:
            self._type_on()
        return self._print() if self._master in readable else b""

    def _type_on(self) -> None:
        with suppress(BlockingIOError):
            try:
                done = os.write(self._master, self._waiting[:_PIECE])
            except OSError as error:
                if isinstance(error, BlockingIOError):
                    raise
                done = len(self._waiting)
            del self._waiting[:done]

    def _print(self) -> bytes | None:
        try:
            return os.read(self._master, _READ) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    # --- ending -------------------------------------------------------------------------------------------------------

    def end(self, hear: Callable[[bytes], None], *, grace_sec: float) -> None:
        """SIGHUP as from a closing terminal, then SIGTERM, then SIGKILL; returns when no process of it is left."""
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            if self._is_over():
                break
            for pid in below(os.getpid()):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            self.wait(hear, grace_sec)
        with suppress(OSError):
            os.close(self._master)

    def wait(self, hear: Callable[[bytes], None], wait_sec: float) -> bool:
        """Reads until no process of it is left; false after a timeout."""
        last = time.monotonic() + wait_sec
        while not self._is_over():
            if time.monotonic() >= last:
                return False
            if data := self.read(_PAUSE_SEC):
                hear(data)
            elif data is None:
                time.sleep(_PAUSE_SEC)
        return True

    def _is_over(self) -> bool:
        return self.code is not None and not below(os.getpid())
