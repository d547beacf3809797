"""The `gemini` agent: Gemini CLI without a terminal, JSON lines out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.shells import shell_file, shell_settings
from ganger.agents.streams import items, number, part, plain, read_json, text
from ganger.agents.usage import lines, moment, records, span, summed
from ganger.agents.words import meaning, status_in
from ganger.core.signs import (
    Denied,
    Heard,
    How,
    Limited,
    LoginMissing,
    Model,
    Over,
    Said,
    Session,
    Sign,
    Tokens,
    ToolEnded,
    ToolStarted,
)
from ganger.ports.agents import AttemptContext, Capabilities, Reader

_KEY = "GEMINI_API_KEY"
_URL = "GOOGLE_GEMINI_BASE_URL"
_VERTEX = "GOOGLE_GENAI_USE_VERTEXAI"
_VERTEX_LOGIN = "GOOGLE_APPLICATION_CREDENTIALS"
_GOOGLE_KEY = "GOOGLE_API_KEY"
_LOGIN_FILE = ".gemini/oauth_creds.json"
# The program's own name for its strongest model. Without a name it first asks a small model which one to use.
_MODEL = "pro"
# It sets this for the commands it runs. Its own setting that withholds keys takes GIT_AUTHOR_NAME and the like too.
_INSIDE = "GEMINI_CLI"
_SHORT = 200
_CHATS = ".gemini/tmp/*/chats"


class GeminiAgent(CliAgent):
    kind = "gemini"
    program = "gemini"
    tried = "0.61.0"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True, turns=True)
    variables = (
        *("GEMINI_MODEL", _URL, _VERTEX, "GOOGLE_GENAI_USE_GCA", "GOOGLE_VERTEX_BASE_URL"),
        *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", _VERTEX_LOGIN),
    )
    keys = (_KEY, _GOOGLE_KEY)
    logins = (_LOGIN_FILE, ".gemini/google_accounts.json")
    login_hint = f"set {_KEY}, or run `gemini` once and log in"
    install_hint = "install it with npm install -g @google/gemini-cli, or name it with argv"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(name, given, root, environ)
        if given.key_env and given.key_env in environ:
            self.passed[_KEY] = environ[given.key_env]
        if given.base_url:
            self.passed[_URL] = given.base_url

    def usable_variables(self) -> tuple[str, ...]:
        return tuple(name for name in self.variables if name != _VERTEX_LOGIN or self._asks_vertex())

    def usable_keys(self) -> tuple[str, ...]:
        return (_GOOGLE_KEY,) if self._asks_vertex() else self.keys

    def _asks_vertex(self) -> bool:
        return self.environ.get(_VERTEX, "").lower() == "true"

    def arguments(self, context: AttemptContext) -> list[str]:
        argv = ["-m", self.given.model or self.passed.get("GEMINI_MODEL") or _MODEL, "-o", "stream-json"]
        argv += ["--approval-mode", "yolo" if self.may_all(context) else "auto_edit"]
        return argv + ([f"--resume={context.session}"] if context.session else [])

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        # In an untrusted folder every mode except the asking one is refused.
        trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"}
        return {**trusted, **shell_settings(context.home, _INSIDE)}

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        ours: dict[str, Any] = {
            "general": {
                "enableAutoUpdate": False,
                "enableAutoUpdateNotification": False,
                "maxAttempts": self.given.retries + 1,
            },
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "ide": {"enabled": False},
            "model": {"maxSessionTurns": self.given.max_turns or -1},
        }
        if chosen := self._way_in():
            ours["security"] = {"auth": {"selectedType": chosen}}
        return {".gemini/settings.json": json.dumps(ours).encode(), **shell_file(self, _INSIDE)}

    def repaired(self, home: Path, session: str) -> Mapping[str, bytes]:
        return repaired_session(home, session)

    def has_login(self) -> bool:
        return super().has_login() or self._way_in() == "vertex-ai"

    def reader(self) -> Reader:
        return GeminiReader()

    def kept(self, home: Path, log: Path, heard: Heard) -> Iterable[Sign]:
        """The usage of a killed process: its session's file has every call."""
        if heard.tokens is not None:
            return []
        written = records(home, f"{_CHATS}/session-*.jsonl", span(log))
        # A call is written again when its tools have finished.
        used = summed({text(record, "id"): _call(record) for _, record in written if "tokens" in record}.values())
        return [used] if used else []

    def _way_in(self) -> str:
        if self._asks_vertex():
            return "vertex-ai"
        if self.passed.get(_KEY):
            return "gemini-api-key"
        return "oauth-personal" if any(name == _LOGIN_FILE for name, _ in self._login_files()) else ""


def repaired_session(home: Path, session: str) -> Mapping[str, bytes]:
    """Its session's file without duplicate answers of tools: it would send both, and the model accepts only one.

    They are in the record of the call and in a record of their own, which is left out.
    """
    kept: dict[Path, list[bytes]] = {}
    answered: set[str] = set()
    changed: set[Path] = set()
    for path, line in lines(home, f"{_CHATS}/session-*{session[:8]}.jsonl"):
        record = read_json(line) or {}
        answered |= {text(call, "id") for call in items(record, "toolCalls") if call.get("result")}
        given = [text(piece, "functionResponse", "id") for piece in items(record, "content")]
        if text(record, "type") == "user" and given and all(name and name in answered for name in given):
            changed.add(path)
        else:
            kept.setdefault(path, []).append(line.rstrip(b"\r\n") + b"\n")
    return {str(path.relative_to(home)): b"".join(kept.get(path, ())) for path in changed}


def _call(record: Mapping[str, Any]) -> Tokens:
    return Tokens(
        input=number(record, "tokens", "input"),
        output=(number(record, "tokens", "output") or 0) + (number(record, "tokens", "thoughts") or 0),
        cache_read=number(record, "tokens", "cached") or 0,
    )


_CHANGING = frozenset({"write_file", "replace"})
# Tools hidden from the model in modes that do not allow everything; if it calls them anyway, they are unknown.
_WITHHELD = _CHANGING | {"run_shell_command", "web_fetch", "google_web_search", "save_memory"}
_TYPED: dict[str, How] = {
    "FatalTurnLimitedError": "turns",
    "FatalCancellationError": "aborted",
    "FatalInputError": "usage",
    "FatalConfigError": "usage",
}
_BLOCKED = re.compile(r"response was blocked")
_CUT = re.compile(r"exceeded the token limit")
_AGAIN = re.compile(r"\A(?>.*?Attempt \d+ failed)(?: with status (\d+))?.*Retrying with backoff")
_AGAIN_AFTER = re.compile(r"Retrying after (\d+)ms")
_STATUS = re.compile(r"\A\s*status: (\d{3}),?\Z")
_NO_LOGIN = re.compile(r"Error authenticating|set an Auth method|Invalid auth method|authorization is required")
_USAGE = re.compile(r"Unknown arguments?:|Invalid values:|Not enough (?:non-option )?arguments")


class GeminiReader:
    """The user's prompt is echoed; text comes in parts; sums come once, at the end, and only for this process."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[str, str]] = {}
        self._status: int | None = None
        self._fault: Over | None = None
        self._model = ""

    def line(self, line: bytes) -> Iterable[Sign]:
        event = read_json(line)
        match text(event, "type") if event else "":
            case "init":
                self._model = text(event, "model")
                return [Session(text(event, "session_id")), Model(self._model)]
            case "message" if text(event, "role") == "assistant":
                self._status = None
                return [Said(text(event, "content"), part=bool(part(event).get("delta")))]
            case "tool_use":
                return [self._started(part(event))]
            case "tool_result":
                return self._ended(part(event))
            case "error":
                self._fault = _fault(text(event, "message")) or self._fault
                return []
            case "result":
                return [*self._models(part(event)), *_sum(part(event, "stats")), *self._over(part(event))]
            case "message":
                return []
        return self._words(plain(line))

    def end(self) -> Iterable[Sign]:
        return ()

    def _started(self, event: Mapping[str, Any]) -> ToolStarted:
        given = part(event, "parameters")
        names = ("command", "file_path", "dir_path", "path", "pattern", "query", "url", "prompt")
        about = next((found for name in names if (found := text(given, name))), "")[:_SHORT]
        self._status = None
        self._tools[text(event, "tool_id")] = (text(event, "tool_name"), about)
        return ToolStarted(text(event, "tool_id"), text(event, "tool_name"), about)

    def _ended(self, event: Mapping[str, Any]) -> list[Sign]:
        call = text(event, "tool_id")
        name, about = self._tools.pop(call, ("", ""))
        ended = ToolEnded(call, name, ok=text(event, "status") != "error")
        kind, told = text(event, "error", "type"), text(event, "error", "message")
        # A read outside is refused as well, but harmless.
        outside = "not in workspace" in told or "outside the" in told or kind == "path_not_in_workspace"
        if kind == "policy_violation" or (outside and name in _CHANGING):
            return [ended, Denied(name, about, rule=outside)]
        if kind == "tool_not_registered" and name in _WITHHELD:
            return [ended, Denied(name, about)]
        return [ended]

    def _models(self, event: Mapping[str, Any]) -> list[Sign]:
        """The requested name may be one of the program's own; the sums have the model's real name."""
        used = part(event, "stats", "models")
        busiest = max(used, key=lambda name: number(used, name, "total_tokens") or 0, default="")
        return [Model(busiest)] if busiest and self._model not in used else []

    def _over(self, event: Mapping[str, Any]) -> list[Sign]:
        if text(event, "status") == "success":
            return [self._fault or Over("success")]
        told, kind = text(event, "error", "message"), text(event, "error", "type")
        if not told:
            return [self._fault or Over("error", "it ended with an error and did not say which")]
        if kind in _TYPED:
            return [Over(_TYPED[kind], told)]
        if kind == "FatalAuthenticationError":
            return [LoginMissing(told)]
        return self._meaning(told, moment(text(event, "timestamp")) or time.time())

    def _meaning(self, told: str, now: float) -> list[Sign]:
        status = status_in(told) or self._status
        if "To increase your limits" in told:
            status = 429
        return [_quota(sign) for sign in meaning(told, status=status, now=now)]

    def _words(self, words: str) -> list[Sign]:
        if again := _AGAIN.search(words):
            self._status = int(again[1]) if again[1] else None
            return list(meaning(words, status=self._status, now=time.time(), final=False))
        if after := _AGAIN_AFTER.search(words):
            self._status = 429
            return [Limited(words, reset_at=time.time() + int(after[1]) / 1000, final=False)]
        if status := _STATUS.match(words):
            self._status = int(status[1])
        if "Error resuming session" in words:
            return [Over("no_session", words)]
        if _NO_LOGIN.search(words):
            return [LoginMissing(words)]
        return [Over("usage", words)] if _USAGE.search(words) else []


def _quota(sign: Sign) -> Sign:
    """Its standard text for every limit, even one that ends in a minute, mentions plan and billing."""
    return replace(sign, empty=False) if isinstance(sign, Limited) and "quota" in sign.text.lower() else sign


def _fault(told: str) -> Over | None:
    """The cause printed before the last line, which itself only says that it ended."""
    if _BLOCKED.search(told):
        return Over("refused", told)
    if _CUT.search(told):
        return Over("length", told)
    if "Maximum session turns" in told or "Loop detected" in told:
        return Over("turns", told)
    return Over("network", told) if "returned an empty" in told or "no final response" in told else None


def _sum(stats: Mapping[str, Any]) -> list[Sign]:
    sent, made, total = (number(stats, name) for name in ("input_tokens", "output_tokens", "total_tokens"))
    if sent is None or made is None:
        return []
    # Thought tokens are only part of the total.
    return [Tokens(sent, max(made, (total or 0) - sent), cache_read=number(stats, "cached") or 0)]
