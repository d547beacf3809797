"""Text from logs and agents, made safe to show."""

from __future__ import annotations

import re

from ganger.contracts.reading.terminal import FULL

_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)")


def clean_text(data: bytes) -> str:
    """A log's bytes as text without terminal codes or control characters."""
    return FULL.apply(data).decode("utf-8", "replace")


def one_line(text: str, longest: int = 1_000) -> str:
    """Text from agents and people as one plain line, which cannot control a terminal or look like several lines."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())[:longest]


def shown_moments(text: str) -> str:
    """Moments to the second, for people: `2026-11-19 06:05:57Z`."""
    return _MOMENT.sub(r"\1 \2Z", text)
