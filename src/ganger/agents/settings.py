"""What an agent's section of the config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """How a program that only talks to a terminal is spoken to. Patterns are regular expressions.

    `ready`: it waits for a task (empty: it has been quiet for `idle_sec`). `answers`: what is typed when something is
    asked. `done`: it is through (a complete result block says so too). `rescues`: how often one that is quiet without
    an answer is spoken to again, with `rescue_text`. `quit`: how it is asked to end.
    """

    ready: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    done: str = ""
    idle_sec: float = 20.0
    rescues: int = 2
    rescue_text: str = "Please finish the task and end with the result block."
    quit: str = "/exit\r"
    columns: int = 200
    rows: int = 50


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`argv` is the whole call of a `command` agent, and the program of every other kind where it is not its usual one.

    `home_files` are files of the operator's home that are copied into the agent's (None: the kind's login files).
    """

    kind: str
    argv: tuple[str, ...] = ()
    prompt: str = "stdin"
    env: tuple[str, ...] = ()
    model: str = ""
    script: str = ""
    effort: str = ""
    max_turns: int | None = None
    args: tuple[str, ...] = ()
    base_url: str = ""
    key_env: str = ""
    permissions: str = "auto"
    home_files: tuple[str, ...] | None = None
    answer_schema: bool = False
    profile: str = ""
    retries: int = 2
    terminal: TerminalSettings = field(default_factory=TerminalSettings)
