"""A stand-in for Cursor's `agent`: what its documentation says of print mode, no more. It is not the real program.

The prompt comes on stdin. A line `STAND-IN: {"do": …}` in it says what to play:
  edit (the default)  writes a file (`path`, `content`) with its own tool, then answers
  writes              leaves that file to its answer
  shell               wants to run two commands
  limit, login, down, trust   ends with words on stderr, as errors do
A session is a file of its home; `--resume` continues it and says how many turns there were before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

ENDS = {
    "limit": "Error: You've hit your usage limit\n  Get Cursor Pro for more Agent usage, unlimited Tab, and more.\n"
    "  chatMessage: Your usage limits will reset when your monthly cycle ends on 12/17/2026.",
    "login": "Error: Authentication required. Please run 'agent login' first, or set CURSOR_API_KEY.",
    "down": "ConnectError: [unavailable] read ECONNRESET",
    "model": "Cannot use this model: nonsense. Available models: auto, gpt-5",
}


def say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def fail(words: str) -> int:
    sys.stderr.write(f"{words}\n")
    return 1


def tool(session: str, name: str, args: Mapping[str, object], result: Mapping[str, object]) -> None:
    call_id = f"toolu_{uuid.uuid4().hex[:12]}"
    for subtype, call in (("started", {"args": args}), ("completed", {"args": args, "result": result})):
        say(type="tool_call", subtype=subtype, call_id=call_id, tool_call={name: call}, session_id=session)


def edit(session: str, order: Mapping[str, str]) -> None:
    path, content = Path.cwd() / order.get("path", "made.txt"), order.get("content", "made by the stand-in\n")
    path.write_text(content, encoding="utf-8")
    done = {"success": {"path": str(path), "linesCreated": 1, "fileSize": len(content)}}
    tool(session, "writeToolCall", {"path": str(path), "fileText": content}, done)


def shell(session: str, *, force: bool) -> None:
    for command in ("touch one.txt", "touch two.txt"):
        refused, done = {"rejected": {"command": command, "reason": "not allowed"}}, {"success": {"exitCode": 0}}
        tool(session, "shellToolCall", {"command": command}, done if force else refused)


def main() -> int:
    parser = argparse.ArgumentParser(prog="agent")
    parser.add_argument("-p", "--print", action="store_true")
    parser.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    for flag in ("--force", "--trust", "--version"):
        parser.add_argument(flag, action="store_true")
    for option in ("--sandbox", "--model", "--resume"):
        parser.add_argument(option, default="")
    given = parser.parse_args()
    if given.version:
        sys.stdout.write("2026.11.01-stand-in\n")
        return 0
    if not os.environ.get("CURSOR_API_KEY"):
        return fail(ENDS["login"])
    prompt = sys.stdin.read()
    order = next((line for line in prompt.splitlines() if line.startswith("STAND-IN: ")), "STAND-IN: {}")
    return play(prompt, given, json.loads(order.removeprefix("STAND-IN: ")))


def play(prompt: str, given: argparse.Namespace, order: Mapping[str, str]) -> int:
    do = order.get("do", "edit")
    session = given.resume or str(uuid.uuid4())
    kept = Path.home() / ".cursor" / "chats" / session
    if given.resume and not kept.exists():
        return fail(f"Error: Chat {session} not found")
    if not given.trust:
        return fail("Workspace Trust Required: run with --trust")
    if do in ENDS:
        return fail(ENDS[do])
    before = len(kept.read_text(encoding="utf-8").splitlines()) if kept.exists() else 0
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open(kept, "a", encoding="utf-8") as file:
        file.write("turn\n")
    asked = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    say(type="system", subtype="init", apiKeySource="env", cwd=str(Path.cwd()), session_id=session,
        model=given.model or "auto", permissionMode="default")  # fmt: skip
    say(type="user", message=asked, session_id=session)
    if do == "shell":
        shell(session, force=given.force)
    elif do != "writes":
        edit(session, order)
    answer(session, {"summary": f"Turns before: {before}.", **written(order)}, task_of(prompt))
    return 0


def written(order: Mapping[str, str]) -> dict[str, object]:
    if order.get("do") != "writes":
        return {}
    return {"writes": [{"path": order["path"], "op": "create", "encoding": "utf8", "content": order["content"]}]}


def task_of(prompt: str) -> str:
    found = re.search(r'"task_id": "([^"]+)"', prompt)
    return found[1] if found else "T1"


def answer(session: str, result: Mapping[str, object], task: str) -> None:
    block = json.dumps({"contract_version": "2.0", "task_id": task, "status": "DONE", **result})
    pieces = ["Done.\n\n", f"<<<TASK_RESULT_V2>>>\n{block}\n<<<END_TASK_RESULT_V2>>>\n"]
    for piece in pieces:
        said = {"role": "assistant", "content": [{"type": "text", "text": piece}]}
        say(type="assistant", message=said, session_id=session)
    used = {"inputTokens": 1200, "outputTokens": 34, "cacheReadTokens": 1000, "cacheWriteTokens": 0}
    say(type="result", subtype="success", duration_ms=1234, duration_api_ms=1234, is_error=False, usage=used,
        result="".join(pieces), session_id=session, request_id=str(uuid.uuid4()))  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
