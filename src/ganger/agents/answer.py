"""The task result as a JSON Schema that vendors can hold their models to, and its way back into a fenced block."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ganger.contracts.blocks import TASK_RESULT

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
# Strict modes know no optional field: what would be left out is given as null or as an empty list.
STRICT_SCHEMA = json.dumps(_object(_ALL))


def fenced(data: Mapping[str, object]) -> str:
    """The block an agent would have written itself."""
    given = {name: value for name, value in data.items() if value is not None}
    return f"{TASK_RESULT.start.decode()}\n{json.dumps(given)}\n{TASK_RESULT.end.decode()}"


def fenced_text(text: str) -> str:
    """A text that is nothing but such an object becomes its block; every other text stays as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return fenced(data) if isinstance(data, dict) and "contract_version" in data else text
