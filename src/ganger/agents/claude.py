"""Claude Code (`claude -p`): how it is called, and what its stream of JSON lines says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ganger.agents.answer import SCHEMA_TEXT, fenced
from ganger.agents.cli import CliAgent
from ganger.agents.streams import amount, items, number, part, plain, read_json, text
from ganger.agents.words import meaning, reset_in
from ganger.core.signs import (
    Context,
    Denied,
    Limited,
    LoginMissing,
    Model,
    Over,
    Retrying,
    Said,
    Session,
    Sign,
    Tokens,
    ToolEnded,
    ToolStarted,
)
from ganger.ports import AttemptContext, Capabilities

# Everything it may be asked about, for where its own switch for that does not work: it refuses it to root.
_ALL_TOOLS = "Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch,Skill"
_TOO_MANY_REQUESTS = 429


class ClaudeAgent(CliAgent):
    kind = "claude"
    program = "claude"
    tried = "2.1.325"
    capabilities = Capabilities(
        stdin_prompt=True, stream=True, resume=True, tokens=True, usd=True, schema=True, turns=True
    )
    variables = (
        *("ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_CUSTOM_HEADERS"),
        *("ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"),
        *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SUBAGENT_MODEL"),
        *("AWS_REGION", "AWS_PROFILE", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_FOUNDRY_RESOURCE"),
        *("API_TIMEOUT_MS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "MAX_THINKING_TOKENS", "BASH_DEFAULT_TIMEOUT_MS"),
    )
    keys = (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_API_KEY"),
    )
    logins = (".claude/.credentials.json",)
    login_hint = "set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it, or log in once"
    install_hint = "install it with: npm install -g @anthropic-ai/claude-code"

    def arguments(self, context: AttemptContext) -> list[str]:
        given = self.given
        # Without its deltas the stream tells too little of a process that is killed: no length of an answer, no life.
        words = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
        words += ["--resume", context.session] if context.session else []
        words += ["--model", given.model] if given.model else []
        words += ["--effort", given.effort] if given.effort else []
        words += ["--max-turns", str(given.max_turns)] if given.max_turns is not None else []
        words += ["--json-schema", SCHEMA_TEXT] if given.answer_schema and context.role != "healer" else []
        return words + self._permissions(context)

    def _permissions(self, context: AttemptContext) -> list[str]:
        if not self.may_all(context):
            return ["--permission-mode", "acceptEdits"]
        if context.walled or os.geteuid() != 0:
            return ["--permission-mode", "bypassPermissions"]
        return ["--permission-mode", "acceptEdits", f"--allowedTools={_ALL_TOOLS}"]

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        return {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(self.given.retries),
        }

    def reader(self) -> ClaudeReader:
        return ClaudeReader()


@dataclass(frozen=True, slots=True)
class _Message:
    """An answer of the model that is being given; `parent` is the call that started the subagent it belongs to."""

    id: str
    parent: str
    tokens: Tokens


class ClaudeReader:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._open: dict[str, _Message] = {}
        self._counted: set[str] = set()
        self._denied: set[str] = set()
        self._reset_at: float | None = None
        self._said_last = ""
        self._words: list[str] = []
        self._over = False

    def line(self, line: bytes) -> Iterator[Sign]:
        data = read_json(line)
        if data is None:
            if said := plain(line):
                self._words = [*self._words[-4:], said]
            return
        kind, parent = text(data, "type"), text(data, "parent_tool_use_id")
        if kind == "system":
            yield from self._system(data)
        elif kind == "stream_event":
            yield from self._event(part(data, "event"), parent)
        elif kind == "assistant":
            yield from self._assistant(data, parent)
        elif kind == "user":
            yield from self._user(data)
        elif kind == "rate_limit_event":
            yield from self._limit(part(data, "rate_limit_info"))
        elif kind == "result":
            yield from self._result(data)

    def end(self) -> Iterator[Sign]:
        if self._over:
            return
        yield from self._count_open()
        yield from _complaint(" ".join(self._words), self._now())

    def _system(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        match text(data, "subtype"):
            case "init":
                yield Session(text(data, "session_id"))
                yield Model(text(data, "model"))
            case "api_retry":
                status, wait = number(data, "error_status"), number(data, "retry_delay_ms")
                wait_sec = None if wait is None else wait / 1000
                if status == _TOO_MANY_REQUESTS:
                    reset_at = self._reset_at or (None if wait_sec is None else self._now() + wait_sec)
                    yield Limited(text(data, "error"), reset_at=reset_at, final=False)
                yield Retrying(text(data, "error"), status=status, wait_sec=wait_sec)
            case "permission_denied":
                self._denied.add(text(data, "tool_use_id"))
                yield Denied(text(data, "tool_name"), text(data, "message")[:200])
            case _:
                return

    def _event(self, event: Mapping[str, Any], parent: str) -> Iterator[Sign]:
        """Pieces of an answer: of use only for what they say about tokens."""
        match text(event, "type"):
            case "message_start":
                yield from self._count(parent)
                self._begin(part(event, "message"), parent)
            case "message_delta" if parent in self._open:
                begun = self._open[parent]
                self._open[parent] = replace(begun, tokens=_more(begun.tokens, part(event, "usage")))
                yield from self._count(parent)
            case _:
                return

    def _begin(self, message: Mapping[str, Any], parent: str) -> None:
        name = text(message, "id")
        if name and name not in self._counted:
            self._open[parent] = _Message(name, parent, _step(part(message, "usage")))

    def _count(self, parent: str) -> Iterator[Sign]:
        message = self._open.pop(parent, None)
        if message is None:
            return
        self._counted.add(message.id)
        yield message.tokens
        if not parent:
            yield Context((message.tokens.input or 0) + (message.tokens.output or 0))

    def _count_open(self) -> Iterator[Sign]:
        for parent in list(self._open):
            yield from self._count(parent)

    def _assistant(self, data: Mapping[str, Any], parent: str) -> Iterator[Sign]:
        message = part(data, "message")
        if text(message, "model") == "<synthetic>":
            self._said_last = text(data, "error") or self._said_last
            return
        known = self._open.get(parent)
        if known is None or known.id != text(message, "id"):
            yield from self._count(parent)
            self._begin(message, parent)
        for block in items(message, "content"):
            if text(block, "type") == "text" and not parent:
                yield Said(text(block, "text"))
            elif text(block, "type") == "tool_use":
                yield ToolStarted(text(block, "id"), text(block, "name"), _about(part(block, "input")))

    def _user(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        for block in items(data, "message", "content"):
            if text(block, "type") == "tool_result":
                yield ToolEnded(text(block, "tool_use_id"), ok=block.get("is_error") is not True)

    def _limit(self, info: Mapping[str, Any]) -> Iterator[Sign]:
        """Comes with every answer of an account with a plan; only a refusal is a limit."""
        if text(info, "status") != "rejected":
            return
        self._reset_at = amount(info, "resetsAt")
        yield Limited(text(info, "rateLimitType") or "usage limit", reset_at=self._reset_at, final=False)

    def _result(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        self._over = True
        yield Session(text(data, "session_id"))
        yield from self._used(data)
        for denial in items(data, "permission_denials"):
            if text(denial, "tool_use_id") not in self._denied:
                yield Denied(text(denial, "tool_name"), _about(part(denial, "tool_input")))
        if data.get("is_error") is not True and text(data, "subtype") == "success":
            answer = data.get("structured_output")
            yield Over("success", fenced(answer) if isinstance(answer, dict) else text(data, "result"))
        else:
            yield from self._failed(data)
