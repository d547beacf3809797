"""The task result 2.0: what a worker says it did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict

from ganger.contracts.model import Broken, Contract, Given, ListOf, NonEmpty, members


class Write(Contract):
    """One file the worker wants written."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["content"]}, {"required": ["content_ref"]}]})

    path: NonEmpty
    op: Literal["create", "replace", "append"]
    encoding: Literal["utf8"]
    content: Given[str] = None
    content_ref: Given[str] = None
    sha256_before: Given[str] = None


class Evidence(Contract):
    """What the worker offers as proof; never believed without verification."""

    commands: ListOf[str] = ()
    log_refs: ListOf[str] = ()
    notes: ListOf[str] = ()


class TaskResult(Contract):
    """A worker's answer."""

    contract_version: Literal["2.0"]
    task_id: NonEmpty
    status: Literal["DONE", "BLOCKED", "FAILED", "CONTRACT_ERROR"]
    summary: NonEmpty
    changed_files: ListOf[str] = ()
    writes: ListOf[Write] = ()
    evidence: Given[Evidence] = None
    failure_class: Given[str] = None

    @classmethod
    def rules(cls, data: object) -> Iterator[Broken]:
        for place, write in members(data, "writes"):
            if "content" not in write and "content_ref" not in write:
                message = "a write needs `content` or `content_ref`"
                yield Broken(("writes", place), "MISSING_REQUIRED_FIELD", message)
