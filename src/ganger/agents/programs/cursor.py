"""The `agent` agent: Cursor's command line, by its documented interface; JSON lines out.

The program cannot be installed without its vendor's own installer, so this was never tried with the real one.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import items, number, part, plain, read_json, text
from ganger.agents.words import meaning
from ganger.core.signs import (
    Denied,
    Limited,
    Model,
    Over,
    Said,
    Session,
    Sign,
    Tokens,
    ToolEnded,
    ToolStarted,
)
from ganger.errors import Fault, InputError
from ganger.ports.agents import AttemptContext, Capabilities

_SHORT = 200
_MOST_LINES = 40


class CursorAgent(CliAgent):
    kind = "agent"
    program = "agent"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True)
    keys = ("CURSOR_API_KEY",)
    logins = (".config/cursor/auth.json",)
    login_hint = "set CURSOR_API_KEY, or run `agent login`"
    install_hint = "install Cursor's command line, or name it with argv"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(name, given, root, environ)
        if given.base_url:
            message = "Cursor's agent reaches its models through Cursor alone; leave base_url out"
            raise InputError("ganger.toml", [Fault(f"agents.{name}.base_url", "SCHEMA_VIOLATION", message)])
        if given.key_env and given.key_env in environ:
            self.passed["CURSOR_API_KEY"] = environ[given.key_env]

    def arguments(self, context: AttemptContext) -> list[str]:
        argv = ["-p", "--output-format", "stream-json", "--trust"]
        argv += ["--force", "--sandbox", "disabled"] if self.may_all(context) else []
        argv += ["--model", self.given.model] if self.given.model else []
        return argv + (["--resume", context.session] if context.session else [])

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        """The permission rules: without one that allows it, or `--force`, an edit is only proposed."""
        allowed = ["Read(**)", "Write(**)", *(["Shell(*)"] if self.may_all(context) else [])]
        config = {"version": 1, "editor": {"vimMode": False}, "permissions": {"allow": allowed, "deny": []}}
        return {".cursor/cli-config.json": json.dumps(config).encode()}

    def reader(self) -> CursorReader:
        return CursorReader()


class CursorReader:
    """An error is not an event: the program prints it on stderr, which is read at the end."""

    def __init__(self) -> None:
        self._words: deque[str] = deque(maxlen=_MOST_LINES)
        self._over = False

    def line(self, line: bytes) -> Iterable[Sign]:
        event = read_json(line)
        match text(event, "type"):
            case "system":
                yield from _about_it(event)
            case "assistant":
                if said := "".join(text(piece, "text") for piece in items(event, "message", "content")):
                    yield Said(said)
            case "tool_call":
                yield from _tool(event)
            case "result":
                self._over = True
                yield from _result(part(event))
            case "":
                self._words.append(plain(line))

    def end(self) -> Iterable[Sign]:
        words = "\n".join(self._words).strip()
        return () if self._over or not words else _failed(words, time.time())


def _about_it(event: object) -> Iterable[Sign]:
    if session := text(event, "session_id"):
        yield Session(session)
    if model := text(event, "model"):
        yield Model(model)


def _tool(event: object) -> Iterable[Sign]:
    call, calls = text(event, "call_id"), part(event, "tool_call")
    key = next((key for key, value in calls.items() if isinstance(value, dict)), "")
    name = text(calls, key, "name") or key.removesuffix("ToolCall") or "tool"
    about = _about(part(calls, key, "args"))
    if text(event, "subtype") == "started":
        yield ToolStarted(call, name, about)
    elif text(event, "subtype") == "completed":
        result = part(calls, key, "result")
        yield ToolEnded(call, name, ok="success" in result)
        if "rejected" in result or "permissionDenied" in result:
            yield Denied(name, about)


def _about(given: Mapping[str, Any]) -> str:
    return next((found for name in ("command", "path", "pattern") if (found := text(given, name)[:_SHORT])), "")


def _result(event: Mapping[str, Any]) -> Iterable[Sign]:
    yield from _about_it(event)
    used = part(event, "usage")
    sent, made = number(used, "inputTokens"), number(used, "outputTokens")
    if sent is not None and made is not None:
        read, wrote = number(used, "cacheReadTokens") or 0, number(used, "cacheWriteTokens") or 0
        yield Tokens(sent if sent >= read + wrote else sent + read + wrote, made, read, wrote)
    said = text(event, "result")
    if event.get("is_error") is True or text(event, "subtype") != "success":
        yield from _failed(said or text(event, "error") or text(event, "subtype"), time.time())
    else:
        yield Over("success", said)


_CODE = re.compile(r"\[(unavailable|internal|deadline_exceeded|aborted|unknown)\]")
_CYCLE = re.compile(r"\b(?:ends|resets?) on (\d{1,2})/(\d{1,2})/(\d{4})")
_NO_SESSION = re.compile(
    r"(?:chat|session|conversation)\b.{0,60}\bnot found|no (?:such|previous) (?:chat|session)", re.I
)
_USAGE = re.compile(r"cannot use this model|workspace trust|unknown option|error: (?:option|too many arguments)", re.I)


def _failed(words: str, now: float) -> list[Sign]:
    if _NO_SESSION.search(words):
        return [Over("no_session", words)]
    if _USAGE.search(words):
        return [Over("usage", words)]
    if _CODE.search(words):
        return [Over("network", words)]
    cycle = _CYCLE.search(words)
    return [
        Limited(sign.text, _day(cycle), empty=sign.empty)
        if cycle and isinstance(sign, Limited) and sign.reset_at is None
        else sign
        for sign in meaning(words, now=now)
    ]


def _day(cycle: re.Match[str]) -> float | None:
    try:
        return datetime(int(cycle[3]), int(cycle[1]), int(cycle[2]), tzinfo=UTC).timestamp()
    except ValueError:
        return None
