"""One launched program and everything it started: its limits, its end, and the check that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from ganger.launchers.ledger import EndRecord
from ganger.local.procfs import group_lives, start_ticks
from ganger.ports.processes import Exit, Launch

if TYPE_CHECKING:
    from ganger.launchers.messages import KeeperClient

NEVER = float("inf")
_FIRST_PAUSE_SEC = 0.001
_LONGEST_PAUSE_SEC = 0.02


class ProcessTree:
    """Started at `now` (monotonic). Ended: its leader has ended. Cleared: all its other known processes have ended
    too."""

    def __init__(
        self,
        launch: Launch,
        process: subprocess.Popen[bytes],
        log: int,
        *,
        grace_sec: float,
        now: float,
        tag: int = 0,
    ) -> None:
        self.key = launch.key
        self.pid = process.pid
        self.start_ticks = start_ticks(process.pid) or 0
        self.has_ended = False
        self.look_at = NEVER
        self.waiting: set[KeeperClient] = set()
        self.lost = False
        self.tag = tag
        self._launch = launch
        self._process = process
        self._log = log
        self._grace_sec = grace_sec
        self._began = now
        self._duration_sec = 0.0
        self._expires_at = NEVER if launch.timeout_sec is None else now + launch.timeout_sec
        self._kill_at: float | None = None
        self._killed = False
        self._pause_sec = _FIRST_PAUSE_SEC
        self._timed_out = False
        self._over_output = False

    @property
    def due_at(self) -> float:
        """When its next action is due, unless something happens before."""
        if self.has_ended:
            return self.look_at
        return min(self._expires_at, NEVER if self._kill_at is None or self._killed else self._kill_at)

    @property
    def is_limited(self) -> bool:
        return self._launch.output_limit_bytes is not None and not self.has_ended and not self._over_output

    def see_end(self, now: float) -> bool:
        """Whether the leader has ended. It is not reaped yet, so its id still names its own group and no other."""
        if not self.has_ended and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            self.has_ended = True
            self._duration_sec = now - self._began
            self.look_at = now
        return self.has_ended

    def enforce(self, now: float) -> None:
        """Enforces its time limit and the end of its grace."""
        if now < self.due_at or self.see_end(now):
            return
        if now >= self._expires_at:
            self._timed_out = self._kill_at is None
            self._expires_at = NEVER
            self.terminate(now, self._grace_sec)
        if self._kill_at is not None and now >= self._kill_at and not self._killed:
            self.kill()

    def extend(self, now: float, sec: float) -> bool:
        """Lets it run for at least `sec` from now, unless it is already being stopped."""
        if self.see_end(now) or self._kill_at is not None or self._killed or not sec > 0:
            return False
        self._expires_at = max(self._expires_at, now + sec)
        return True

    def watch_output(self) -> None:
        """Kills a program that writes too much; it gets no grace, in which it would keep writing."""
        limit = self._launch.output_limit_bytes
        if limit is not None and self.is_limited and self.log_bytes() > limit:
            self._over_output = True
            self.kill()

    def terminate(self, now: float, grace_sec: float | None = None) -> None:
        """SIGTERM, and SIGKILL after the grace; a later call can shorten the grace and not extend it."""
        kill_at = now + (self._grace_sec if grace_sec is None else grace_sec)
        if self._kill_at is None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
            self._kill_at = kill_at
        self._kill_at = min(self._kill_at, kill_at)

    def kill(self) -> None:
        self._killed = True
        self._signal(signal.SIGKILL)
        self.look_at = 0.0

    def clear(self, now: float) -> bool:
        """Kills what the leader left, and reaps the leader. False: not everything is gone yet, look again at
        `look_at`."""
        if not self._killed and self._kill_at is not None and now < self._kill_at and group_lives(self.pid):
            return self.wait_longer(now)
        self._killed = True
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._process.wait()
        return not self._group_is_left() or self.wait_longer(now)

    def wait_longer(self, now: float) -> bool:
        self.look_at = now + self._pause_sec
        self._pause_sec = min(self._pause_sec * 2, _LONGEST_PAUSE_SEC)
        return False

    def close(self) -> EndRecord:
        """How it ended; call it only when the tree is cleared."""
        log_bytes = self.log_bytes()
        os.close(self._log)
        code = self._process.returncode
        exit_ = Exit(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=self._timed_out,
            duration_sec=round(self._duration_sec, 6),
            started=True,
            error="",
            over_output=self._over_output,
            lost=self.lost,
            log_bytes=log_bytes,
        )
        return EndRecord(exit_, self._launch.log_path, self.pid, self.start_ticks)

    @property
    def adds_to_a_log(self) -> bool:
        return self._launch.append

    def log_bytes(self) -> int:
        return os.fstat(self._log).st_size

    def _group_is_left(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return group_lives(self.pid)

    def _signal(self, number: signal.Signals) -> None:
        # Once the leader is reaped, its id may belong to another process.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
