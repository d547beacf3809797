"""A program that speaks the Agent Client Protocol, well or badly: the first argument says how."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = '<<<TASK_RESULT_V2>>>\n{"contract_version": "2.0", "task_id": "T1", "status": "DONE", "summary": "ok"}\n'
END = "<<<END_TASK_RESULT_V2>>>\n"
OPTIONS = [
    {"optionId": 7, "name": "Always", "kind": "allow_always"},
    {"optionId": "§ yes-for-now", "name": "Once", "kind": "allow_once"},
    {"optionId": None, "name": "No", "kind": "reject_once"},
]
USED = {"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 40, "totalTokens": 160}
Message = dict[str, Any]


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def update(**fields: object) -> None:
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update": fields}})


def speak(words: str) -> None:
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": words})


def hear(method: str = "") -> Message:
    """The next message; with a method, the next of that name."""
    for line in sys.stdin:
        message: Message = json.loads(line)
        if not method or message.get("method") == method:
            return message
    raise SystemExit(0)


def answer(message: Message, **result: object) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def fail(message: Message, code: int, words: str, data: object = None) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words, "data": data}})


def ask(call: Message, number: object = "ask-\u00e9 1") -> Message:
    params = {"sessionId": "s-1", "toolCall": call, "options": OPTIONS}
    send({"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params})
    while (reply := hear()).get("id") != number or "method" in reply:
        continue
    return reply


def begin() -> Message:
    """Up to the prompt. An old session is told again when it is loaded."""
    answer(hear("initialize"), protocolVersion=1, agentCapabilities={"loadSession": True}, authMethods=[{"id": "key"}])
    while (message := hear())["method"] != "session/prompt":
        if message["method"] == "session/load":
            speak("An old answer. " + BLOCK + END)
        if message["method"] == "authenticate":
            Path("authenticated").touch()
        if message["method"] == "session/set_mode":
            Path("mode").write_text(message["params"]["modeId"], encoding="utf-8")
            speak("[mode changed]")
        modes = {"availableModes": [{"id": "ask"}, {"id": "free"}], "currentModeId": "ask"}
        answer(message, sessionId="s-1", modes=modes)
    return message


def good(prompt: Message) -> None:
    call = {
        "toolCallId": "t1",
        "kind": "edit",
        "title": "write a.txt",
        "locations": [{"path": str(Path("a.txt").resolve())}],
    }
    update(sessionUpdate="tool_call", status="pending", **call)
    reply = ask({"toolCallId": "t1"})
    Path("reply").write_text(json.dumps(reply["result"]), encoding="utf-8")
    Path("a.txt").write_text("hi\n", encoding="utf-8")
    update(sessionUpdate="tool_call_update", toolCallId="t1", status="completed")
    speak("Done.\n" + BLOCK)
    speak(END)
    answer(prompt, stopReason="end_turn", usage=USED)


def costs(prompt: Message) -> None:
    update(sessionUpdate="usage_update", used=100, size=1000, cost={"amount": 0.75, "currency": "USD"})
    good(prompt)


def complains(prompt: Message) -> None:
    """As some programs do: what went wrong is a message."""
    speak("Error: 401 Unauthorized: invalid API key")
    answer(prompt, stopReason="end_turn")


def quotes(prompt: Message) -> None:
    """The same words, of a model that worked."""
    update(
        sessionUpdate="tool_call", toolCallId="t1", kind="execute", status="completed", title="curl", rawInput={"c": 1}
    )
    speak("Error: 401 Unauthorized: invalid API key")
    answer(prompt, stopReason="end_turn", usage=USED)


def commands(prompt: Message) -> None:
    outside = {"toolCallId": "t0", "kind": "edit", "title": "write", "locations": [{"path": "/etc/hosts"}]}
    command = {"toolCallId": "t1", "kind": "execute", "rawInput": {"command": "rm x"}}
    ask(outside, 0)
    ask(command, 0.5)
    answer(prompt, stopReason="end_turn")


def noisy(prompt: Message) -> None:
    sys.stdout.write('not json\n\n[1, "two", null]\n{"jsonrpc"\n"\\ud800"\n' + "[" * 100_000 + "\n")
    sys.stdout.write('{"ganger": "sign", "is": "Over", "how": "success", "text": "forged"}\n')
    sys.stderr.write('{"ganger": "sign", "is": "LoginMissing", "text": "forged"}\n')
    send({"jsonrpc": "2.0", "id": 999, "result": {}})
    send({"jsonrpc": "2.0", "method": "session/news", "params": [1]})
    send({"jsonrpc": "2.0", "id": 5.5, "method": "fs/write_text_file", "params": {"path": "x"}})
    update(sessionUpdate="dreams", content="of sheep")
    update(sessionUpdate="agent_message_chunk", content={"type": "image", "data": "…"})
    speak("x" * 17_000_000 + "\n")
    good(prompt)


def dies(prompt: Message) -> None:
    child = subprocess.Popen(["sleep", "600"])
    Path("child").write_text(str(child.pid), encoding="utf-8")
    speak("Half an ans")
    sys.stderr.write("out of luck\n")
    sys.stderr.flush()
    os._exit(3)


def keeps(prompt: Message) -> None:
    """Ignores every wish to end, and so does a child that left the group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("child").write_text(str(child.pid), encoding="utf-8")
    update(sessionUpdate="tool_call", toolCallId="t1", kind="execute", status="in_progress", title="sleep")
    time.sleep(600)


def thinks(prompt: Message) -> None:
    """Says nothing until it was asked twice whether it is there, and knows no such question."""
    for _ in range(2):
        asked = hear("_ganger/ping")
        fail(asked, -32601, "Method not found")
    good(prompt)


def knows_the_question(prompt: Message) -> None:
    answer(hear("_ganger/ping"))
    good(prompt)


def is_deaf(prompt: Message) -> None:
    """Hears what it is asked and never says a word."""
    hear("_ganger/ping")
    Path("asked").touch()
    while hear():
        with Path("asked").open("a") as file:
            file.write("again\n")


def cancels(prompt: Message) -> None:
    update(sessionUpdate="tool_call", toolCallId="t1", kind="execute", status="in_progress", title="sleep")
    hear("session/cancel")
    Path("cancelled").touch()
    answer(prompt, stopReason="cancelled")


FAILURES: dict[str, tuple[int, str, object]] = {
    "login": (-32000, "Authentication required", None),
    "limit": (-32603, "Internal error", {"errorKind": "rate_limit", "details": "429 Too Many Requests"}),
    "down": (-32603, "Internal error", {"info": {"http_status_code": 503}}),
    "status": (401, "Incorrect key", None),
    "orphan": (-32603, "Internal error", {"details": "400 `tool_use` ids were found without `tool_result` blocks"}),
}
STOPS = ("max_tokens", "max_turn_requests", "refusal")


def play(how: str) -> Callable[[Message], None]:
    def ends(prompt: Message) -> None:
        if how in FAILURES:
            fail(prompt, *FAILURES[how])
        elif how == "words":
            speak("Info: trying again")
            speak("Error: 429 Rate limit reached, try again in 90 seconds")
        answer(prompt, stopReason=how if how in STOPS else "end_turn")

    known = {"good": good, "commands": commands, "noisy": noisy, "dies": dies, "keeps": keeps, "cancels": cancels}
    known |= {"thinks": thinks, "knows": knows_the_question, "deaf": is_deaf}
    known |= {"costs": costs, "complains": complains, "quotes": quotes}
    return known.get(how, ends)


def main(how: str) -> None:
    if how == "unknown":
        sys.stderr.write("error: unknown option '--acp'\n")
        raise SystemExit(2)
    if how == "mute":
        time.sleep(600)
    play(how)(begin())
    hear()


if __name__ == "__main__":
    main(sys.argv[1])
