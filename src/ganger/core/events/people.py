"""What people and accounts have to say while a run goes on: questions, answers, pauses, commands."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.records import Budget, Policy


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """Something only a person can decide. `report` is the request with which a worker of `attempt` asked it.

    With a `default`, that counts once `deadline` (Unix time) is past. `account` is the one it is about, if any, and
    `host` the one of a remote or a forge.
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
    """How many attempts of this account may run at once; 0 takes the limit away."""

    account: str
    at_once: int
    why: str


@dataclass(frozen=True, slots=True)
class AccountShut:
    """Its key, login or credit was refused: nobody of it starts before somebody has answered, or before `until` (Unix
    time, 0: never by itself); then one worker tries first."""

    account: str
    why: str
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class AccountTried:
    """One worker of an account that was shut may see whether it works again."""

    account: str
    why: str


@dataclass(frozen=True, slots=True)
class AccountWorks:
    """Whoever tried it got an answer of its model: all of its workers may start."""

    account: str
    why: str


@dataclass(frozen=True, slots=True)
class CommandTaken:
    """What a person asked for, and what came of it."""

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
    """A person changed these while the run went on."""

    policy: Policy
    budget: Budget


@dataclass(frozen=True, slots=True)
class DrainRequested:
    why: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    why: str
