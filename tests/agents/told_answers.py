"""A program that gives the answer its prompt holds, in the words of one kind of agent. Standard library only.

Called as `told_answers.py KIND …`; the prompt has a line `PLAY: BASE64`. Kinds: `plain`, `agent` (JSON lines), `acp`
(the protocol), `pty` (a terminal: the task ends with a line that is a dot).
"""

from __future__ import annotations

import base64
import json
import re
import sys

END = "that was the answer"


def answer_in(prompt: str) -> str:
    found = re.search(r"PLAY: ([A-Za-z0-9+/=]+)", prompt)
    return base64.b64decode(found[1]).decode() if found else "nobody told me what to say"


def say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def plain() -> None:
    print(answer_in(sys.stdin.read()))


def agent() -> None:
    text = answer_in(sys.stdin.read())
    say(type="system", subtype="init", session_id="s-1", model="auto")
    say(type="assistant", message={"content": [{"type": "text", "text": text}]}, session_id="s-1")
    say(type="result", subtype="success", is_error=False, result=text, session_id="s-1")


def acp() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "session/prompt":
            content = {"type": "text", "text": answer_in(asked["params"]["prompt"][0]["text"])}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            say(jsonrpc="2.0", method="session/update", params={"sessionId": "s-1", "update": update})
        known = {"protocolVersion": 1, "agentCapabilities": {}, "sessionId": "s-1", "stopReason": "end_turn"}
        if "id" in asked:
            say(jsonrpc="2.0", id=asked["id"], result=known)


def pty() -> None:
    print("task>", flush=True)
    prompt = []
    while (line := input()) != ".":
        prompt.append(line)
    print(answer_in("\n".join(prompt)))
    print(END, flush=True)
    input()


if __name__ == "__main__":
    {"plain": plain, "agent": agent, "acp": acp, "pty": pty}[sys.argv[1]]()
