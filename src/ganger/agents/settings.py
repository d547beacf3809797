"""What an agent's section of the config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """How a program that only talks to a terminal is spoken to. Patterns are regular expressions.

    `ready`: it waits for a task (empty: nothing has changed for `idle_sec`), within `ready_sec`. `answers`: the keys
    that are typed when something is asked, `most_answers` times in all. `asks`: how a question looks that nobody
    foresaw (empty: as they usually look); it gets the keys `deny`, and the second one ends the program. `newline` and
    `submit`: the keys that end a line of the prompt, and the prompt. `busy`: while this is shown, it is not idle.
    `done`: it is through, once it is idle (a complete result block says so at once). `rescues`: how often one that is
    idle without an answer is spoken to again, with `rescue_text`. `quit`: how one that answered is asked to leave.
    `settle_sec`: what is shown for so long counts as drawn. `note`: what is added to every prompt.
    """

    ready: str = ""
    ready_sec: float = 60.0
    answers: Mapping[str, str] = field(default_factory=dict)
    most_answers: int = 100
    asks: str = ""
    deny: str = "\x1b"
    newline: str = "\r"
    submit: str = "\r"
    busy: str = ""
    done: str = ""
    idle_sec: float = 20.0
    settle_sec: float = 1.0
    rescues: int = 2
    rescue_text: str = "Please finish the task and end with the result block."
    quit: str = "/exit\r"
    note: str = ""
    columns: int = 200
    rows: int = 50


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """`argv` is the whole call of a `command` agent, and the program of every other kind where it is not its usual one.

    `home_files` are files of the operator's home that are copied into the agent's (None: the kind's login files).
    `context_tokens` is what the model's context holds (0: unknown).
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
    context_tokens: int = 0
    terminal: TerminalSettings = field(default_factory=TerminalSettings)
