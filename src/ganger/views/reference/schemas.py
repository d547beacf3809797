"""All published schemas: the five contracts, the config, the worker protocol, and events as `--json` prints them."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from ganger.config import Config
from ganger.contracts.schemas import schema as contract_schema, worker_schema
from ganger.core.events import EVENT_TYPES

CONTRACTS = ("manifest", "task_result", "heal_decision", "state", "verify_profile")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    if name in CONTRACTS:
        return contract_schema(name)
    if name == "worker":
        return worker_schema()
    return _config() if name == "config" else _events()


def _config() -> dict[str, Any]:
    return {"$schema": _DIALECT, "$id": "config.json", **Config.model_json_schema(), "title": "ganger.toml"}


def _events() -> dict[str, Any]:
    """One event line: the envelope, and each type's own fields."""
    kinds = []
    definitions: dict[str, Any] = {}
    for name, cls in EVENT_TYPES.items():
        own = TypeAdapter(cls).json_schema(ref_template="#/$defs/{model}")
        definitions |= own.pop("$defs", {})
        properties = {
            "schema": {"const": "ganger.event/1"},
            "seq": {"type": "integer", "minimum": 1},
            "at": {"type": "string", "format": "date-time"},
            "type": {"const": name},
            **own.get("properties", {}),
        }
        required = ["schema", "seq", "at", "type", *own.get("required", [])]
        kinds.append({"title": name, "type": "object", "properties": properties, "required": required})
    return {"$schema": _DIALECT, "$id": "events.json", "title": "Ganger event", "oneOf": kinds, "$defs": definitions}
