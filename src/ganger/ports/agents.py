"""How one kind of agent CLI is called and how its answer is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ganger.ports.processes import Launch, Launcher, Running

if TYPE_CHECKING:
    from ganger.contracts.heal_decision import HealDecision
    from ganger.contracts.parser import Parsed, Refused
    from ganger.contracts.task_result import TaskResult
    from ganger.core.signs import Heard, Sign


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent kind can do.

    `stream`: its output shows more than its answer. `resume`: a session can continue after its process died. `tokens`
    and `usd`: it reports its usage. `schema`: it can hold its model to a JSON Schema. `turns`: it has a turn limit.
    """

    stdin_prompt: bool = False
    arg_prompt: bool = False
    file_prompt: bool = False
    pty: bool = False
    interactive: bool = False
    stream: bool = False
    resume: bool = False
    tokens: bool = False
    usd: bool = False
    schema: bool = False
    turns: bool = False


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What an agent adapter may know about the attempt.

    `home` is the task's own folder, which outlives the process; `shared` is one folder for all agents of a kind, which
    they may read and only Ganger writes. `session`: the one to continue, or empty. `walled`: in Ganger's sandbox.
    """

    run_id: str
    task_id: str
    attempt: int
    role: str
    workspace: Path
    prompt_file: Path
    log_path: Path
    timeout_sec: float
    environment: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None
    shared: Path | None = None
    session: str = ""
    walled: bool = False


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """`login`: whether it can reach its model, as far as is known without a request to it; None: unknown."""

    ready: bool
    version: str = ""
    details: tuple[str, ...] = ()
    login: bool | None = None


class Reader(Protocol):
    """Reads one process's output as it arrives, line by line."""

    def line(self, line: bytes) -> Iterable[Sign]:
        """Takes a line without its line break. Never raises: an unknown line gives nothing."""

    def end(self) -> Iterable[Sign]:
        """Called when the process has ended."""


class Agent(Protocol):
    """One configured agent. `prepare` says how to call it, `execute` starts it, `hear` and `extract_*` read its log."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def model(self) -> str:
        """The model set for it; empty: its own choice."""

    def furnish(self, context: AttemptContext) -> Mapping[str, bytes]:
        """Files that must be in its home before it starts, by relative path."""

    def prepare(self, context: AttemptContext) -> Launch: ...

    async def execute(self, launch: Launch, launcher: Launcher) -> Running: ...

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused: ...

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused: ...

    def reader(self) -> Reader | None:
        """A reader for output that is watched as it arrives; None: its output has no special form."""

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        """The result of its whole output, or of files in its home where only they show it."""

    def healthcheck(self) -> AgentHealth: ...
