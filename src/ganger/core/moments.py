"""Moments as events carry them."""

from __future__ import annotations

from datetime import datetime


def seconds_between(earlier: str, later: str) -> float:
    if not earlier or not later:
        return 0.0
    return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())
