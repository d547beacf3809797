"""The process that speaks the Agent Client Protocol with an agent program: the prompt on stdin, signals on stdout.

A plain program that needs no supervision: it starts the agent, gives it the prompt, answers its questions by rule,
prints one line per signal, and stops the agent's whole process tree before it exits.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ganger.agents.acp.jsonrpc import Gone, RpcRefusal, Wire, end_tree, exited
from ganger.agents.acp.objects import about, name_of, option_of, shown, status_of, used_in
from ganger.agents.sign_lines import encode, harmless
from ganger.agents.streams import Lines, amount, items, number, part, text
from ganger.agents.words import meaning
from ganger.core.signs import (
    Alive,
    Context,
    Denied,
    How,
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

_SHORT = 200
_CHUNK = 64 * 1024
_LAST_WORDS = 2000
_CANCEL_SEC = 3.0
_REST_SEC = 1.0
# Names with this prefix are free for extensions: an agent that does not know one says so, which is an answer too.
_PING = "_ganger/ping"
_LOGIN_CODES = frozenset((-32000, -31002))
_EDITS = frozenset(("read", "edit", "delete", "move", "search", "think"))
_STOPS: dict[str, How] = {
    "end_turn": "success",
    "max_tokens": "length",
    "max_turn_requests": "turns",
    "refusal": "refused",
    "cancelled": "aborted",
}


@dataclass(frozen=True, slots=True)
class Errand:
    """What to do with which agent program. It is passed as an argument and holds no secret.

    `allow`: "all" or "edit". `mode`, `model` and `auth` are the agent's own names; one it does not offer is left out.
    `errors` is a pattern for a last message that is an error of the model's; `retrying` one for lines of its stderr.
    `usage`: what the numbers of an answer are: "prompt", "session" (a running total), "none" (not of the whole prompt).
    The cost, where reported, is a running total of the session.
    `quiet_sec`: after this long without output at work it is probed.
    """

    argv: tuple[str, ...]
    session: str = ""
    allow: str = "edit"
    mode: str = ""
    model: str = ""
    auth: str = ""
    errors: str = ""
    retrying: str = ""
    usage: str = "prompt"
    start_sec: float = 60.0
    quiet_sec: float = 60.0

    def written(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, given: str) -> Errand:
        data = json.loads(given)
        return cls(**{**data, "argv": tuple(data["argv"])})


class AcpClient:
    def __init__(self, errand: Errand, prompt: str, say: Callable[[Sign], None]) -> None:
        self.errand, self.prompt, self.say = errand, prompt, say
        self._session = ""
        self._asked = self._stopping = False
        self._message: list[str] = []
        self._last_words = ""
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._usd: float | None = None

    async def run(self) -> int:
        """0 if the agent finished by itself and reports success."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self.errand.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return self._over([Over("usage", f"{self.errand.argv[0]} cannot be started: {error.strerror}")])
        wire = Wire(process, answer=self._answer, notice=self._notice, noise=self._noise)
        reading = [asyncio.create_task(wire.listen()), asyncio.create_task(self._relay(process))]
        watching = asyncio.create_task(_watch(process, wire))
        talking = asyncio.create_task(self._talk(wire, process))
        for wish in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(wish, self._stop, wire, talking)
        try:
            signs = await talking
        except asyncio.CancelledError:
            signs = [Over("aborted", "it was told to stop")]
        watching.cancel()
        await end_tree(process, wire.hang_up)
        await asyncio.wait(reading, timeout=_REST_SEC)
        return self._over(signs)

    # --- the conversation ---------------------------------------------------------------------------------------------

    async def _talk(self, wire: Wire, process: Process) -> list[Sign]:
        doing = "initialize"
        try:
            async with asyncio.timeout(self.errand.start_sec):
                offered = await wire.ask("initialize", _HELLO)
                if self.errand.auth and any(
                    text(way, "id") == self.errand.auth for way in items(offered, "authMethods")
                ):
                    doing = "authenticate"
                    await wire.ask("authenticate", {"methodId": self.errand.auth})
                doing = "a session"
                await self._open(wire, offered)
            doing = "the prompt"
            self._asked = True
            content = [{"type": "text", "text": self.prompt}]
            asking = asyncio.create_task(self._ask_if_there(wire))
            try:
                return self._answered(await wire.ask("session/prompt", {"sessionId": self._session, "prompt": content}))
            finally:
                asking.cancel()
        except TimeoutError:
            return [Over("error", f"the agent did not answer {doing} within {self.errand.start_sec:g} s")]
        except _NoSession as problem:
            return [Over("no_session", str(problem))]
        except RpcRefusal as refusal:
            return self._refused(refusal)
        except Gone:
            return [await self._died(process, doing)]

    async def _ask_if_there(self, wire: Wire) -> None:
        """Probes a quiet agent, because a model may think for a long time. Sends one probe at a time."""
        loop = asyncio.get_running_loop()
        while True:
            while (left := wire.heard_at + self.errand.quiet_sec - loop.time()) > 0:
                await asyncio.sleep(left)
            try:
                await wire.ask(_PING, {})
            except RpcRefusal:
                pass
            except Gone:
                return
            self.say(Alive())

    async def _open(self, wire: Wire, offered: Mapping[str, Any]) -> None:
        place: dict[str, Any] = {"cwd": str(Path.cwd()), "mcpServers": []}
        if self.errand.session:
            opened = await self._load(wire, offered, place)
            self._session = self.errand.session
        else:
            opened = await wire.ask("session/new", place)
            self._session = text(opened, "sessionId")
        self.say(Session(self._session))
        await self._choose(wire, opened)

    async def _load(self, wire: Wire, offered: Mapping[str, Any], place: dict[str, Any]) -> dict[str, Any]:
        can = part(offered, "agentCapabilities")
        resumes = "resume" in part(can, "sessionCapabilities")
        if not resumes and can.get("loadSession") is not True:
            raise _NoSession("this agent cannot continue a session")
        try:
            return await wire.ask(
                "session/resume" if resumes else "session/load", {"sessionId": self.errand.session, **place}
            )
        except RpcRefusal as refusal:
            if refusal.code in _LOGIN_CODES:
                raise
            raise _NoSession(f"{refusal.message} {shown(refusal.data)}".strip()) from None

    async def _choose(self, wire: Wire, opened: Mapping[str, Any]) -> None:
        """Sets the wanted mode and model, if the agent offers them."""
        mine = {"sessionId": self._session}
        modes = {text(mode, "id") for mode in items(opened, "modes", "availableModes")}
        if self.errand.mode in modes and self.errand.mode != text(opened, "modes", "currentModeId"):
            await wire.ask("session/set_mode", {**mine, "modeId": self.errand.mode})
        models = {text(model, "modelId") for model in items(opened, "models", "availableModels")}
        current = text(opened, "models", "currentModelId")
        if self.errand.model in models and self.errand.model != current:
            await wire.ask("session/set_model", {**mine, "modelId": self.errand.model})
        # Some add text of their own to the names.
        if named := self.errand.model or current:
            self.say(Model(named))

    def _answered(self, answer: Mapping[str, Any]) -> list[Sign]:
        signs: list[Sign] = [used] if (used := self._tokens(answer)) else []
        stop, last = text(answer, "stopReason"), "".join(self._message).strip()
        wrong = re.search(self.errand.errors, last, re.DOTALL) if self.errand.errors and "<<<" not in last else None
        if stop == "end_turn" and wrong is not None:
            return [*signs, *self._error_in_words(wrong[0].strip(), worked=used is not None and bool(used.output))]
        return [
            *signs,
            Over(_STOPS.get(stop, "error"), "" if stop in _STOPS else f"the agent stopped: {stop or answer}"),
        ]

    def _error_in_words(self, words: str, *, worked: bool) -> list[Sign]:
        """Some programs report errors as a message. A model that answered may say the same words itself, so then they
        do not stop the account."""
        told = meaning(words, now=time.time())
        if not (worked or self._begun):
            return told
        return [Over("error", words) if isinstance(sign, LoginMissing) else sign for sign in told]

    def _refused(self, refusal: RpcRefusal) -> list[Sign]:
        if refusal.code in _LOGIN_CODES:
            return [LoginMissing(refusal.message)]
        status = refusal.code if 400 <= refusal.code < 600 else status_of(refusal.data)
        return meaning(f"{refusal.message} {shown(refusal.data)}".strip(), status=status, now=time.time())

    async def _died(self, process: Process, doing: str) -> Sign:
        try:
            code = await exited(process, _CANCEL_SEC)
        except TimeoutError:
            return Over("error", f"the agent closed its output and went on, before it answered {doing}")
        if self._stopping:
            return Over("aborted", "it was told to stop")
        told = self._last_words.strip()[-_SHORT * 4 :]
        said = f"; its last words: {told}" if told else ""
        # A program that prints a message and exits before it speaks the protocol does not understand its arguments.
        how: How = "usage" if doing == "initialize" and code > 0 else "error"
        return Over(how, f"the agent ended with code {code} before it answered {doing}{said}")

    def _stop(self, wire: Wire, talking: asyncio.Task[Any]) -> None:
        if self._stopping:
            return
        self._stopping = True
        wait_sec = 0.0
        if self._session:
            wire.tell("session/cancel", {"sessionId": self._session})
            wait_sec = _CANCEL_SEC
        asyncio.get_running_loop().call_later(wait_sec, talking.cancel)

    # --- what the agent reports and asks ------------------------------------------------------------------------------

    def _notice(self, method: str, params: dict[str, Any]) -> None:
        # Notices before the prompt repeat an old session, or are about settings.
        if method != "session/update" or not self._asked:
            return
        update = part(params, "update")
        match text(update, "sessionUpdate"):
            case "agent_message_chunk":
                self._chunk(text(update, "content", "text"))
            case "tool_call" | "tool_call_update":
                self._tool(update)
            case "usage_update":
                self._used(update)

    def _chunk(self, words: str) -> None:
        if self._retries(words):
            return
        if words:
            self._message.append(words)
            self.say(Said(words, part=True))

    def _tool(self, update: Mapping[str, Any]) -> None:
        """Some announce a call before its details are known; then the next update has them."""
        key, status = text(update, "toolCallId"), text(update, "status")
        vague = text(update, "sessionUpdate") == "tool_call" and status == "pending" and not part(update, "rawInput")
        call = self._tools[key] = {
            **self._tools.get(key, {}),
            **{name: value for name, value in update.items() if value},
        }
        self._message.clear()
        if key not in self._begun and not vague:
            self._begun.add(key)
            self.say(ToolStarted(key, name_of(call), about(call)))
        if status in ("completed", "failed") and key not in self._ended:
            self._ended.add(key)
            self.say(ToolEnded(key, name_of(call), ok=status == "completed"))

    def _used(self, update: Mapping[str, Any]) -> None:
        if (used := number(update, "used")) is not None:
            self.say(Context(used, number(update, "size") or 0))
        if text(update, "cost", "currency") == "USD":
            self._usd = amount(update, "cost", "amount")

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method != "session/request_permission":
            return None
        asked = part(params, "toolCall")
        call = {**self._tools.get(text(asked, "toolCallId"), {}), **asked}
        outside = self._outside(call)
        options = list(items(params, "options"))
        if self._may(call, outside) and (chosen := option_of(options, "allow_once")):
            return chosen
        self.say(Denied(name_of(call), about(call), rule=bool(outside)))
        return option_of(options, "reject_once") or {"outcome": {"outcome": "cancelled"}}

    def _may(self, call: Mapping[str, Any], outside: bool) -> bool:
        return self.errand.allow == "all" or (text(call, "kind") in _EDITS and not outside)

    def _outside(self, call: Mapping[str, Any]) -> bool:
        """Whether the call is about a file outside the workspace."""
        here = os.path.realpath(".")
        places = [os.path.realpath(path) for place in items(call, "locations") if (path := text(place, "path"))]
        return self.errand.allow != "all" and any(os.path.commonpath((here, place)) != here for place in places)

    def _tokens(self, answer: Mapping[str, Any]) -> Tokens | None:
        used, total = used_in(answer) if self.errand.usage != "none" else None, self.errand.usage == "session"
        if used is None:
            return Tokens(usd=self._usd, session_usd=True) if self._usd else None
        return Tokens(*used, usd=self._usd or None, session_tokens=total, session_usd=bool(self._usd))

    # --- its other output ---------------------------------------------------------------------------------------------

    def _noise(self, line: bytes) -> None:
        self._note(line.decode("utf-8", "replace"))

    async def _relay(self, process: Process) -> None:
        assert process.stderr is not None
        lines = Lines()
        while data := await process.stderr.read(_CHUNK):
            for line in lines.feed(data):
                self._note(line.decode("utf-8", "replace"))
        for line in lines.end():
            self._note(line.decode("utf-8", "replace"))

    def _note(self, words: str) -> None:
        self._last_words = f"{self._last_words}\n{words}"[-_LAST_WORDS:]
        sys.stderr.write(f"{harmless(words)}\n")
        sys.stderr.flush()
        self._retries(words)

    def _retries(self, words: str) -> bool:
        if not self.errand.retrying or not re.search(self.errand.retrying, words):
            return False
        for sign in meaning(words, now=time.time(), final=False):
            self.say(sign)
        return True

    def _over(self, signs: Iterable[Sign]) -> int:
        good = False
        for sign in signs:
            self.say(sign)
            good = isinstance(sign, Over) and sign.how == "success"
        return 0 if good else 1


async def _watch(process: Process, wire: Wire) -> None:
    """Ends the connection when the program exits: a child may hold its output open for ever."""
    await exited(process)
    await asyncio.sleep(_REST_SEC)
    wire.give_up()


class _NoSession(Exception):
    """There is no such session, or the agent cannot continue sessions."""


_HELLO: dict[str, Any] = {
    "protocolVersion": 1,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "ganger", "title": "Ganger", "version": "1"},
}


def _print(sign: Sign) -> None:
    sys.stdout.write(f"{encode(sign)}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    errand = Errand.read(arguments[0])
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    return asyncio.run(AcpClient(errand, prompt, _print).run())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
