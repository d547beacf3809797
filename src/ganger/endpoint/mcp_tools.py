"""The worker protocol as MCP tools: one per verb, with when to use it."""

from __future__ import annotations

from typing import Any

from ganger.contracts.schemas import verb_schema
from ganger.contracts.worker import VERBS

INSTRUCTIONS = """\
You work for Ganger, which runs many agents over a list of tasks and trusts nothing that it has not checked. Without a
task, call `next`; do what its prompt says, in the workspace it names, and pass the token it gives you to every other
tool. Call `heartbeat` about every 15 seconds of work, `progress` at each step, `escalate` for what only the operator
can decide, `checkpoint` before your context runs out. Finish with `report`, then `done`.
"""
_WHEN = {
    "next": """Ask for a task when you have none. Gives its prompt, its workspace, and the token for all other tools.
When there is none, `over` says whether the run has ended and `retry_sec` when to ask again; `wait_sec` waits here.""",
    "heartbeat": """Say that you are alive, about every 15 seconds while you work.
The answer says how many messages wait for you.""",
    "progress": "Say how far you are whenever a step is finished; it is stored and shown to the operator.",
    "milestone": "Name something worth remembering that you have just reached.",
    "escalate": """Ask the operator what only the operator can decide. The answer comes through `messages`.
Give a `default` with `deadline_sec` if you can go on without one.""",
    "checkpoint": """Write down where you stand, so that a fresh worker can go on without you: before your context runs
out, before anything risky, and when you are told to. With `leave` you end at once.""",
    "report": """Hand in your answer, once, at the end. `result` is a task result 2.0: an object with contract_version
"2.0", task_id, status, summary, and writes where the task asks for them; your prompt shows its form.
A refusal says what is wrong; fix it and report again.""",
    "done": "Say that you have finished. Only after `report` was accepted.",
    "brief": "Read one part of the brief of your task; without a section, the list of parts.",
    "messages": """Read your messages: answers, requests to save your state or to stop.
`since` is the number of the last one you have read; `wait_sec` waits here for a new one.""",
}
_READS = frozenset({"brief", "messages"})
_TOKEN = {"type": "string", "description": "The token that `next` gave you; not needed if you were started with one."}


def tools() -> list[dict[str, Any]]:
    return [_tool(verb) for verb in VERBS]


def _tool(verb: str) -> dict[str, Any]:
    schema = verb_schema(verb)
    schema.pop("description", None)
    properties = {name: part for name, part in schema["properties"].items() if name != "id"}
    schema["properties"] = properties if verb == "next" else {**properties, "token": _TOKEN}
    return {
        "name": verb,
        "description": _WHEN[verb],
        "inputSchema": schema,
        "annotations": {"readOnlyHint": verb in _READS, "destructiveHint": False, "openWorldHint": False},
    }
