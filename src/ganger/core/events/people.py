"""What comes from people and accounts during a run: questions, answers, pauses, commands."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.records import Budget, Policy


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A decision that only a person can make. `report` is the request with which a worker of `attempt` asked it.

    A `default` counts once `deadline` (Unix time) is past. `account` and `host` (of a remote or a forge) are those it
    is about, if any.
    """

    question: str
    task: str
    kind: str
    text: str
    attempt: int = 0
    report: str = ""
    context: str = ""
    options: tuple[str, ...] = ()
    default: str = ""
    deadline: float = 0.0
    account: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    question: str
    text: str


@dataclass(frozen=True, slots=True)
class AccountPaused:
    """Every worker of this account waits until then (Unix time)."""

    account: str
    until: float
    why: str


@dataclass(frozen=True, slots=True)
class AccountLimited:
    """How many attempts of this account may run at once; 0 removes the limit."""

    account: str
    at_once: int
    why: str


@dataclass(frozen=True, slots=True)
class AccountShut:
    """Its key, login or credit was refused: its workers start only after a person has answered, or after `until` (Unix
    time, 0: never by itself); then one worker tries first."""

    account: str
    why: str
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class AccountTried:
    """One worker of an account that was shut may try whether it works again."""

    account: str
    why: str


@dataclass(frozen=True, slots=True)
class AccountWorks:
    """The worker that tried it got an answer from its model: all workers of the account may start."""

    account: str
    why: str


@dataclass(frozen=True, slots=True)
class CommandTaken:
    """What a person requested, and the outcome."""

    number: int
    kind: str
    outcome: str


@dataclass(frozen=True, slots=True)
class RunPaused:
    why: str


@dataclass(frozen=True, slots=True)
class RunResumed:
    why: str


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """A person changed these during the run."""

    policy: Policy
    budget: Budget


@dataclass(frozen=True, slots=True)
class DrainRequested:
    why: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    why: str
