"""The `qwen` agent: Qwen Code without a terminal, JSON lines out."""

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
from ganger.agents.streams import amount, items, number, part, plain, read_json, text
from ganger.agents.usage import moment, records, span, summed
from ganger.agents.words import meaning
from ganger.core.signs import (
    Context,
    Denied,
    Heard,
    Limited,
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
from ganger.ports.agents import AttemptContext, Capabilities, Reader

_KEY = "OPENAI_API_KEY"
_URL = "OPENAI_BASE_URL"
# It sets this for the commands it runs.
_INSIDE = "QWEN_CODE"
_SHORT = 200
_LISTENER = ".qwen/listen.mjs"
# It retries for minutes, and waits as long as it is told to, without output. The model's answers are observed in the
# process that asks; the process that starts it is skipped, and the processes it starts never load this.
_LISTEN = rb"""import { subscribe } from "node:diagnostics_channel";
const asks = (request) => /\/(chat\/completions|responses|messages)$/.test(String(request.path).split("?")[0]);
const tell = (what) =>
  process.stderr.write(JSON.stringify({ timestamp: new Date(), ...what }) + "\n");
const header = (all, name) => {
  const at = all.findIndex((word, i) => i % 2 === 0 && String(word).toLowerCase() === name);
  return at < 0 ? "" : String(all[at + 1]);
};
if (String(process.argv[1]).endsWith("cli.js")) {
  delete process.env.NODE_OPTIONS;
  tell({ type: "begun" });
  subscribe("undici:request:headers", ({ request, response }) => {
    if (asks(request) && response.statusCode >= 400)
      tell({ type: "http", status: response.statusCode, retry_after: header(response.headers, "retry-after") });
  });
  subscribe("undici:request:error", ({ request, error }) => {
    if (asks(request) && !/abort|cancel/i.test(`${error?.name} ${error}`))
      tell({ type: "http", error: String(error).slice(0, 200) });
  });
}
"""


class QwenAgent(CliAgent):
    kind = "qwen"
    program = "qwen"
    tried = "0.24.4"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True, turns=True)
    variables = (_URL, "OPENAI_MODEL", "QWEN_MODEL")
    keys = (_KEY,)
    logins = (".qwen/oauth_creds.json",)
    login_hint = f"set {_KEY}, and {_URL} for another endpoint"
    install_hint = "install it with npm install -g @qwen-code/qwen-code, or name it with argv"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(name, given, root, environ)
        if given.key_env and given.key_env in environ:
            self.passed[_KEY] = environ[given.key_env]
        if given.base_url:
            self.passed[_URL] = given.base_url

    def arguments(self, context: AttemptContext) -> list[str]:
        login = not self.passed.get(_KEY) and self.has_login()
        argv = ["--auth-type", "qwen-oauth" if login else "openai", "-o", "stream-json", "--include-partial-messages"]
        argv += ["--approval-mode", "yolo" if self.may_all(context) else "auto-edit"]
        argv += [f"--model={self.given.model}"] if self.given.model else []
        argv += [f"--max-session-turns={self.given.max_turns}"] if self.given.max_turns else []
        return argv + ([f"--resume={context.session}"] if context.session else [])

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        # If it starts itself a second time, that process does not get the signals sent to the first.
        listener = f"--import={(context.home / _LISTENER).absolute().as_uri()}" if context.home is not None else ""
        return {
            "QWEN_CODE_NO_RELAUNCH": "true",
            "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
            "QWEN_DISABLE_AUTO_TITLE": "1",
            "QWEN_USAGE_STATISTICS_ENABLED": "false",
            **({"NODE_OPTIONS": listener} if listener else {}),
            **shell_settings(context.home, _INSIDE),
        }

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        # Below each configurable retry it tries seven times, for about 80 seconds: more retries would multiply that.
        generation: dict[str, Any] = {"maxRetries": 0}
        if self.given.effort:
            generation["reasoning"] = {"effort": self.given.effort}
        ours = {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            # Otherwise it asks the model after the work what to remember.
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
            "model": {"generationConfig": generation},
        }
        return {".qwen/settings.json": json.dumps(ours).encode(), _LISTENER: _LISTEN, **shell_file(self, _INSIDE)}

    def reader(self) -> Reader:
        return QwenReader()

    def kept(self, home: Path, log: Path, heard: Heard) -> Iterable[Sign]:
        """The usage: its running total lacks that of a killed earlier process; this process's calls are recorded."""
        if heard.tokens is None or not heard.tokens.session_tokens:
            return []
        written = records(home, ".qwen/projects/*/chats/*.jsonl", span(log))
        calls = [part(record, "systemPayload", "uiEvent") for _, record in written]
        used = summed([_call(call) for call in calls if text(call, "event.name").endswith("api_response")])
        return [used] if used else []


def _call(told: Mapping[str, Any]) -> Tokens:
    return Tokens(
        input=number(told, "input_token_count"),
        output=number(told, "output_token_count"),
        cache_read=number(told, "cached_content_token_count") or 0,
    )


_CHANGING = frozenset({"write_file", "edit", "notebook_edit"})
_WITHHELD = _CHANGING | {"run_shell_command", "web_fetch", "monitor"}
_REFUSED = re.compile(r"\AQwen Code requires (?:permission|user approval) to use|\ATool .{1,60} requires user approval")
_NOT_OFFERED = re.compile(r'\ATool "?[\w-]+"? (?:not found|is not available)')
_OUTSIDE = re.compile(r"must be within|outside (?:of )?the|not in (?:the )?workspace", re.IGNORECASE)
_AGAIN = re.compile(r"\ARetrying in (\d+)s \(attempt \d+/\d+\): (.*)")
_WAITS = re.compile(r"Waiting for API capacity.*retry in (\d+)s")
_TURNS = re.compile(
    r"\AReached max session turns|\ALoop detection halted|(?:tool[- ]call|wall[- ](?:time|clock)) budget"
)
_NO_SESSION = re.compile(r"No saved session found|session .{0,60}not found", re.IGNORECASE)
_USAGE = re.compile(r"Unknown arguments?:|Invalid values:")
_API_ERROR = re.compile(r"\[API Error: .*\](?:\nPossible quota.*)?\s*\Z", re.DOTALL)
_BROKEN = re.compile(r"non-SSE response|No stream activity|Model stream ended")


class QwenReader:
    """Every message has the usage of its call; the last line has the sum of the whole session, also after a resume."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[str, str]] = {}
        self._denied: set[str] = set()
        self._reset: float | None = None

    def line(self, line: bytes) -> Iterable[Sign]:
        event = read_json(line)
        match text(event, "type") if event else "":
            case "system" if text(event, "subtype") == "init":
                return [Session(text(event, "session_id")), Model(text(event, "model"))]
            case "system" if text(event, "subtype") == "retry":
                return _again(part(event, "data"))
            case "assistant":
                return self._message(part(event))
            case "user":
                return self._results(part(event))
            case "result":
                return self._over(part(event))
            case "http":
                return self._answered(part(event))
            case "":
                return self._words(plain(line))
        return []

    def end(self) -> Iterable[Sign]:
        return ()

    def _message(self, event: Mapping[str, Any]) -> Iterable[Sign]:
        own = not text(event, "parent_tool_use_id")
        for block in items(event, "message", "content"):
            match text(block, "type"):
                case "text" if own and (said := _API_ERROR.sub("", text(block, "text"))):
                    yield Said(said)
                case "tool_use":
                    yield self._started(block)
        used = _tokens(part(event, "message", "usage"), step=True)
        if used.input or used.output:
            yield used
            if own and used.input:
                yield Context(used.input)

    def _started(self, block: Mapping[str, Any]) -> ToolStarted:
        given = part(block, "input")
        names = ("command", "file_path", "path", "pattern", "query", "url", "description")
        about = next((found for name in names if (found := text(given, name))), "")[:_SHORT]
        self._tools[text(block, "id")] = (text(block, "name"), about)
        return ToolStarted(text(block, "id"), text(block, "name"), about)

    def _results(self, event: Mapping[str, Any]) -> Iterable[Sign]:
        for block in items(event, "message", "content"):
            if text(block, "type") != "tool_result":
                continue
            call, failed = text(block, "tool_use_id"), block.get("is_error") is True
            name, about = self._tools.get(call, ("", ""))
            yield ToolEnded(call, name, ok=not failed)
            if failed and (denied := _denied(name, about, text(block, "content"))):
                self._denied.add(call)
                yield denied

    def _over(self, event: Mapping[str, Any]) -> Iterable[Sign]:
        yield Session(text(event, "session_id"))
        for denial in items(event, "permission_denials"):
            if text(denial, "tool_use_id") not in self._denied:
                name, about = self._tools.get(text(denial, "tool_use_id"), (text(denial, "tool_name"), ""))
                yield Denied(name, about)
        used = _tokens(part(event, "usage"), step=False)
        if used.input or used.output:
            yield used
        if event.get("is_error") is not True:
            yield Over("success", text(event, "result"))
            return
        told = text(event, "error", "message")
        if _TURNS.search(told):
            yield Over("turns", told)
        elif _BROKEN.search(told):
            yield Over("network", told)
        else:
            for sign in meaning(told, now=time.time()):
                untold = isinstance(sign, Limited) and sign.reset_at is None
                yield replace(sign, reset_at=self._reset) if isinstance(sign, Limited) and untold else sign

    def _answered(self, event: Mapping[str, Any]) -> list[Sign]:
        """One failed request; whether it was the last is reported elsewhere."""
        status, told = number(event, "status"), text(event, "retry_after")
        wait = float(told) if re.fullmatch(r"\d{1,9}(?:\.\d+)?", told) else None
        if status == 429:
            now = moment(text(event, "timestamp")) or time.time()
            self._reset = None if wait is None else now + wait
            return [Limited("the endpoint limits its requests", reset_at=self._reset, final=False)]
        if status is None or status >= 500:
            why = text(event, "error") or f"the endpoint answered with {status}"
            return [Retrying(why, status=status, wait_sec=wait)]
        return []

    def _words(self, words: str) -> list[Sign]:
        if again := _AGAIN.search(words):
            return meaning(again[2], now=time.time(), final=False)
        if waits := _WAITS.search(words):
            return [Limited(words, reset_at=time.time() + int(waits[1]), final=False)]
        if _NO_SESSION.search(words):
            return [Over("no_session", words)]
        if words == "Operation cancelled.":
            return [Over("aborted", words)]
        if _TURNS.search(words):
            return [Over("turns", words)]
        return [Over("usage", words)] if _USAGE.search(words) else []


def _again(data: Mapping[str, Any]) -> Iterable[Sign]:
    """It does not say why; only an endpoint's limit has a number of tries."""
    wait = amount(data, "delayMs")
    if wait is not None and number(data, "maxRetries") is not None:
        return [Limited("the endpoint limits its requests", reset_at=time.time() + wait / 1000, final=False)]
    return [Retrying("the answer broke off", wait_sec=None if wait is None else wait / 1000)]


def _denied(name: str, about: str, told: str) -> Denied | None:
    if name in _CHANGING and _OUTSIDE.search(told):
        return Denied(name, about, rule=True)
    refused = _REFUSED.search(told) or (name in _WITHHELD and _NOT_OFFERED.search(told))
    return Denied(name, about) if refused else None


def _tokens(usage: Mapping[str, Any], *, step: bool) -> Tokens:
    return Tokens(
        input=number(usage, "input_tokens"),
        output=number(usage, "output_tokens"),
        cache_read=number(usage, "cache_read_input_tokens") or 0,
        step=step,
        session_tokens=not step,
    )
