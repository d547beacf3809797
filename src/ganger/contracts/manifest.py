"""The manifest 2.0: which tasks a run has, and the rules for their ids and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from ganger.contracts.ids import path_problem, twin_key
from ganger.contracts.model import (
    Broken,
    Contract,
    Given,
    IdRule,
    ListOf,
    Location,
    NonEmpty,
    Number,
    Positive,
    members,
)
from ganger.contracts.reading.strict_json import shorten

MODES = ("direct", "local-git", "forge")
COMPLEXITIES = ("low", "medium", "high")
REVIEWS = ("person", "agent", "none")
_MOST_ATTEMPTS = 3


class RetryPolicy(Contract):
    """How often a task may be tried, and after which failure classes."""

    max_attempts: Given[Positive] = None
    retry_on: ListOf[str] = ()


class Task(Contract):
    """One unit of work."""

    id: Annotated[str, IdRule("BAD_TASK_ID")]
    prompt_ref: NonEmpty
    depends_on: ListOf[str]
    timeout_sec: Positive
    verify_profile: NonEmpty
    context_refs: ListOf[str] = ()
    priority: Given[Number] = None
    retry_policy: Given[RetryPolicy] = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class Manifest(Contract):
    """The tasks of one run, in order."""

    manifest_version: Literal["2.0"]
    run_id: Annotated[str, IdRule("BAD_RUN_ID")]
    tasks: Annotated[ListOf[Task], Field(min_length=1)]

    @classmethod
    def rules(cls, data: object) -> Iterator[Broken]:
        first: dict[str, str] = {}
        for place, task in members(data, "tasks"):
            name, metadata = task.get("id"), task.get("metadata")
            if isinstance(name, str) and first.setdefault(twin_key(name), name) != name:
                yield _twin(place, first[twin_key(name)])
            if metadata and isinstance(metadata, dict):
                yield from _metadata(metadata, ("tasks", place, "metadata"))


def _twin(place: int, earlier: str) -> Broken:
    message = f"differs from the id {shorten(earlier)} only in case or Unicode form; file systems may mix them up"
    return Broken(("tasks", place, "id"), "CASE_TWIN", message)


def _metadata(metadata: dict[str, object], where: Location) -> Iterator[Broken]:
    for key, check in _KNOWN.items():
        if key in metadata:
            yield from (Broken((*where, key, *steps), "BAD_METADATA", text) for steps, text in check(metadata[key]))


Verdicts = Iterator[tuple[Location, str]]


def _any(value: object) -> Verdicts:
    """Text for people: a value of any type from another tool stays, and only a string is shown."""
    yield from ()


def _text(value: object) -> Verdicts:
    if not isinstance(value, str) or not value:
        yield (), "expected a non-empty string"


def _mode(value: object) -> Verdicts:
    if value not in MODES:
        yield (), f"expected one of {', '.join(MODES)}"


def _complexity(value: object) -> Verdicts:
    if value not in COMPLEXITIES:
        yield (), f"expected one of {', '.join(COMPLEXITIES)}"


def _review(value: object) -> Verdicts:
    if value not in REVIEWS:
        yield (), f"expected one of {', '.join(REVIEWS)}"


def _flag(value: object) -> Verdicts:
    if not isinstance(value, bool):
        yield (), "expected true or false"


def _stage(value: object) -> Verdicts:
    if isinstance(value, bool) or not isinstance(value, str | int):
        yield (), "expected a string or an integer"


def _attempts(value: object) -> Verdicts:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_ATTEMPTS:
        yield (), f"expected an integer from 1 to {_MOST_ATTEMPTS}"


def _paths(value: object) -> Verdicts:
    if not isinstance(value, list | tuple):
        yield (), "expected an array of relative paths"
        return
    for place, path in enumerate(value):
        problem = path_problem(path) if isinstance(path, str) else "expected a relative path as a string"
        if problem:
            yield (place,), problem


_KNOWN: dict[str, Callable[[object], Verdicts]] = {
    "role": _text,
    "kind": _text,
    "repo": _text,
    "review": _review,
    "mode": _mode,
    "files_create": _paths,
    "files_modify": _paths,
    "files_read": _paths,
    "expected_files": _paths,
    "stage": _stage,
    "max_attempts": _attempts,
    "may_change_gates": _flag,
    "may_break_interface": _flag,
    "expects_ci": _flag,
    "allow_shrinkage": _flag,
    "complexity": _complexity,
    "critical_path": _flag,
    "security": _flag,
    "cross_repo": _flag,
    "component": _any,
}
METADATA_KEYS = frozenset(_KNOWN)
