"""The `opencode` agent: `opencode run`, JSON lines out; its own log shows the retries that it does not report."""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.shells import shell_file, shell_settings
from ganger.agents.streams import amount, number, part, plain, read_json, text
from ganger.agents.words import meaning
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
from ganger.core.verify.environment import tokens_in
from ganger.errors import Fault, InputError
from ganger.ports.agents import AttemptContext, Capabilities

CONFIG = "OPENCODE_CONFIG_CONTENT"
# It sets this for itself and the commands it runs.
_INSIDE = "OPENCODE"
_OF_PROVIDER = {
    "opencode": ("OPENCODE_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    "xai": ("XAI_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "groq": ("GROQ_API_KEY",),
}
_OTHER = "@ai-sdk/openai-compatible"
_SHORT = 200
# A model with this many empty answers in a row speaks another protocol; opencode would ask it for ever.
_MOST_EMPTY = 3
_FIRST_WAIT_SEC, _LONGEST_WAIT_SEC = 2.0, 30.0
_ENDS: dict[str, How] = {"stop": "success", "length": "length", "content-filter": "refused"}
_NAMED: dict[str, How] = {
    "MessageOutputLengthError": "length",
    "ContentFilterError": "refused",
    "MessageAbortedError": "aborted",
    "ProviderModelNotFoundError": "usage",
    "ProviderInitError": "usage",
    "ConfigInvalidError": "usage",
    "ConfigJsonError": "usage",
}


class OpencodeAgent(CliAgent):
    kind = "opencode"
    program = "opencode"
    tried = "1.18.33"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True, usd=True)
    variables = ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_PERMISSION", "OPENCODE_MODELS_PATH")
    keys = tuple(name for names in _OF_PROVIDER.values() for name in names)
    logins = (".local/share/opencode/auth.json",)
    login_hint = "run `opencode auth login`, or set the key of its provider, e.g. ANTHROPIC_API_KEY"
    install_hint = "install it with npm install -g opencode-ai, or name it with argv"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        self.own_config = _read_config(name, environ.get(CONFIG, ""))
        super().__init__(name, given, root, environ)
        self.passed.pop(CONFIG, None)
        if given.base_url and "/" not in given.model:
            message = f"opencode names a model by its provider, like local/{given.model or 'my-model'}"
            raise InputError("ganger.toml", [Fault(f"agents.{name}.model", "SCHEMA_VIOLATION", message)])

    def usable_keys(self) -> tuple[str, ...]:
        """The provider in the model's name decides the key; for the operator's own provider `key_env` names it."""
        provider = (self.given.model or str(self.own_config.get("model", ""))).partition("/")[0]
        return _OF_PROVIDER.get(provider, ()) if provider else self.keys

    def secrets(self) -> Mapping[str, str]:
        own = {f"{CONFIG} {place}": text for place, text in tokens_in(json.dumps(self.own_config).encode())}
        return {**super().secrets(), **own}

    def arguments(self, context: AttemptContext) -> list[str]:
        # With a title set, no extra request is made to find one.
        argv = ["run", "--format", "json", "--pure", "--print-logs", "--log-level", "INFO"]
        argv += ["--session", context.session] if context.session else ["--title", context.task_id]
        argv += ["--model", self.given.model] if self.given.model else []
        return argv + (["--variant", self.given.effort] if self.given.effort else [])

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        bash = shutil.which("bash", path=self.environ.get("PATH"))
        return {
            **shell_settings(context.home, _INSIDE),
            # It runs commands in the operator's shell; only bash reads the file that withholds the key.
            **({"SHELL": bash} if bash else {}),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_SHARE": "1",
            CONFIG: json.dumps(_merged(self.config(context), self.own_config)),
        }

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        return shell_file(self, _INSIDE, CONFIG)

    def config(self, context: AttemptContext) -> dict[str, Any]:
        """Ganger's settings; the operator's own config overrides them."""
        ours: dict[str, Any] = {"autoupdate": False, "share": "disabled", "permission": self._permission(context)}
        if self.given.model:
            ours["model"] = self.given.model
        if self.given.max_turns:
            # Not a hard limit: at that step the model is asked to finish.
            ours["agent"] = {"build": {"steps": self.given.max_turns}}
        if self.given.base_url:
            provider, _, model = self.given.model.partition("/")
            ours["small_model"] = self.given.model
            ours["enabled_providers"] = [provider]
            ours["provider"] = {provider: self._provider(provider, model)}
        return ours

    def reader(self) -> OpencodeReader:
        return OpencodeReader()

    def _permission(self, context: AttemptContext) -> object:
        if self.may_all(context):
            return {"*": "allow"}
        if self.permissions == "edit":
            return {"edit": "allow", "bash": "ask", "webfetch": "ask", "external_directory": "ask"}
        return {"edit": "allow"}

    def _provider(self, provider: str, model: str) -> dict[str, Any]:
        options = {"baseURL": self.given.base_url}
        if self.key():
            options["apiKey"] = f"{{env:{self.key()}}}"
        if f"{provider.upper()}_API_KEY" in self.keys:
            return {"options": options, "models": {model: {}}}
        return {"npm": _OTHER, "name": provider, "options": options, "models": {model: {"tool_call": True}}}


def _read_config(name: str, given: str) -> dict[str, Any]:
    if not given.strip():
        return {}
    try:
        config = json.loads(given)
    except ValueError as error:
        config, why = None, str(error)
    else:
        why = "it is not an object"
    if isinstance(config, dict):
        return config
    message = f"the variable {CONFIG} does not hold JSON: {why}; correct or unset it"
    raise InputError("environment", [Fault(f"agents.{name}", "INVALID_JSON", message)])


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(ours)
    for name, value in theirs.items():
        mine = merged.get(name)
        merged[name] = _merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return merged


# Each part is searched once, after the previous one: a line that only begins like these causes no backtracking.
_LOGGED = re.compile(
    r'\A(?>.*?level=ERROR )(?>.*?message="stream error")(?>.*? small=(true|false))(?>.*? error\.error=")(.*)"'
)
_OUTSIDE = re.compile(r"permission requested: external_directory \(")
_LOGGED_SESSION = re.compile(r" session\.id=(ses_\w+) ")
_CREATED = re.compile(r"\A(?>.*? message=created id=(ses_\w+) ).* parentID=undefined ")
_ASKED_MODEL = re.compile(r"\A(?>.*? message=stream providerID=(\S+) modelID=(\S+) ).* small=false ")
_ALLOWED = re.compile(
    r'\A(?>.*? message=evaluated permission=(\w+) pattern="?)(?>(.*?)"? action\.permission=).* action\.action=allow '
)
_NO_TOOLS = frozenset(("external_directory", "doom_loop"))
_REFUSALS = ("rejected permission", "specified a rule", "user dismissed")


class OpencodeReader:
    """`step_finish` has the usage of a model call; without the session's title and sub-agents."""

    def __init__(self) -> None:
        self._session = self._model = self._running = ""
        self._failed = self._empty = self._calls = 0
        self._spoke = self._outside = False

    def line(self, line: bytes) -> Iterable[Sign]:
        event = read_json(line)
        if event is None or not text(event, "type"):
            yield from self._words(plain(line))
            return
        yield from self._told_session(text(event, "sessionID"))
        match event["type"]:
            case "text":
                self._progress()
                yield Said(text(event, "part", "text"))
            case "tool_use":
                self._progress()
                yield from self._tool(part(event, "part"))
            case "step_finish":
                yield from self._step(part(event, "part"))
            case "error":
                now = (amount(event, "timestamp") or time.time() * 1000) / 1000
                yield from _error(part(event, "error"), now)

    def end(self) -> Iterable[Sign]:
        return ()

    def _told_session(self, session: str) -> Iterable[Sign]:
        if session and session != self._session:
            self._session = session
            yield Session(session)

    def _progress(self) -> None:
        self._failed = self._empty = 0
        self._spoke = True

    def _tool(self, tool: Mapping[str, Any]) -> Iterable[Sign]:
        name, call = text(tool, "tool"), text(tool, "callID") or text(tool, "id")
        about, failure = _about(part(tool, "state", "input")), text(tool, "state", "error")
        if not self._running:
            yield ToolStarted(call, name, about)
        yield ToolEnded(self._running or call, name, ok=text(tool, "state", "status") != "error")
        self._running = ""
        if any(words in failure for words in _REFUSALS):
            yield Denied(name, about, rule=self._outside)
            self._outside = False

    def _step(self, step: Mapping[str, Any]) -> Iterable[Sign]:
        used = _tokens(step)
        reason, spoke = text(step, "reason"), self._spoke
        self._spoke = False
        if used.input or used.output:
            self._failed = 0
            yield used
            yield Context((used.input or 0) + (used.output or 0))
        if reason in _ENDS:
            yield Over(_ENDS[reason])
        elif not spoke and not used.output:
            self._empty += 1
            endless = self._empty >= _MOST_EMPTY
            yield Retrying(
                f"the model answered with nothing, {self._empty} times in a row", wait_sec=math.inf if endless else 0.0
            )

    def _words(self, words: str) -> Iterable[Sign]:
        if (logged := _LOGGED.search(words)) and logged[1] == "false":
            yield from self._again(words, logged[2].replace('\\"', '"'))
        elif "Session not found" in words:
            yield Over("no_session", words)
        elif _OUTSIDE.search(words):
            # The call refused for it follows as an event.
            self._outside = True
        elif " level=INFO " in words:
            yield from self._noted(words)

    def _again(self, words: str, error: str) -> Iterable[Sign]:
        if session := _LOGGED_SESSION.search(words):
            yield from self._told_session(session[1])
        self._failed += 1
        wait_sec = min(_FIRST_WAIT_SEC * 2 ** (self._failed - 1), _LONGEST_WAIT_SEC)
        for sign in meaning(error, now=time.time(), final=False):
            yield Retrying(sign.text, sign.status, sign.wait_sec or wait_sec) if isinstance(sign, Retrying) else sign

    def _noted(self, words: str) -> Iterable[Sign]:
        """The log has the session before its first answer, the model, and a tool before it has finished."""
        if created := _CREATED.search(words):
            yield from self._told_session(created[1])
        elif asked := _ASKED_MODEL.search(words):
            if (model := f"{asked[1]}/{asked[2]}") != self._model:
                self._model = model
                yield Model(model)
        elif (allowed := _ALLOWED.search(words)) and not self._running and allowed[1] not in _NO_TOOLS:
            self._calls += 1
            self._running = f"call {self._calls}"
            yield ToolStarted(self._running, allowed[1], allowed[2][:_SHORT])


def _tokens(step: Mapping[str, Any]) -> Tokens:
    read, write = number(step, "tokens", "cache", "read") or 0, number(step, "tokens", "cache", "write") or 0
    sent, made = number(step, "tokens", "input"), number(step, "tokens", "output")
    cost = amount(step, "cost")
    return Tokens(
        input=None if sent is None else sent + read + write,
        output=None if made is None else made + (number(step, "tokens", "reasoning") or 0),
        cache_read=read,
        cache_write=write,
        # It reports 0 for a model of unknown price.
        usd=cost or None,
        step=True,
    )


def _about(given: Mapping[str, Any]) -> str:
    for name in ("command", "filePath", "path", "pattern", "url", "description"):
        if found := text(given, name):
            return found[:_SHORT]
    return ""


def _error(error: Mapping[str, Any], now: float) -> Iterable[Sign]:
    name, data = text(error, "name"), part(error, "data")
    told = text(data, "message") or name
    if name in _NAMED:
        return [Over(_NAMED[name], told)]
    if name == "ProviderAuthError":
        return [LoginMissing(told)]
    body = text(data, "responseBody")
    signs = meaning(f"{told} {body}" if body and body not in told else told, status=number(data, "statusCode"), now=now)
    wait_sec = _wait(part(data, "responseHeaders"))
    return [
        Limited(told, now + wait_sec, empty=sign.empty)
        if isinstance(sign, Limited) and sign.reset_at is None and wait_sec is not None
        else sign
        for sign in signs
    ]


def _wait(headers: Mapping[str, Any]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(text(headers, name)) * unit
        except ValueError:
            continue
    return None
