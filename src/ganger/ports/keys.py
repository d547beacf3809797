"""Agents that can say with which key or login they work."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Keyed(Protocol):
    def credentials(self) -> str:
        """What it authenticates with, in words for a person: `the key in OPENAI_API_KEY`. Never the key itself."""

    @property
    def login_hint(self) -> str:
        """How the operator gives it a key or a login."""
