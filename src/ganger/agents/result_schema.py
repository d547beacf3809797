"""The task result as a JSON Schema for structured output, and the conversion back to a fenced block."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ganger.contracts.reading.blocks import TASK_RESULT

_TEXT: Mapping[str, object] = {"type": "string"}
_WRITE: Mapping[str, object] = {
    "path": _TEXT,
    "op": {"type": "string", "enum": ["create", "replace", "append"]},
    "encoding": {"type": "string", "enum": ["utf8"]},
    "content": _TEXT,
}
_RESULT: Mapping[str, object] = {
    "contract_version": {"type": "string", "enum": ["2.0"]},
    "task_id": _TEXT,
    "status": {"type": "string", "enum": ["DONE", "BLOCKED", "FAILED"]},
    "summary": _TEXT,
    "changed_files": {"type": "array", "items": _TEXT},
    "failure_class": {"type": ["string", "null"]},
}


def _object(fields: Mapping[str, object], required: tuple[str, ...] = ()) -> dict[str, object]:
    needed = list(required or fields)
    return {"type": "object", "properties": dict(fields), "required": needed, "additionalProperties": False}


_ALL = {**_RESULT, "writes": {"type": "array", "items": _object(_WRITE)}}
SCHEMA = json.dumps(_object(_ALL, ("contract_version", "task_id", "status", "summary")))
# Strict modes have no optional fields: an absent field is null or an empty list.
STRICT_SCHEMA = json.dumps(_object(_ALL))


def fenced(data: Mapping[str, object]) -> str:
    """The block as an agent would write it."""
    given = {name: value for name, value in data.items() if value is not None}
    return f"{TASK_RESULT.start.decode()}\n{json.dumps(given)}\n{TASK_RESULT.end.decode()}"


def fenced_text(text: str) -> str:
    """Turns a text that is only such an object into its block; any other text stays unchanged."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return fenced(data) if isinstance(data, dict) and "contract_version" in data else text
