"""What an agent's section of the config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """How to operate an interactive terminal program. Patterns are regular expressions.

    `ready`: it waits for a task (empty: nothing has changed for `idle_sec`), within `ready_sec`. `answers`: the keys
    typed for each question, `most_answers` times in total. `asks`: the look of an unforeseen question (empty: the
    usual look); it gets the keys `deny`, and the second one ends the program. `newline` and `submit`: the keys that
    end a line of the prompt, and the prompt. `busy`: while this is shown, it is not idle. `done`: it has finished,
    once it is idle (a complete result block says so at once). `rescues`: how often it is prompted again, with
    `rescue_text`, if it is idle without an answer. `quit`: the keys that end it after its answer. `settle_sec`: a
    screen unchanged for this long counts as complete. `note`: text added to every prompt.
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
    """`argv` is the whole call of a `command` agent, and the program of every other kind, if it is not the usual one.

    `home_files` are files of the operator's home that are copied into the agent's (None: the kind's login files).
    `context_tokens` is the size of the model's context (0: unknown).
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
