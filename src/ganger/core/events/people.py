"""What comes from people and accounts during a run: questions, answers, pauses, commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import RunEvent
from ganger.core.events.wording import clock
from ganger.core.model.records import Budget, Policy


@dataclass(frozen=True, slots=True)
class QuestionAsked(RunEvent):
    """A decision that only a person can make. `report` is the request with which a worker of `attempt` asked it.

    A `default` counts once `deadline` (Unix time) is past. `account` and `host` (of a remote or a forge) are those it
    is about, if any.
    """

    shown: ClassVar = True

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

    def sentence(self) -> str:
        return f"question {self.question} ({self.kind}{f', {self.task}' if self.task else ''}): {self.text}"


@dataclass(frozen=True, slots=True)
class QuestionAnswered(RunEvent):
    shown: ClassVar = True

    question: str
    text: str

    def sentence(self) -> str:
        return f"question {self.question} answered: {self.text}"


@dataclass(frozen=True, slots=True)
class AccountPaused(RunEvent):
    """Every worker of this account waits until then (Unix time)."""

    shown: ClassVar = True

    account: str
    until: float
    why: str

    def sentence(self) -> str:
        return f"account {self.account} is waiting for its quota until {clock(self.until)}"


@dataclass(frozen=True, slots=True)
class AccountLimited(RunEvent):
    """How many attempts of this account may run at once; 0 removes the limit."""

    shown: ClassVar = True

    account: str
    at_once: int
    why: str

    def sentence(self) -> str:
        return (
            f"account {self.account}: {f'at most {self.at_once} at once' if self.at_once else 'no limit'} ({self.why})"
        )


@dataclass(frozen=True, slots=True)
class AccountShut(RunEvent):
    """Its key, login or credit was refused: its workers start only after a person has answered, or after `until` (Unix
    time, 0: never by itself); then one worker tries first."""

    shown: ClassVar = True

    account: str
    why: str
    until: float = 0.0

    def sentence(self) -> str:
        return f"account {self.account} is suspended{f' until {clock(self.until)}' if self.until else ''}: {self.why}"


@dataclass(frozen=True, slots=True)
class AccountTried(RunEvent):
    """One worker of an account that was shut may try whether it works again."""

    shown: ClassVar = True

    account: str
    why: str

    def sentence(self) -> str:
        return f"account {self.account}: one worker is trying it: {self.why}"


@dataclass(frozen=True, slots=True)
class AccountWorks(RunEvent):
    """The worker that tried it got an answer from its model: all workers of the account may start."""

    shown: ClassVar = True

    account: str
    why: str

    def sentence(self) -> str:
        return f"account {self.account} works again"


@dataclass(frozen=True, slots=True)
class CommandTaken(RunEvent):
    """What a person requested, and the outcome."""

    shown: ClassVar = True

    number: int
    kind: str
    outcome: str

    def sentence(self) -> str:
        return f"{self.kind}: {self.outcome}"


@dataclass(frozen=True, slots=True)
class RunPaused(RunEvent):
    why: str

    def sentence(self) -> str:
        return f"paused: {self.why}"


@dataclass(frozen=True, slots=True)
class RunResumed(RunEvent):
    why: str

    def sentence(self) -> str:
        return f"resumed: {self.why}"


@dataclass(frozen=True, slots=True)
class SettingsChanged(RunEvent):
    """A person changed these during the run."""

    policy: Policy
    budget: Budget

    def sentence(self) -> str:
        return f"settings changed; concurrency {self.policy.concurrency}"


@dataclass(frozen=True, slots=True)
class DrainRequested(RunEvent):
    shown: ClassVar = True

    why: str

    def sentence(self) -> str:
        return f"draining: {self.why}"


@dataclass(frozen=True, slots=True)
class StopRequested(RunEvent):
    shown: ClassVar = True

    why: str

    def sentence(self) -> str:
        return f"stop requested: {self.why}"
