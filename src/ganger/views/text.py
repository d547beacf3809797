"""Text from logs and agents, made safe to show."""

from __future__ import annotations

from ganger.contracts.terminal import FULL


def clean_text(data: bytes) -> str:
    """A log's bytes as text without terminal codes or control characters."""
    return FULL.apply(data).decode("utf-8", "replace")
