"""The `copilot` agent: GitHub Copilot CLI without a terminal, JSON lines out; its usage is only in its home."""

from __future__ import annotations

import fcntl
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import number, part, plain, read_json, text
from ganger.agents.usage import TranscriptSpan, lines, moment, records, span, summed
from ganger.agents.words import meaning
from ganger.core.signs import (
    Context,
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
from ganger.core.verify.environment import tool_environment
from ganger.ports.agents import AgentHealth, AttemptContext, Capabilities, Reader

_KEY = "COPILOT_PROVIDER_API_KEY"
_BEARER = "COPILOT_PROVIDER_BEARER_TOKEN"
_GITHUB = "COPILOT_GITHUB_TOKEN"
_URL = "COPILOT_PROVIDER_BASE_URL"
# Its own switch: its model's commands do not get these variables.
KEPT_BACK = f"--secret-env-vars={_BEARER},{_KEY},{_GITHUB}"
_UNPACK_SEC = 120.0
_SHORT = 200
# It masks its key with stars wherever the text occurs in its output, also in field names.
_SHORTEST_KEY = 8
_PROVIDER = ("TYPE", "WIRE_API", "TRANSPORT", "MODEL_ID", "WIRE_MODEL", "MAX_PROMPT_TOKENS", "MAX_OUTPUT_TOKENS")


class CopilotAgent(CliAgent):
    kind = "copilot"
    program = "copilot"
    tried = "1.0.102"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True)
    variables = (
        *(_URL, "COPILOT_MODEL", "COPILOT_GH_HOST", "GH_HOST"),
        *(f"COPILOT_PROVIDER_{name}" for name in _PROVIDER),
        "COPILOT_PROVIDER_AZURE_API_VERSION",
    )
    # It would also use GH_TOKEN and GITHUB_TOKEN, and pass them on to every command of its model; they are seldom
    # meant for that, so they are passed on only if named.
    keys = (_BEARER, _KEY, _GITHUB)
    logins = (".copilot/config.json",)
    login_hint = f"set {_GITHUB}, name another variable with key_env, or start `copilot` and run /login there"
    install_hint = "install it with npm install -g @github/copilot, or name it with argv"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(name, given, root, environ)
        if given.base_url:
            self.passed[_URL] = given.base_url
        if given.key_env and given.key_env in environ:
            self.passed[_KEY if self._provider() else _GITHUB] = environ[given.key_env]
            if given.key_env not in given.env:
                del self.passed[given.key_env]
        self._unpacked: tuple[Path, str, int, int] | None = None

    def usable_keys(self) -> tuple[str, ...]:
        """With the operator's own provider GitHub is not used."""
        provider = self.given.base_url or self.environ.get(_URL)
        return (_BEARER, _KEY) if provider else (_GITHUB,)

    def key(self) -> str:
        return next((name for name in self.usable_keys() if self.passed.get(name)), "")

    def arguments(self, context: AttemptContext) -> list[str]:
        argv = ["--output-format", "json", "--no-color", "--no-auto-update", "--no-ask-user", "--no-remote"]
        argv += ["--disable-client-telemetry", "--disable-builtin-mcps", KEPT_BACK]
        argv += ["--allow-all"] if self.may_all(context) else ["--allow-tool=write"]
        argv += [f"--model={self.given.model}"] if self.given.model else []
        argv += [f"--reasoning-effort={self.given.effort}"] if self.given.effort else []
        return [
            *argv,
            f"--resume={context.session}" if context.session else f"--session-id={self.fresh_session(context)}",
        ]

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        # If the cache is read-only, a search index cannot be kept there.
        quiet = {"COPILOT_AUTO_UPDATE": "false", "USE_TGREP": "false"}
        if self._provider():
            quiet["COPILOT_OFFLINE"] = "true"
        if context.shared is not None and self._unpack(context.shared):
            quiet["XDG_CACHE_HOME"] = str(context.shared)
        return quiet

    def healthcheck(self) -> AgentHealth:
        if self.key() and len(self.passed[self.key()]) < _SHORTEST_KEY:
            reason = f"the key in {self.key()} is shorter than {_SHORTEST_KEY} characters, and copilot would star out"
            return AgentHealth(False, self.version(), (f"{reason} every such text in its output; set a longer one",))
        return super().healthcheck()

    def has_login(self) -> bool:
        return super().has_login() or self._provider()

    def reader(self) -> Reader:
        return CopilotReader()

    def kept(self, home: Path, log: Path, heard: Heard) -> Iterable[Sign]:
        """The session's name if the last line is missing, the usage of every call, and why the last answer ended."""
        calls: list[Tokens] = []
        session, ended, during = "", "", span(log)
        for path, record in records(home, ".copilot/session-state/*/events.jsonl", during):
            session = path.parent.name
            if text(record, "type") == "session.usage_record":
                calls.append(_call(part(record, "data", "usage")))
                ended = text(record, "data", "usage", "finishReason")
        if not heard.session and _is_uuid(session):
            yield Session(session)
        if used := summed(calls):
            yield used
        if heard.over is not None and heard.over.how == "success" and ended in _ENDS:
            yield Over(_ENDS[ended], f"the model's last answer ended with {ended}")
        if heard.limited is not None and heard.limited.reset_at is None:
            yield from _until(heard.limited, home, during)

    def _provider(self) -> bool:
        return bool(self.passed.get(_URL))

    def _unpack(self, shared: Path) -> bool:
        """Lets it unpack itself once: it does so at its first start (235 MB), and only reads the files later."""
        program = Path(self._program()[0])
        try:
            found = program.stat()
            wanted = (shared, str(program), found.st_size, found.st_mtime_ns)
            if wanted != self._unpacked:
                self._start_once(shared)
                self._unpacked = wanted
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def _start_once(self, shared: Path) -> None:
        with open(shared / ".unpacking", "ab") as lock, tempfile.TemporaryDirectory() as home:
            fcntl.flock(lock, fcntl.LOCK_EX)
            env = {**tool_environment(self.environ), "HOME": home, "XDG_CACHE_HOME": str(shared), **self._quiet()}
            argv = [*self._program(), "--no-auto-update", "--version"]
            # Other users than its owner read it.
            subprocess.run(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_UNPACK_SEC,
                check=True,
                umask=0o022,
            )


def _call(used: Mapping[str, Any]) -> Tokens:
    return Tokens(
        input=number(used, "inputTokens"),
        output=number(used, "outputTokens"),
        cache_read=number(used, "cacheReadTokens") or 0,
        cache_write=number(used, "cacheWriteTokens") or 0,
    )


def _until(limited: Limited, home: Path, during: TranscriptSpan) -> Iterable[Sign]:
    """How long the endpoint asked it to wait; only its log says so."""
    for _, line in lines(home, ".copilot/logs/process-*.log"):
        found = _ASKED_TO_WAIT.match(line)
        at = moment(stamp) if found and (stamp := found[1].decode()) in during else None
        if found is not None and at is not None:
            limited = replace(limited, reset_at=at + int(found[2]) / 1000)
    return [limited] if limited.reset_at is not None else []


def _is_uuid(name: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) is not None


_ENDS: dict[str, How] = {"length": "length", "content_filter": "refused"}
_ASKED_TO_WAIT = re.compile(rb'([0-9T:.Z-]{20,30}) .*"http_status":429\b.*"retry_after_ms":(\d{1,12})\b')
_NO_LOGIN = re.compile(r"No authentication information found|Bad credentials|token (?:is invalid|has expired)")
_NO_SESSION = re.compile(r"No session, task, or name matched|Session .{1,60} (?:not found|does not exist)")
_USAGE = re.compile(r"\Aerror: |Offline mode requires|BYOK providers require|invalid value|Invalid session")
_BROKEN = re.compile(r"without sending any chunks|Failed to finalize .{1,40} stream")
_NOT_REACHED = re.compile(r"could not be validated|network fetch failed")


class CopilotReader:
    """Text comes in parts and then complete; the parts are skipped. Its own retries are reported one by one."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[str, str]] = {}
        self._failed = False

    def line(self, line: bytes) -> Iterable[Sign]:
        event = read_json(line)
        data = part(event, "data")
        match text(event, "type") if event else "":
            case "assistant.message":
                return _message(data)
            case "tool.execution_start":
                return [self._started(data)]
            case "tool.execution_complete":
                return self._ended(data)
            case "model.call_failure":
                return _failure(data, _at(event))
            case "session.error":
                self._failed = True
                return _error(data, _at(event))
            case "result":
                return self._over(part(event))
            case "":
                return _words(plain(line))
        return []

    def end(self) -> Iterable[Sign]:
        return ()

    def _started(self, data: Mapping[str, Any]) -> ToolStarted:
        given = part(data, "arguments")
        names = ("command", "path", "pattern", "query", "url", "description")
        about = next((found for name in names if (found := text(given, name))), "")[:_SHORT]
        self._tools[text(data, "toolCallId")] = (text(data, "toolName"), about)
        return ToolStarted(text(data, "toolCallId"), text(data, "toolName"), about)

    def _ended(self, data: Mapping[str, Any]) -> Iterable[Sign]:
        call = text(data, "toolCallId")
        name, about = self._tools.pop(call, ("", ""))
        yield ToolEnded(call, name, ok=data.get("success") is True)
        if text(data, "error", "code") in ("denied", "rejected"):
            yield Denied(name, about)
        metrics = part(data, "toolTelemetry", "metrics")
        if used := number(metrics, "context_current_tokens"):
            yield Context(used, number(metrics, "context_token_limit") or 0)

    def _over(self, event: Mapping[str, Any]) -> Iterable[Sign]:
        yield Session(text(event, "sessionId"))
        code = number(event, "exitCode")
        if code == 0:
            yield Over("success")
        elif not self._failed:
            yield Over("error", f"it ended with code {code} and did not say why")


def _at(event: object) -> float:
    return moment(text(event, "timestamp")) or time.time()


def _message(data: Mapping[str, Any]) -> Iterable[Sign]:
    yield Model(text(data, "model"))
    # A subagent's text is reported in a tool's result.
    if text(data, "content") and not text(data, "parentToolCallId"):
        yield Said(text(data, "content"))


def _failure(data: Mapping[str, Any], now: float) -> Iterable[Sign]:
    return meaning(text(data, "errorMessage"), status=number(data, "statusCode"), now=now, final=False)


def _error(data: Mapping[str, Any], now: float) -> Iterable[Sign]:
    told = text(data, "message")
    if text(data, "errorType") == "authentication":
        return [LoginMissing(told)]
    # Before it comes the time it has already waited, which is not a time to wait.
    told = told.rpartition("Last error: ")[2] or told
    status = number(data, "statusCode")
    if _BROKEN.search(told):
        return [Over("network", told)]
    if text(data, "errorType") in ("rate_limit", "quota"):
        status = status or 429
    return meaning(told, status=status, now=now)


def _words(words: str) -> list[Sign]:
    if _NO_SESSION.search(words):
        return [Over("no_session", words)]
    if _NO_LOGIN.search(words):
        return [LoginMissing(words)]
    if _NOT_REACHED.search(words):
        return [Over("network", words)]
    return [Over("usage", words)] if _USAGE.search(words) else []
