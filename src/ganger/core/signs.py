"""What an agent's output reveals while it works: the same few signs for every kind of agent, whatever its format.

A reader turns output into signs; `Heard` is their sum. Nothing here is believed: signs explain an attempt without a
result, they never make one good.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from ganger.contracts.reading.blocks import HEAL_DECISION, TASK_RESULT

LONGEST_TEXT = 16 * 1024 * 1024
_SHORT = 400
_LONGEST_NAME = 2000
_SESSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,199}")
_MOST_TOKENS, _MOST_USD = 10**12, 1e6
_MILLISECONDS, _LATEST = 1e11, 4.0e9


@dataclass(frozen=True, slots=True)
class Session:
    """The agent's own name for its conversation, by which it can be continued."""

    id: str


@dataclass(frozen=True, slots=True)
class Model:
    name: str


@dataclass(frozen=True, slots=True)
class Said:
    """Text from the model. `part`: it continues the last part; else it is a separate message."""

    text: str
    part: bool = False


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """`about` is a command or a path, short."""

    id: str
    name: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class ToolEnded:
    id: str
    name: str = ""
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Tokens:
    """What was used. None: the agent does not say.

    `input` is everything that was sent, cached or not; `cache_read` and `cache_write` are parts of it. `step`: of one
    model call, to be added up; else the sum of this process. `session_tokens`, `session_usd`: a running total
    of the whole session, including earlier processes. `doubted`: reported figures that are impossible, as reported.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    usd: float | None = None
    step: bool = False
    session_tokens: bool = False
    session_usd: bool = False
    doubted: str = ""


@dataclass(frozen=True, slots=True)
class Limited:
    """A rate limit or an empty account. `reset_at` is a Unix time where the agent knows it.

    `final`: the agent has given up. `empty`: waiting does not help, the account needs money.
    """

    text: str
    reset_at: float | None = None
    final: bool = True
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Retrying:
    """The agent retries by itself after trouble with its model."""

    text: str
    status: int | None = None
    wait_sec: float | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A tool was refused. `rule`: not because a permission is missing but because it left the folder it may work in."""

    tool: str
    about: str = ""
    rule: bool = False


@dataclass(frozen=True, slots=True)
class LoginMissing:
    """The key is missing or wrong, or the agent is not logged in."""

    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """How full the model's context is; `window` is 0 if unknown."""

    used: int
    window: int = 0


@dataclass(frozen=True, slots=True)
class Alive:
    """It answered a probe that asks whether it is alive; this says nothing else."""


How = Literal[
    "success",
    "error",
    "network",
    "refused",
    "length",
    "turns",
    "budget",
    "aborted",
    "no_session",
    "unfit",
    "usage",
]


@dataclass(frozen=True, slots=True)
class Over:
    """The agent's own last word.

    success    it believes it is finished; `text` is its answer
    network    the model could not be reached, broke off, was overloaded or answered nonsense
    refused    the model refused
    length     the answer reached the model's length limit
    turns      its own limit of turns, calls or time
    budget     its own limit of money
    aborted    it was interrupted
    no_session there is no such session to continue
    unfit      the model does not accept the conversation: too long, or broken
    usage      the program does not accept these arguments or settings
    error      anything else

    `broken`: the conversation is `unfit` because of its order, not its length.
    """

    how: How
    text: str = ""
    broken: bool = False


Sign = (
    Session
    | Model
    | Said
    | ToolStarted
    | ToolEnded
    | Tokens
    | Limited
    | Retrying
    | Denied
    | LoginMissing
    | Context
    | Alive
    | Over
)


@dataclass(slots=True)
class Heard:
    """The sum of an agent's output so far. `errors_in_a_row`: of its model, since it last made progress."""

    session: str = ""
    model: str = ""
    text: str = ""
    messages: list[str] = field(default_factory=list)
    tokens: Tokens | None = None
    denied: list[Denied] = field(default_factory=list)
    limited: Limited | None = None
    retrying: Retrying | None = None
    login: str = ""
    context: Context | None = None
    over: Over | None = None
    tools: int = 0
    errors_in_a_row: int = 0
    running: dict[str, ToolStarted] = field(default_factory=dict)
    _open: bool = False
    _size: int = 0
    _after_tools: int = 0

    def add(self, signs: Iterable[Sign]) -> None:
        for sign in signs:
            self._add(_sane(sign))

    @property
    def has_worked(self) -> bool:
        """Whether its model answered: a tool was called, or something was made."""
        return self.tools > 0 or (self.tokens is not None and bool(self.tokens.output))

    @property
    def answer(self) -> str:
        """The text that may hold the result: the last message, or everything after the last tool if that has none."""
        last = self.over.text if self.over is not None and self.over.how == "success" and self.over.text else ""
        last = last or (self.messages[-1] if self.messages else "")
        if _holds_block(last) or self.over is None or self.over.how != "success":
            return last
        return "\n".join([*self.messages[self._after_tools :], last])

    def _add(self, sign: Sign) -> None:
        match sign:
            case Session(name):
                self.session = name or self.session
            case Model(name):
                self.model = name or self.model
            case Said():
                self._say(sign)
            case ToolStarted():
                self.tools += 1
                self.running[sign.id] = sign
                self._progress()
            case ToolEnded():
                self.running.pop(sign.id, None)
                self._progress()
            case Tokens():
                self.tokens = _sum(self.tokens, sign)
            case Limited():
                self.limited = sign if self.limited is None or sign.final or sign.reset_at else self.limited
            case Retrying():
                self.retrying = sign
                self.errors_in_a_row += 1
            case Denied():
                self.denied.append(sign)
            case LoginMissing(text):
                self.login = text[:_SHORT] or "nobody is logged in"
            case Context(used, window):
                self.context = Context(used, window or (self.context.window if self.context is not None else 0))
            case Alive():
                pass
            case Over():
                self.over = sign
                self._open = False

    def _say(self, sign: Said) -> None:
        if self._size + len(sign.text) > LONGEST_TEXT and self.messages:
            dropped = self.messages.pop(0)
            self._size -= len(dropped)
            self._after_tools = max(0, self._after_tools - 1)
            self._open = self._open and bool(self.messages)
        if sign.part and self._open:
            self.messages[-1] += sign.text
        else:
            self.messages.append(sign.text)
        self._size += len(sign.text)
        self._open = sign.part
        self._trouble_is_over()

    def _progress(self) -> None:
        self._open = False
        self._after_tools = len(self.messages)
        self._trouble_is_over()

    def _trouble_is_over(self) -> None:
        self.retrying = None
        self.login = ""
        self.errors_in_a_row = 0
        if self.limited is not None and not self.limited.final:
            self.limited = None


def _holds_block(text: str) -> bool:
    """A mark alone, or the beginning of a block, adds nothing to the messages before it."""
    ends = ((fence.end.decode(), text.find(fence.start.decode())) for fence in (TASK_RESULT, HEAL_DECISION))
    return any(start >= 0 and text.find(end, start) >= 0 for end, start in ends)


def context_pct(heard: Heard, window_default: int = 0) -> float:
    """How full the model's context is, of 100; 0 if unknown.

    `window_default` counts if the agent does not report its own. A context that already holds more must be larger.
    """
    told = heard.context
    if told is None:
        return 0.0
    window = told.window or window_default
    return 100.0 * told.used / window if 0 < told.used <= window else 0.0


def _sane(sign: Sign) -> Sign:
    """Agents may print anything: an impossible figure counts as missing."""
    match sign:
        case Session(name):
            return sign if _SESSION.fullmatch(name) else Session("")
        case Model(name):
            return Model(_plain(name))
        case ToolStarted(tool, name, about):
            return ToolStarted(_plain(tool), _plain(name), _plain(about))
        case ToolEnded(tool, name, ok):
            return ToolEnded(_plain(tool), _plain(name), ok)
        case Denied(name, about, rule):
            return Denied(_plain(name), _plain(about), rule)
        case Tokens():
            return replace(
                sign,
                input=_count(sign.input),
                output=_count(sign.output),
                cache_read=_count(sign.cache_read) or 0,
                cache_write=_count(sign.cache_write) or 0,
                usd=_within(sign.usd, _MOST_USD),
            )
        case Limited(reset_at=at):
            moment = at / 1000 if at is not None and at > _MILLISECONDS else at
            return replace(sign, text=_plain(sign.text), reset_at=_within(moment, _LATEST))
        case Context(used_, window):
            return Context(_count(used_) or 0, _count(window) or 0)
    return sign


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST_NAME])


def _count(value: int | None) -> int | None:
    return value if value is None or 0 <= value <= _MOST_TOKENS else None


def _within(value: float | None, most: float) -> float | None:
    """A value that is not a number also fails the comparison."""
    return value if value is None or 0 <= value <= most else None


def _sum(known: Tokens | None, new: Tokens) -> Tokens:
    """Steps add up; a sum replaces them."""
    if known is None or not new.step:
        return new
    return Tokens(
        input=_plus(known.input, new.input),
        output=_plus(known.output, new.output),
        cache_read=known.cache_read + new.cache_read,
        cache_write=known.cache_write + new.cache_write,
        usd=None if known.usd is None or new.usd is None else known.usd + new.usd,
        step=True,
    )


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
