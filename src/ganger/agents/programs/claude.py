"""Claude Code (`claude -p`): how it is called, and what its stream of JSON lines says."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.result_schema import SCHEMA, fenced
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import amount, items, number, part, plain, read_json, text
from ganger.agents.words import meaning, reset_in
from ganger.core.signs import (
    Context,
    Denied,
    How,
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
from ganger.ports.agents import AttemptContext, Capabilities

# All tools, allowed by name where its own switch does not work: it refuses that switch to root.
_ALL_TOOLS = "Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch,Skill"
# The variables for each cloud, and the key, if there is one.
_OF_CLOUD = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_REGION", "AWS_PROFILE"),
    "CLAUDE_CODE_USE_VERTEX": ("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"),
    "CLAUDE_CODE_USE_FOUNDRY": ("ANTHROPIC_FOUNDRY_RESOURCE",),
}
_CLOUD_KEYS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_BEARER_TOKEN_BEDROCK",),
    "CLAUDE_CODE_USE_VERTEX": (),
    "CLAUDE_CODE_USE_FOUNDRY": ("ANTHROPIC_FOUNDRY_API_KEY",),
}
_CLOUDS = tuple(_OF_CLOUD)
_SHELL_FILE = ".claude/ganger-shell.sh"
_TOO_MANY_REQUESTS = 429
# The sizes the program itself assumes. It reports them only at its end, when it is too late to save anything.
_WINDOW, _SMALL_WINDOW = 1_000_000, 200_000
_SMALL = re.compile(r"claude-3-|claude-(?:(?:sonnet|opus)-4(?:-[0-6])?|haiku-4(?:-[0-5])?)(?=-20\d{6}|-v\d|@|\Z)")


class ClaudeAgent(CliAgent):
    kind = "claude"
    program = "claude"
    tried = "2.1.325"
    capabilities = Capabilities(
        stdin_prompt=True, stream=True, resume=True, tokens=True, usd=True, schema=True, turns=True
    )
    variables = (
        *("ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"),
        *("ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"),
        *(*_CLOUDS, "CLAUDE_CODE_SUBAGENT_MODEL"),
        *(name for names in _OF_CLOUD.values() for name in names),
        *("API_TIMEOUT_MS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "MAX_THINKING_TOKENS", "BASH_DEFAULT_TIMEOUT_MS"),
    )
    # In the program's own order of preference.
    keys = (
        *(name for names in _CLOUD_KEYS.values() for name in names),
        *("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    )
    headers = ("ANTHROPIC_CUSTOM_HEADERS",)
    logins = (".claude/.credentials.json",)
    login_hint = "set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it, or log in once"
    install_hint = "install it with: npm install -g @anthropic-ai/claude-code"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(name, given, root, environ)
        if given.key_env and self.key():
            self.passed = {name: value for name, value in self.passed.items() if name not in self.keys}
            self.passed["ANTHROPIC_API_KEY"] = environ[given.key_env]
        if given.base_url:
            self.passed.pop("ANTHROPIC_BASE_URL", None)

    def _cloud(self) -> str:
        return next((name for name in _CLOUDS if self.environ.get(name)), "")

    def usable_variables(self) -> tuple[str, ...]:
        others = {name for cloud, names in _OF_CLOUD.items() if cloud != self._cloud() for name in names}
        return tuple(name for name in self.variables if name not in others)

    def usable_keys(self) -> tuple[str, ...]:
        of_clouds = {name for names in _CLOUD_KEYS.values() for name in names}
        own = tuple(name for name in self.keys if name not in of_clouds)
        return _CLOUD_KEYS[self._cloud()] if self._cloud() else own

    def arguments(self, context: AttemptContext) -> list[str]:
        given = self.given
        # Without deltas the stream of a killed process says too little: no length of an answer, no activity.
        words = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
        words += ["--resume", context.session] if context.session else []
        words += ["--model", given.model] if given.model else []
        words += ["--effort", given.effort] if given.effort else []
        words += ["--max-turns", str(given.max_turns)] if given.max_turns is not None else []
        words += ["--json-schema", SCHEMA] if given.answer_schema and context.role != "healer" else []
        return words + self._permissions(context)

    def _permissions(self, context: AttemptContext) -> list[str]:
        if not self.may_all(context):
            return ["--permission-mode", "acceptEdits"]
        if not _is_root(context):
            return ["--permission-mode", "bypassPermissions"]
        return ["--permission-mode", "acceptEdits", f"--allowedTools={_ALL_TOOLS}"]

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        return {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(self.given.retries),
            **({"ANTHROPIC_BASE_URL": self.given.base_url} if self.given.base_url else {}),
            **({"CLAUDE_ENV_FILE": str(context.home / _SHELL_FILE)} if context.home is not None else {}),
        }

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        """The file its shell reads first: the model's commands do not get the key, so none prints it by mistake."""
        names = {*self.keys, *self.headers, *((self.given.key_env,) if self.given.key_env else ())}
        return {_SHELL_FILE: f"unset {' '.join(sorted(names))}\n".encode()}

    def has_login(self) -> bool:
        """Unknown for a cloud, which has its own login."""
        return super().has_login() or any(self.passed.get(name) for name in _CLOUDS)

    def reader(self) -> ClaudeReader:
        return ClaudeReader(window=self.given.context_tokens)


@dataclass(frozen=True, slots=True)
class _Message:
    """A model's answer in progress; `parent` is the call that started the subagent it belongs to."""

    id: str
    parent: str
    tokens: Tokens


def _is_root(context: AttemptContext) -> bool:
    """Whether it runs as root; in a sandbox it runs as the owner of the workspace."""
    return os.geteuid() == 0 and (not context.walled or context.workspace.stat().st_uid == 0)


def window_of(model: str) -> int:
    """The context size it assumes for a model of this name."""
    return _SMALL_WINDOW if _SMALL.search(model) else _WINDOW


class ClaudeReader:
    """`window`: the size of the model's context, if the operator sets it."""

    def __init__(self, now: Callable[[], float] = time.time, window: int = 0) -> None:
        self._now, self._given_window, self._window = now, window, window
        self._open: dict[str, _Message] = {}
        self._counted: set[str] = set()
        self._calls: dict[str, str] = {}
        self._denied: set[str] = set()
        self._reset_at: float | None = None
        self._error = ""
        self._context = 0
        self._total = Tokens(0, 0, usd=0.0)
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
                self._window = self._given_window or window_of(text(data, "model"))
            case "api_retry":
                status, wait = number(data, "error_status"), number(data, "retry_delay_ms")
                wait_sec = None if wait is None else wait / 1000
                if status == _TOO_MANY_REQUESTS:
                    reset_at = self._reset_at or (None if wait_sec is None else self._now() + wait_sec)
                    yield Limited(text(data, "error"), reset_at=reset_at, final=False)
                yield Retrying(text(data, "error"), status=status, wait_sec=wait_sec)
            case "permission_denied":
                call = text(data, "tool_use_id")
                self._denied.add(call)
                yield Denied(text(data, "tool_name"), self._calls.get(call) or text(data, "message")[:200])
            case _:
                return

    def _event(self, event: Mapping[str, Any], parent: str) -> Iterator[Sign]:
        """Reads pieces of an answer, only for their token counts."""
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
            self._context = (message.tokens.input or 0) + (message.tokens.output or 0)
            yield Context(self._context, self._window)

    def _count_open(self) -> Iterator[Sign]:
        for parent in list(self._open):
            yield from self._count(parent)

    def _assistant(self, data: Mapping[str, Any], parent: str) -> Iterator[Sign]:
        message = part(data, "message")
        if text(message, "model") == "<synthetic>":
            self._error = self._error if parent else text(data, "error")
            return
        self._error = self._error if parent else ""
        known = self._open.get(parent)
        if known is None or known.id != text(message, "id"):
            yield from self._count(parent)
            self._begin(message, parent)
        for block in items(message, "content"):
            if text(block, "type") == "text" and not parent:
                yield Said(text(block, "text"))
            elif text(block, "type") == "tool_use":
                about = self._calls[text(block, "id")] = _about(part(block, "input"))
                yield ToolStarted(text(block, "id"), text(block, "name"), about)

    def _user(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        for block in items(data, "message", "content"):
            if text(block, "type") == "tool_result":
                self._calls.pop(text(block, "tool_use_id"), None)
                yield ToolEnded(text(block, "tool_use_id"), ok=block.get("is_error") is not True)

    def _limit(self, info: Mapping[str, Any]) -> Iterator[Sign]:
        """Sent with every answer of an account with a plan; only a refusal that ends the work is a limit."""
        if text(info, "status") != "rejected":
            return
        self._reset_at = None if _goes_on(info) else amount(info, "resetsAt")
        if not _goes_on(info):
            yield Limited(text(info, "rateLimitType") or "usage limit", reset_at=self._reset_at, final=False)

    def _result(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        """Reads a result. There can be several: work in the background starts another turn when it has finished."""
        self._over = True
        yield from self._used(data)
        for denial in items(data, "permission_denials"):
            if text(denial, "tool_use_id") not in self._denied:
                self._denied.add(text(denial, "tool_use_id"))
                yield Denied(text(denial, "tool_name"), _about(part(denial, "tool_input")))
        if data.get("is_error") is not True and text(data, "subtype") == "success":
            answer = data.get("structured_output")
            yield Over("success", fenced(answer) if isinstance(answer, dict) else text(data, "result"))
        else:
            yield from self._failed(data)

    def _used(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        """The usage of this process and its subagents since its last result, without its earlier processes."""
        self._open.clear()
        if isinstance(data.get("model_usage_since_last_result"), dict):
            models = part(data, "model_usage_since_last_result")
            self._total = _plus(self._total, *(_of_model(part(models, name)) for name in models))
            yield self._total
        else:
            yield replace(_step(part(data, "usage")), step=False, usd=amount(data, "total_cost_usd"), session_usd=True)
        windows = [number(known, "contextWindow") or 0 for known in part(data, "modelUsage").values()]
        if self._context and windows:
            self._window = self._given_window or max(windows)
            yield Context(self._context, self._window)

    def _failed(self, data: Mapping[str, Any]) -> Iterator[Sign]:
        said = text(data, "result") or " ".join(str(word) for word in data.get("errors") or ())
        how = _ENDS.get(text(data, "subtype")) or _ENDS.get(self._error) or _ENDS.get(text(data, "stop_reason"))
        if how is not None:
            yield Over(how, said)
        elif self._error in _LOGINS:
            yield LoginMissing(said)
        elif self._error in ("rate_limit", "billing_error"):
            reset_at = self._reset_at or reset_in(said, self._now())
            yield Limited(said, reset_at=reset_at, empty=self._error == "billing_error")
        else:
            yield from _complaint(said, self._now(), status=number(data, "api_error_status"))


def _goes_on(info: Mapping[str, Any]) -> bool:
    """Whether work continues beyond the plan's limit: an account may pay for more, or get a grace period."""
    flags = (info.get("isUsingOverage"), info.get("rateLimitGraceActive"))
    return True in flags or text(info, "overageStatus") in ("allowed", "allowed_warning")


_ENDS: Mapping[str, How] = {
    "error_max_turns": "turns",
    "error_max_budget_usd": "budget",
    "max_output_tokens": "length",
    "refusal": "refused",
    "server_error": "network",
    "overloaded": "network",
    "model_not_found": "usage",
}
_LOGINS = frozenset(
    (
        *("authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required"),
        "cloud_credential_error",
    )
)


def _complaint(said: str, now: float, *, status: int | None = None) -> Iterator[Sign]:
    """Error texts without a class: at the start, on stderr, or from a gateway."""
    if "No conversation found" in said or "is already in use" in said:
        yield Over("no_session", said)
    elif "unknown option" in said or "cannot be used with root" in said or "argument missing" in said:
        yield Over("usage", said)
    elif said:
        yield from meaning(said, status=status, now=now)


def _step(usage: Mapping[str, Any]) -> Tokens:
    """The API counts cache reads and cache writes separately from the rest of the input."""
    read, written = number(usage, "cache_read_input_tokens") or 0, number(usage, "cache_creation_input_tokens") or 0
    sent = (number(usage, "input_tokens") or 0) + read + written
    return Tokens(sent, number(usage, "output_tokens") or 0, cache_read=read, cache_write=written, step=True)


def _more(begun: Tokens, usage: Mapping[str, Any]) -> Tokens:
    """The end of an answer repeats its counts; some gateways omit a few there."""
    known = _step(usage)
    if (known.input or 0) < (begun.input or 0):
        return replace(begun, output=known.output)
    return known


def _of_model(usage: Mapping[str, Any]) -> Tokens:
    read, written = number(usage, "cacheReadInputTokens") or 0, number(usage, "cacheCreationInputTokens") or 0
    sent = (number(usage, "inputTokens") or 0) + read + written
    # It prices an unknown model like a known one, and says so here.
    usd = None if text(usage, "costBasis") == "unknown" else amount(usage, "costUSD")
    return Tokens(sent, number(usage, "outputTokens") or 0, cache_read=read, cache_write=written, usd=usd)


def _plus(total: Tokens, *more: Tokens) -> Tokens:
    parts = (total, *more)
    costs = [one.usd for one in parts if one.usd is not None]
    return Tokens(
        sum(one.input or 0 for one in parts),
        sum(one.output or 0 for one in parts),
        cache_read=sum(one.cache_read for one in parts),
        cache_write=sum(one.cache_write for one in parts),
        usd=sum(costs) if len(costs) == len(parts) else None,
    )


def _about(given: Mapping[str, Any]) -> str:
    """What a tool call is about, from its most telling field."""
    names = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description")
    return next((text(given, name) for name in names if text(given, name)), "")[:200]
