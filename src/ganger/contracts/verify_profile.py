"""The verify profiles 2.0: the operator's named lists of verification commands."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ganger.contracts.model import Contract, Given, ListOf, NonEmpty, Positive


class Step(Contract):
    """One command that must succeed."""

    name: NonEmpty
    cmd: NonEmpty
    cwd: Given[str] = None
    timeout_sec: Given[Positive] = None


class Profile(Contract):
    """Commands run in order, and whether a failure undoes the task's writes."""

    steps: Annotated[ListOf[Step], Field(min_length=1)]
    rollback_on_failure: bool = True


class VerifyProfiles(Contract):
    """Profiles by name."""

    profiles: dict[str, Profile]
