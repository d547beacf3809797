"""Answers held against what the forges publish; one that does not fit is a fault of the loopback forge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

PLACE = Path(__file__).resolve().parents[2] / "data" / "forge" / "schemas"


class NotBySchema(AssertionError):
    """The answer is none the forge could give."""


class Published:
    """One published schema: which answer may come for which call."""

    def __init__(self, document: Mapping[str, Any], *, every_null: bool, closed: bool = True) -> None:
        self.base = document.get("basePath", "")
        self.calls = [(_pattern(self.base + path), path) for path in document["paths"]]
        self.document = document
        self.every_null, self.closed = every_null, closed and every_null
        named = document["definitions"] if every_null else document["components"]["schemas"]
        made = {name: self._loosened(one) for name, one in named.items()}
        self.shared = {"definitions": made} if every_null else {"components": {"schemas": made}}
        self._known: dict[tuple[str, str, int], Any] = {}

    def path_of(self, path: str) -> str:
        """The call's template; empty where the schema does not have it."""
        found = [template for pattern, template in self.calls if pattern.fullmatch(path)]
        return min(found, key=lambda template: template.count("{")) if found else ""

    def require(self, method: str, path: str, status: int, body: object) -> bool:
        """False: nothing is published about this answer, or that it has no body."""
        template = self.path_of(path)
        if not template:
            return False
        key = (template, method.lower(), status)
        if key not in self._known:
            self._known[key] = self._validator(*key)
        if self._known[key] is None:
            return False
        fault = next(iter(self._known[key].iter_errors(body)), None)
        if fault is not None:
            while fault.kind.name in ("anyOf", "oneOf") and any(fault.kind.context):
                fault = min((one for branch in fault.kind.context for one in branch), key=_depth)
            where = "/".join(str(step) for step in fault.instance_path)
            raise NotBySchema(f"{method} {path} → {status}: {fault.message[:300]} (at {where or 'the top'})")
        return True

    def _validator(self, template: str, method: str, status: int) -> Any:
        call = self.document["paths"][template].get(method)
        if call is None:
            raise NotBySchema(f"{method.upper()} {template} is not published")
        answer = call["responses"].get(str(status))
        if answer is None:
            return None
        answer = self._followed(answer)
        schema = answer.get("schema") or answer.get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            return None
        whole = {**self._loosened(schema), **self.shared}
        return jsonschema_rs.Draft7Validator(whole)

    def _followed(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in answer:
            found: Any = self.document
            for step in answer["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            answer = found
        return answer

    def _loosened(self, schema: Any) -> Any:
        """Swagger 2 cannot say null, so everything may be; OpenAPI 3.0 says so itself."""
        if isinstance(schema, list):
            return [self._loosened(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        made = {
            name: {own: self._loosened(one) for own, one in part.items()} if name in _NAMES else self._loosened(part)
            for name, part in schema.items()
            if name not in _NO_RULE
        }
        if "$ref" in made:
            return {"anyOf": [{"$ref": made["$ref"]}, {"type": "null"}]} if self.every_null else {"$ref": made["$ref"]}
        if self.closed and "properties" in made:
            made.setdefault("additionalProperties", False)
        nullable = self.every_null or made.pop("nullable", False) is True
        return _or_null(made) if nullable else made


def _or_null(made: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(made.get("type"), str):
        return {"anyOf": [{"type": "null"}, made]}
    kinds = {**made, "type": [made["type"], "null"]}
    return {**kinds, "enum": [*made["enum"], None]} if isinstance(made.get("enum"), list) else kinds


def _depth(fault: jsonschema_rs.ValidationError) -> int:
    """The fault that lies deepest says most."""
    return -len(fault.instance_path)


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(template)))


# Under these come names of somebody's choice, not words of the schema language.
_NAMES = frozenset({"properties", "definitions"})
# Examples hold what looks like rules; a number's bounds in the style of an older draft say nothing here.
_NO_RULE = frozenset({"example", "examples", "discriminator", "exclusiveMinimum", "exclusiveMaximum", "default"})


def smallest(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Any:
    """The least a value of this schema must have."""
    if "$ref" in schema:
        return smallest(shared[schema["$ref"].rpartition("/")[2]], shared)
    for choice in ("allOf", "anyOf", "oneOf"):
        if choice in schema:
            return smallest(schema[choice][0], shared)
    if schema.get("nullable"):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            needs = schema.get("required", ())
            return {name: smallest(schema["properties"][name], shared) for name in needs}
        case "array":
            return []
        case "integer" | "number":
            return 0
        case "boolean":
            return False
    return {"uri": "http://forge.test/", "date-time": "2026-01-01T00:00:00Z"}.get(schema.get("format", ""), "")


@cache
def published(name: str, *, closed: bool = True) -> Published:
    """`closed`: a field nobody published does not fit either."""
    document = json.loads((PLACE / name).read_text(encoding="utf-8"))
    return Published(document, every_null="swagger" in document, closed=closed)


@cache
def examples() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((PLACE / "github-23.0.2.examples.json").read_text(encoding="utf-8"))
    return found
