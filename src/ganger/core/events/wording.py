"""Words that sentences of several events share."""

from __future__ import annotations

from datetime import UTC, datetime

from ganger.core.model.workers import TierMark

SHORT = 12
_MOST_LISTED = 6


def listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"


def files_of(files: tuple[str, ...]) -> str:
    return listed(files) if len(files) <= 3 else f"{len(files)} files"


def clock(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"


def tier_words(mark: TierMark) -> str:
    again = f" at retry {mark.retry}" if mark.retry else ""
    return f"tier {mark.tier}{f' {mark.name}' if mark.name else ''} {'passed' if mark.success else 'failed'}{again}"
