"""Timestamps in the format of events."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_between(earlier: str, later: str) -> float:
    if not earlier or not later:
        return 0.0
    return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())


def stamp(seconds: float) -> str:
    """A Unix time in the format of events."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def unix_time(at: str) -> float:
    """The Unix time of a timestamp in an event; 0 for none."""
    return datetime.fromisoformat(at).timestamp() if at else 0.0
