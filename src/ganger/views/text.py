"""Text from logs and agents, made safe to show."""

from __future__ import annotations

from ganger.contracts.terminal import FULL


def clean_text(data: bytes) -> str:
    """A log's bytes as text without terminal codes or control characters."""
    return FULL.apply(data).decode("utf-8", "replace")


def one_line(text: str, longest: int = 1_000) -> str:
    """Text from agents and people as one plain line, which cannot control a terminal or look like several lines."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())[:longest]
