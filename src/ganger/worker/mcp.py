"""The verbs as an MCP server on stdin and stdout: each line is passed on to the lead, and its answer is printed.

Calls that must not be lost go through the spool. Without a lead, enough is answered here for a client to start and
to continue.
"""

from __future__ import annotations

import json
import sys

from .arguments import Given
from .errors import Away, WorkerError
from .find_run import find_claim
from .http import MCP, call
from .identity import WorkerIdentity, in_environment
from .sending import KEPT, Outcome, ask, tell
from .table import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TextIO

    from .http import LeadAnswer

    Message = dict[str, Any]

_VERSION = "2025-06-18"
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_LONGEST_LINE = 16 * 1024 * 1024
# Longer than any wait of the protocol, and than making a workspace takes.
_ANSWER_SEC = 150.0
_PARSE_ERROR, _NO_METHOD, _INTERNAL = -32700, -32601, -32603


class Bridge:
    """Connects one client to the lead. It has no identity until it holds a task or its environment gives one."""

    def __init__(self, given: Given, environ: Mapping[str, str]) -> None:
        self._given, self._environ = given, environ
        self._version = ""

    def answer(self, line: str) -> object | None:
        """The answer to a line; None if it needs no answer."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _error(None, _PARSE_ERROR, "this is not JSON")
        try:
            if isinstance(message, dict) and message.get("method") == "tools/call":
                return self._called(message)
            return self._passed(message)
        except Away as away:
            return self._alone(message, away)
        except WorkerError as problem:
            return _error(_id(message), _INTERNAL, f"{problem.message}; {problem.hint}")

    def _called(self, message: Message) -> object | None:
        name, given = _parameters(message).get("name"), _parameters(message).get("arguments")
        body = dict(given) if isinstance(given, dict) else {}
        if name == "next":
            return self._asked(message, body)
        if not isinstance(name, str) or name not in VERBS or name == "mcp":
            return self._passed(message)
        try:
            post = self._post(str(body.pop("token", "") or ""))
            outcome = tell(post, name, body) if name in KEPT else ask(post, name, body, _ANSWER_SEC)
        except WorkerError as problem:
            return _result(
                message, {"ok": False, "code": problem.code, "message": problem.message, "hint": problem.hint}
            )
        return _result(message, _spoken(outcome))

    def _post(self, token: str) -> WorkerIdentity:
        worker, run = self._given.text("worker"), self._given.text("run")
        post = in_environment(worker, run, self._environ)
        post = post or find_claim(worker, run, self._given.text("project"), self._environ)
        return WorkerIdentity(token, post.report, "", "") if token and token != post.token else post

    def _asked(self, message: Message, body: Message) -> object:
        from .next import Asker
        from .sending import named

        words = Given()
        words.values = {**self._given.values, "role": [str(role) for role in body.get("roles") or ()]}
        if body.get("worker"):
            words.values["worker"] = str(body["worker"])
        wait = body.get("wait_sec")
        wait_sec = float(wait) if isinstance(wait, (int, float)) else 0.0
        try:
            asker = Asker(words, self._environ)
            door = asker.door()
            reply = asker.ask(door, named({})["id"], max(0.0, min(wait_sec, 60.0)))
        except WorkerError as problem:
            return _result(
                message, {"ok": False, "code": problem.code, "message": problem.message, "hint": problem.hint}
            )
        if reply.get("task"):
            self._given.values["worker"] = asker.remember(door, reply)["worker"]
        return _result(message, reply)

    def _passed(self, message: object) -> object | None:
        """The lead's answer to the unchanged message."""
        body = self._sent(message).body
        if not body:
            return None
        if "value" not in body and "jsonrpc" not in body:
            return _error(_id(message), _INTERNAL, f"{body.get('message')} [{body.get('code')}]")
        result = body.get("result")
        if isinstance(message, dict) and message.get("method") == "initialize" and isinstance(result, dict):
            self._version = str(result.get("protocolVersion", ""))
        answer: object = body.get("value", body)
        return answer

    def _sent(self, message: object) -> LeadAnswer:
        try:
            post = self._post("")
            address, token = post.report, post.token
        except WorkerError:
            from .next import Asker

            door = Asker(self._given, self._environ).door()
            address, token = door.address, door.token
        return call(address, token, MCP, message, _ANSWER_SEC, self._fields(message))

    def _fields(self, message: object) -> dict[str, str]:
        """The headers of the streamable transport, which stdin does not have."""
        version = _told_version(message) or self._version
        fields = {"MCP-Protocol-Version": version} if version else {}
        if isinstance(message, dict) and isinstance(message.get("method"), str):
            fields["Mcp-Method"] = message["method"]
            name = _parameters(message).get("name")
            if isinstance(name, str):
                fields["Mcp-Name"] = name
        return fields

    def _alone(self, message: object, away: Away) -> object | None:
        """Answers what a client needs to start, while no lead can."""
        if isinstance(message, list):
            return _error(None, _INTERNAL, f"{away.message}; {away.hint}")
        if not isinstance(message, dict) or "id" not in message:
            return None
        method = message.get("method")
        if method == "ping":
            return {"jsonrpc": "2.0", "id": message["id"], "result": {}}
        if method == "initialize":
            asked = _parameters(message).get("protocolVersion")
            known = {"protocolVersion": asked if isinstance(asked, str) else _VERSION, "capabilities": {"tools": {}}}
            return {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": {**known, "serverInfo": {"name": "ganger", "version": "1"}},
            }
        if method == "tools/list":
            tools = [_tool(name) for name in VERBS if name != "mcp"]
            return {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}
        # A client that asks for revisions first falls back to the oldest one if this method is missing.
        return _error(message["id"], _NO_METHOD, f"{away.message}; {away.hint}")


def _tool(name: str) -> Message:
    return {"name": name, "description": VERBS[name].line, "inputSchema": {"type": "object"}}


def _spoken(outcome: Outcome) -> Message:
    if outcome.kept:
        return {"ok": True, "kept": True, "message": f"kept, will be sent {outcome.later}"}
    return outcome.answer.body if outcome.answer is not None else {"ok": True}


def _result(message: Message, reply: Message) -> Message | None:
    if "id" not in message:
        return None
    result = {
        "content": [{"type": "text", "text": json.dumps(reply)}],
        "structuredContent": reply,
        "isError": reply.get("ok") is False,
    }
    if _told_version(message):
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _error(id_: object, code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}


def _parameters(message: Message) -> Message:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _told_version(message: object) -> str:
    """The revision stated in a message itself, in protocols without a handshake."""
    meta = _parameters(message).get("_meta") if isinstance(message, dict) else None
    told = meta.get(_META_VERSION) if isinstance(meta, dict) else None
    return told if isinstance(told, str) else ""


def _id(message: object) -> object:
    return message.get("id") if isinstance(message, dict) else None


def serve(given: Given, environ: Mapping[str, str]) -> int:
    """Serves until the client disconnects."""
    bridge = Bridge(given, environ)
    while True:
        line = sys.stdin.readline(_LONGEST_LINE)
        if not line:
            return 0
        if line.strip():
            _print(bridge.answer(line), sys.stdout)


def _print(answer: object | None, stream: TextIO) -> None:
    if answer is not None:
        stream.write(json.dumps(answer) + "\n")
        stream.flush()
