"""The published schema of the worker protocol and the models say the same."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from ganger.contracts.schemas import worker_schema
from ganger.contracts.worker import KEPT, VERBS
from ganger.views.reference.schemas import schema

BODIES: list[tuple[str, dict[str, Any]]] = [
    ("next", {"worker": "me", "wait_sec": 60, "roles": ["worker"]}),
    ("next", {}),
    ("next", {"worker": "a\nb"}),
    ("next", {"worker": "me", "wait_sec": 61}),
    ("heartbeat", {}),
    ("heartbeat", {"percent": 100, "context_pct": 12.5, "step": "x", "note": "y"}),
    ("heartbeat", {"percent": 101}),
    ("heartbeat", {"percent": None}),
    ("heartbeat", {"odd": 1}),
    ("progress", {"tiers": [{"tier": 1, "success": True}], "tasks_total": 3}),
    ("progress", {"tiers": [{"tier": 0, "success": True}]}),
    ("progress", {"tiers": [{"tier": 1}]}),
    ("milestone", {"name": "half", "id": "m-1", "task_id": "t"}),
    ("milestone", {"name": ""}),
    ("escalate", {"category": "design", "message": "which?", "context": {"a": [1]}, "default": "a", "deadline_sec": 1}),
    ("escalate", {"category": "Design", "message": "which?"}),
    ("escalate", {"category": "design", "message": "which?", "deadline_sec": 0}),
    ("checkpoint", {"done": ["a"], "leave": True}),
    ("checkpoint", {"done": "a"}),
    ("report", {"result": {"anything": 1}}),
    ("report", {"result": []}),
    ("done", {"id": "x" * 101}),
    ("brief", {"section": "goal"}),
    ("messages", {"since": -1}),
    ("messages", {"since": 4, "wait_sec": 0.5}),
]


@pytest.mark.parametrize(("verb", "body"), BODIES)
def test_schema_and_model_agree(verb: str, body: dict[str, Any]) -> None:
    """G02: whoever writes a worker of its own can trust the schema."""
    check = jsonschema_rs.validator_for(worker_schema())
    try:
        VERBS[verb].model_validate_json(json.dumps(body))
        fits = True
    except ValidationError:
        fits = False
    assert check.is_valid({"verb": verb, "token": "t", "body": body}) is fits


def test_the_schema_is_published_with_every_verb() -> None:
    """G02: `ganger schema worker`."""
    assert schema("worker") == worker_schema()
    assert set(VERBS) <= set(worker_schema()["$defs"]) and set(VERBS) > KEPT
    assert not jsonschema_rs.is_valid(worker_schema(), {"verb": "config", "body": {}})
