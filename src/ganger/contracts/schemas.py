"""The published JSON Schemas of the five file formats, made from the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.manifest import Manifest
from ganger.contracts.model import Contract
from ganger.contracts.state import State
from ganger.contracts.task_result import TaskResult
from ganger.contracts.verify_profile import VerifyProfiles
from ganger.contracts.worker import PROTOCOL, VERBS
from ganger.errors import NotFoundError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FORMATS: dict[str, type[Contract]] = {
    "manifest": Manifest,
    "task_result": TaskResult,
    "heal_decision": HealDecision,
    "state": State,
    "verify_profile": VerifyProfiles,
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema 2020-12 of a format."""
    if name not in FORMATS:
        raise NotFoundError(f"there is no format {name!r}", hint=f"known formats: {', '.join(FORMATS)}")
    made: dict[str, Any] = _tidy(FORMATS[name].model_json_schema())
    head = {"$schema": DIALECT, "$id": f"urn:ganger:{name}:2.0", "title": f"{name} 2.0"}
    parts = made.pop("$defs", {})
    return {**head, **made, "$defs": parts} if parts else {**head, **made}


def verb_schema(verb: str) -> dict[str, Any]:
    """The JSON Schema of a worker's request with this verb."""
    made: dict[str, Any] = _tidy(VERBS[verb].model_json_schema())
    return made


def worker_schema() -> dict[str, Any]:
    """The JSON Schema of a request of the worker protocol, as it lies in a spool: its verb, its token, its body."""
    parts: dict[str, Any] = {}
    kinds = []
    for verb in VERBS:
        body = verb_schema(verb)
        parts |= body.pop("$defs", {})
        parts[verb] = body
        fields = {"verb": {"const": verb}, "token": {"type": "string"}, "body": {"$ref": f"#/$defs/{verb}"}}
        kinds.append({"type": "object", "properties": fields, "required": ["verb", "body"]})
    head = {"$schema": DIALECT, "$id": f"urn:ganger:worker:{PROTOCOL}", "title": f"worker protocol {PROTOCOL}"}
    return {**head, "oneOf": kinds, "$defs": parts}


def schema_text(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> None:
    """Writes the published copy of each schema."""
    for name in FORMATS:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")


def _tidy(node: Any) -> Any:
    """The schema without generated titles and without defaults that only mean absence."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    noise = {"title"} if isinstance(node.get("title"), str) else set()
    if "default" in node and node["default"] in (None, []):
        noise.add("default")
    return {key: _tidy(value) for key, value in node.items() if key not in noise}
