"""How often a host may be asked: its rate limits, and a breaker after failures in a row."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

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
        """The number of failures in a row."""
        return self._failures

    def wait(self, now: float) -> float:
        """Seconds until the host may be asked; 0 is now. After a rest the first caller that gets 0 is the probe."""
        if self._open_until is None:
            return 0.0
        if self._probing:
            return max(self._open_until - now, 1.0)
        if now < self._open_until:
            return self._open_until - now
        self._probing = True
        return 0.0

    def let_try(self, now: float) -> None:
        """Allows one request in spite of the breaker, to a caller that limits its own rate."""
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
        """The probe ended without a result: the next call may be the probe."""
        self._probing = False


# On known forges a limit ends within an hour; a wrong header must not stop a run for a day.
MOST_SEC = 6 * 3600.0
# GitHub's rule if its secondary limit names no time.
UNNAMED_SEC = 60.0
_EPOCH = 100_000_000


def limited(status: int, headers: Mapping[str, str], body: bytes, now: float) -> float | None:
    """Seconds to wait if this answer is a rate limit, else None."""
    if status not in (403, 429, 503):
        return None
    after = _retry_after(headers, now)
    if status == 503:
        return after
    emptied = _reset(headers, now)
    if status == 403 and after is None and emptied is None and b"rate limit" not in body[:4000].lower():
        return None
    known = [wait for wait in (after, emptied) if wait is not None]
    return max(known) if known else (UNNAMED_SEC if status == 403 else None)


def emptied(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until the limit is reset, if this answer used the last request."""
    return _reset(headers, now)


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    for prefix in ("x-ratelimit-", "ratelimit-"):
        if headers.get(f"{prefix}remaining", "").strip() == "0":
            reset = _number(headers.get(f"{prefix}reset", ""))
            if reset is not None:
                return _bounded(reset - _their_now(headers, now) if reset > _EPOCH else reset)
    return None


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    seconds = _number(said)
    if seconds is not None:
        return _bounded(seconds)
    moment = _date(said)
    return None if moment is None else _bounded(moment - _their_now(headers, now))


def _their_now(headers: Mapping[str, str], now: float) -> float:
    moment = _date(headers.get("date", ""))
    return now if moment is None else moment


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 20 else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MOST_SEC)
