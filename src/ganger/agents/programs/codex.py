"""Codex (`codex exec --json`): how it is called, and what its stream of JSON lines says."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.result_schema import STRICT_SCHEMA, fenced_text
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import number, part, plain, read_json, text
from ganger.agents.words import meaning
from ganger.core.signs import (
    Context,
    Denied,
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
from ganger.ports.agents import AttemptContext, Capabilities
from ganger.ports.processes import Launch

_ANSWER_FILE = ".codex/answer.schema.json"
# The context size of every model it was tried with; only its own files say so.
_WINDOW = 258_400
# Its stream reports usage only if a turn succeeds; this makes stderr report it after every answer.
_LOGGED = {"RUST_LOG": "error,codex_otel.trace_safe=info"}
_QUIET = (
    *("--disable", "plugins", "--disable", "apps"),
    *("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"),
)


class CodexAgent(CliAgent):
    kind = "codex"
    program = "codex"
    tried = "0.166.0"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True, schema=True)
    variables = ("OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT")
    keys = ("CODEX_API_KEY", "OPENAI_API_KEY")
    logins = (".codex/auth.json",)
    login_hint = "set OPENAI_API_KEY, or run: codex login"
    install_hint = "install it with: npm install -g @openai/codex"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(name, given, root, environ)
        # The program reads its vendor's key only from this name.
        if self.key():
            self.passed["CODEX_API_KEY"] = self.passed[self.key()]

    def prepare(self, context: AttemptContext) -> Launch:
        """The operator's arguments are for `exec`; what follows `resume` takes fewer of them."""
        launch = super().prepare(context)
        return replace(launch, argv=(*self._program(), *self.arguments(context)))

    def arguments(self, context: AttemptContext) -> list[str]:
        given = self.given
        # Its own sandbox needs namespaces that Ganger's sandbox does not allow, and it edits only through its shell.
        sandbox = "danger-full-access" if self.may_all(context) or context.walled else "workspace-write"
        words = ["exec", "--json", "--skip-git-repo-check", *_QUIET, "-c", f'sandbox_mode="{sandbox}"']
        words += ["-m", given.model] if given.model else []
        words += ["-c", f"model_reasoning_effort={json.dumps(given.effort)}"] if given.effort else []
        words += ["-c", f"shell_environment_policy.exclude={json.dumps(self._kept_back())}"]
        words += self._provider()
        if given.answer_schema and context.role != "healer" and context.home is not None:
            words += ["--output-schema", str(context.home / _ANSWER_FILE)]
        words += given.args
        return [*words, *(["resume", context.session] if context.session else []), "-"]

    def _provider(self) -> list[str]:
        """Another endpoint is configured as a provider: the program does not read OPENAI_BASE_URL."""
        if not self._url():
            return []
        fields = {"name": "ganger", "base_url": self._url(), "wire_api": "responses"}
        fields |= {"env_key": self.key()} if self.key() else {}
        retries = self.given.retries
        words = [f"{name}={json.dumps(value)}" for name, value in fields.items()]
        words += [f"request_max_retries={retries}", f"stream_max_retries={retries}"]
        return ["-c", 'model_provider="ganger"', "-c", f"model_providers.ganger={{{','.join(words)}}}"]

    def _url(self) -> str:
        return self.given.base_url or self.passed.get("OPENAI_BASE_URL", "")

    def _kept_back(self) -> list[str]:
        """Variables that the model's commands do not get: keys they could print, and settings not meant for them."""
        return sorted({*self.keys, *_LOGGED, *((self.given.key_env,) if self.given.key_env else ())})

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        return _LOGGED

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        return {_ANSWER_FILE: STRICT_SCHEMA.encode()} if self.given.answer_schema else {}

    def has_login(self) -> bool:
        """Unknown for the operator's own endpoint, which may need none."""
        return super().has_login() or bool(self._url())

    def reader(self) -> CodexReader:
        return CodexReader(self.given.model, window=self.given.context_tokens)


_AGAIN = re.compile(r"^Reconnecting\.\.\. \d+/\d+ ?(?:\((.*)\))?$", re.DOTALL)
_TRACED = re.compile(r"^\S+Z +(?:ERROR|WARN|INFO|DEBUG|TRACE) (\S+): (.*)")
# It also prints "Rejected" if a command could not be started.
_REJECTED = re.compile(
    r"approval policy is|rejected by user|` rejected: |approval review rejected|unacceptable risk",
    re.IGNORECASE,
)
_FIELDS = re.compile(r'(?<![\w.])([\w.]+)="?([^\s"]+)')
_WRONG_CALL = re.compile(r"unexpected argument|invalid value|cannot be used multiple times|[Ee]rror loading config")
_NO_SESSION = re.compile(r"no rollout found|thread/resume failed|no (?:saved )?session found", re.IGNORECASE)


class CodexReader:
    def __init__(self, model: str = "", now: Callable[[], float] = time.time, window: int = 0) -> None:
        self._model, self._now, self._window = model, now, window or _WINDOW
        self._session = ""
        self._last = ""
        self._used: list[Tokens] = []
        self._asked = 0
        self._words: list[str] = []
        self._over = False

    def line(self, line: bytes) -> Iterator[Sign]:
        data = read_json(line)
        if data is None:
            yield from self._plain(plain(line))
            return
        match text(data, "type"):
            case "thread.started":
                self._session = text(data, "thread_id")
                yield Session(self._session)
                yield Model(self._model)
            case "item.started":
                yield from self._started(part(data, "item"))
            case "item.completed":
                yield from self._completed(part(data, "item"))
            case "error":
                yield from self._error(text(data, "message"))
            case "turn.failed":
                self._over = True
                yield from self._failed(text(data, "error", "message"))
            case "turn.completed":
                self._over = True
                yield self._sum(part(data, "usage"))
                yield Over("success", self._last)
            case _:
                return

    def end(self) -> Iterator[Sign]:
        if not self._over and self._words:
            yield from self._failed(" ".join(self._words))

    def _plain(self, said: str) -> Iterator[Sign]:
        traced = _TRACED.match(said)
        if traced is None:
            self._words = [*self._words[-4:], said] if said and not said.startswith("WARNING") else self._words
        elif traced[1] == "codex_otel.trace_safe":
            yield from self._traced(dict(_FIELDS.findall(traced[2])))
        else:
            error = traced[2].partition("error=")[2]
            if _REJECTED.search(error):
                outside = "outside of the project" in error
                yield Denied("apply_patch" if "patch" in error else "shell", error[:200], rule=outside)

    def _traced(self, fields: Mapping[str, str]) -> Iterator[Sign]:
        if fields.get("event.name") == "codex.turn_profile":
            self._asked += _count(fields, "sampling_request_count") - _count(fields, "sampling_retry_count")
        if fields.get("event.name") != "codex.sse_event" or "input_token_count" not in fields:
            return
        step = Tokens(
            _count(fields, "input_token_count"),
            _count(fields, "output_token_count"),
            cache_read=_count(fields, "cached_token_count"),
            cache_write=_count(fields, "cache_write_token_count"),
            step=True,
        )
        self._used.append(step)
        yield step
        if fields.get("conversation.id") == self._session:
            yield Model(fields.get("model", ""))
            yield Context((step.input or 0) + (step.output or 0), self._window)

    def _sum(self, usage: Mapping[str, Any]) -> Tokens:
        """The usage of this process; if not every answer was traced, the sum of the thread and all its processes."""
        if self._used and len(self._used) >= self._asked:
            return Tokens(
                sum(step.input or 0 for step in self._used),
                sum(step.output or 0 for step in self._used),
                cache_read=sum(step.cache_read for step in self._used),
                cache_write=sum(step.cache_write for step in self._used),
            )
        return Tokens(
            number(usage, "input_tokens"),
            number(usage, "output_tokens"),
            cache_read=number(usage, "cached_input_tokens") or 0,
            cache_write=number(usage, "cache_write_input_tokens") or 0,
            session_tokens=True,
        )

    def _started(self, item: Mapping[str, Any]) -> Iterator[Sign]:
        kind = text(item, "type")
        if kind not in ("agent_message", "reasoning", "error", "todo_list"):
            yield ToolStarted(text(item, "id"), _TOOLS.get(kind, kind), _about(item))

    def _completed(self, item: Mapping[str, Any]) -> Iterator[Sign]:
        kind, status = text(item, "type"), text(item, "status")
        if kind == "agent_message":
            self._last = fenced_text(text(item, "text"))
            yield Said(self._last)
        elif kind not in ("reasoning", "error", "todo_list"):
            yield ToolEnded(text(item, "id"), _TOOLS.get(kind, kind), ok=status != "failed")
            if status == "declined":
                yield Denied(_TOOLS.get(kind, kind), _about(item))

    def _error(self, said: str) -> Iterator[Sign]:
        """Most errors are followed by a retry; only the end of a turn says how it went."""
        if again := _AGAIN.match(said):
            yield from meaning(again[1] or said, now=self._now(), final=False)

    def _failed(self, said: str) -> Iterator[Sign]:
        if _NO_SESSION.search(said):
            yield Over("no_session", said)
        elif _WRONG_CALL.search(said):
            yield Over("usage", said)
        elif "does not have access" in said:
            yield LoginMissing(said)
        else:
            yield from meaning(said, now=self._now())


_TOOLS = {"command_execution": "shell", "file_change": "apply_patch", "mcp_tool_call": "mcp"}


def _count(fields: Mapping[str, str], name: str) -> int:
    value = fields.get(name, "")
    return int(value) if value.isdecimal() else 0


def _about(item: Mapping[str, Any]) -> str:
    return (text(item, "command") or text(item, "query") or text(item, "tool"))[:200]
