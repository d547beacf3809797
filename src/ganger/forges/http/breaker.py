"""Whether a host is asked at all: after failures in a row it is left alone for a while, then one call tries it."""

from __future__ import annotations

from ganger.forges.settings import Patience


class Breaker:
    """Time is an argument, in monotonic seconds."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failures = 0
        self._rest = patience.rest_sec
        self._open_until: float | None = None
        self._probing = False

    @property
    def failures(self) -> int:
        """In a row, up to now."""
        return self._failures

    def wait(self, now: float) -> float:
        """Seconds until the host may be asked; 0: now. Who gets 0 from a rested one is its probe."""
        if self._open_until is None:
            return 0.0
        if self._probing:
            return max(self._open_until - now, 1.0)
        if now < self._open_until:
            return self._open_until - now
        self._probing = True
        return 0.0

    def let_try(self, now: float) -> None:
        """Somebody who paces it by other means asks once, whatever was before."""
        if self._open_until is not None and not self._probing:
            self._open_until = now

    def went_well(self) -> None:
        self._failures, self._rest = 0, self._patience.rest_sec
        self._open_until, self._probing = None, False

    def failed(self, now: float) -> None:
        self._failures += 1
        if self._open_until is not None:
            self._rest = min(self._rest * 2, self._patience.rest_most_sec)
        if self._open_until is not None or self._failures >= self._patience.trips:
            self._open_until = now + self._rest
        self._probing = False

    def gave_up(self) -> None:
        """The probe ended without an answer of either kind: the next call may be one."""
        self._probing = False
