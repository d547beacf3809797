"""One request to a model in neutral form: the messages, the offered tools, the required form of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

# Clients wrap their own additions in tags; the rest is the request of a person or a program.
_ADDED = re.compile(r"<([a-z][\w-]*)\b[^<>]*>.*?</\1>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One tool call; `text` is the input of a tool that takes free text instead of JSON."""

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    id: str = ""
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: role is system, user, assistant or tool (the answers to calls)."""

    role: str
    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the client offers; a free tool takes text instead of JSON."""

    name: str
    schema: Mapping[str, object]
    free: bool = False


@dataclass(frozen=True, slots=True)
class ModelAsk:
    """What a client wants: the conversation so far and the form of the answer."""

    protocol: str
    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    streamed: bool = False
    schema: Mapping[str, object] | None = None
    most_tokens: int = 0
    counting: bool = False
    usage_wanted: bool = True

    def texts(self, *roles: str) -> Iterator[str]:
        return (turn.text for turn in self.turns if turn.role in roles and turn.text)

    def length(self) -> int:
        """Characters of the whole conversation, tools left out."""
        return sum(len(t.text) + sum(map(len, t.results)) + sum(len(str(c.input)) for c in t.calls) for t in self.turns)


def joined(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Answers to parallel calls become one turn, however a protocol lists them."""
    done: list[Turn] = []
    for turn in turns:
        last = done[-1] if done else None
        if last is not None and last.role == turn.role and turn.role in ("tool", "assistant"):
            text = "\n".join(filter(None, (last.text, turn.text)))
            done[-1] = replace(last, text=text, calls=last.calls + turn.calls, results=last.results + turn.results)
        else:
            done.append(turn)
    return tuple(done)


def own_words(text: str) -> str:
    """A user message without the tagged blocks that clients add to it."""
    return _ADDED.sub("", text).strip()


def words(content: object) -> str:
    """The text of a message whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return words(content.get("text") or content.get("content") or content.get("parts") or "")
    if isinstance(content, list):
        return "\n".join(filter(None, map(words, content)))
    return ""


def mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Mapping[str, object]]:
    """The objects of a list; other items are left out."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
