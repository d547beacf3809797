"""What is wrong with a document: every fault, in a stable order, each with a path and a helpful sentence."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ganger.contracts.codes import CODES
from ganger.contracts.manifest import Manifest
from ganger.contracts.model import Broken, Contract, Location
from ganger.contracts.reading.documents import read_document
from ganger.contracts.reading.strict_json import shorten
from ganger.contracts.state import State
from ganger.contracts.verify_profile import VerifyProfiles
from ganger.errors import Fault, InputError

MOST_FAULTS = 200
_MOST_KEPT = 10 * MOST_FAULTS
VERSION_FIELDS = ("manifest_version", "state_version", "contract_version")

Model = TypeVar("Model", bound=BaseModel)
_PLAIN_KEY = re.compile(r"[\w-]{1,200}", re.ASCII)
_EXPECTED = {
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "an array",
    "tuple_type": "an array",
    "date_time": "a date-time such as 2026-03-20T15:21:00Z",
}


@dataclass(frozen=True, slots=True)
class _Finding:
    """One fault, before its sentence is written."""

    location: Location
    code: str
    message: str = ""
    kind: str = ""
    context: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Place:
    """The findings in and below one value of the document."""

    own: list[_Finding] = field(default_factory=list)
    missing: list[_Finding] = field(default_factory=list)
    extra: list[_Finding] = field(default_factory=list)
    members: dict[str | int, _Place] = field(default_factory=dict)

    def at(self, location: Location) -> _Place:
        place = self
        for step in location:
            place = place.members.setdefault(step, _Place())
        return place

    def add(self, finding: _Finding) -> None:
        if finding.location and finding.code == "UNKNOWN_FIELD":
            self.at(finding.location[:-1]).extra.append(finding)
        elif finding.location and finding.code == "MISSING_REQUIRED_FIELD" and isinstance(finding.location[-1], str):
            self.at(finding.location[:-1]).missing.append(finding)
        else:
            self.at(finding.location).own.append(finding)

    def in_order(self, shape: object) -> Iterator[tuple[_Finding, object]]:
        """The order of findings: an object before its members; first missing, then unknown fields, then members in
        schema order."""
        for finding in (*self.own, *self.missing, *self.extra):
            yield finding, shape
        for step in sorted(self.members, key=_rank(shape)):
            yield from self.members[step].in_order(_shape_below(shape, step))


@dataclass(slots=True)
class _Findings:
    """Counts all findings; of nested ones it keeps only enough to determine the first that are shown."""

    root: _Place = field(default_factory=_Place)
    count: int = 0

    def take_schema(self, error: ValidationError, data: object) -> None:
        kept = 0
        for detail in error.errors(include_url=False):
            # A list whose items failed is reported as too short as well, though its length is fine.
            if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
                continue
            self.count += 1
            kept += len(detail["loc"]) > 1
            if kept <= _MOST_KEPT or len(detail["loc"]) <= 1:
                self.root.add(_finding(detail, data))

    def take_rules(self, broken: Iterator[Broken]) -> None:
        for place, rule in enumerate(broken):
            self.count += 1
            if place < _MOST_KEPT:
                self.root.add(_Finding(rule.location, rule.code, rule.message))


def examine(model: type[Model], data: object) -> tuple[Model | None, list[Fault]]:
    """The checked document, or None and every fault."""
    made, findings = None, _Findings()
    try:
        made = model.model_validate(data)
    except ValidationError as error:
        findings.take_schema(error, data)
    if issubclass(model, Contract):
        findings.take_rules(model.rules(data))
    if not findings.count:
        return made, []
    in_order = islice(findings.root.in_order(model), MOST_FAULTS)
    faults = list(dict.fromkeys(_fault(finding, shape) for finding, shape in in_order))
    if findings.count > MOST_FAULTS:
        message = f"{findings.count - MOST_FAULTS} more faults are not shown; fix these first"
        faults.append(Fault("", "MORE_FAULTS", message))
    return None, faults


def faults_of(model: type[BaseModel], data: object) -> list[Fault]:
    """Every fault of a document; none means the model accepts it."""
    return examine(model, data)[1]


def check_manifest(data: object) -> list[Fault]:
    return faults_of(Manifest, data)


def load_manifest(path: Path) -> Manifest:
    return _load(Manifest, path)


def load_profiles(path: Path) -> VerifyProfiles:
    return _load(VerifyProfiles, path)


def load_state(path: Path) -> State:
    return _load(State, path)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pauses the garbage collector: it finds nothing in a half-built document and takes as long as all other work."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load(model: type[Model], path: Path) -> Model:
    with _uncollected():
        made, faults = examine(model, read_document(path))
    if made is None:
        raise InputError(str(path), faults)
    return made


def _finding(detail: ErrorDetails, data: object) -> _Finding:
    location = _real(detail["loc"], data)
    if detail["type"] == "missing":
        location = (*location, str(detail["loc"][-1]))
    context = {**detail.get("ctx", {}), "input": detail["input"], "text": detail["msg"].removeprefix("Value error, ")}
    return _Finding(location, _code(detail, location), kind=detail["type"], context=context)


def _real(location: Location, data: object) -> Location:
    """The location without the steps that name a type's branch instead of a place in the document."""
    steps: list[str | int] = []
    for step in location:
        try:
            data = data[step]  # type: ignore[index]
        except (TypeError, KeyError, IndexError):
            continue
        steps.append(step)
    return tuple(steps)


def _code(detail: ErrorDetails, location: Location) -> str:
    kind = detail["type"]
    if kind == "missing":
        return "MISSING_REQUIRED_FIELD"
    if kind == "extra_forbidden":
        return "UNKNOWN_FIELD"
    if len(location) == 1 and location[0] in VERSION_FIELDS:
        return "UNSUPPORTED_VERSION"
    return kind if kind in CODES else "SCHEMA_VIOLATION"


def _fault(finding: _Finding, shape: object) -> Fault:
    return Fault(path_text(finding.location), finding.code, finding.message or _sentence(finding, shape))


def _sentence(finding: _Finding, shape: object) -> str:
    if finding.kind == "missing":
        return f"the required field `{finding.location[-1]}` is missing"
    if finding.kind == "extra_forbidden":
        return _unknown(str(finding.location[-1]), shape)
    found = describe(finding.context["input"])
    if finding.code == "UNSUPPORTED_VERSION":
        return f'this version is not supported: expected "2.0", found {found}'
    if finding.kind == finding.code:
        return f"{finding.context['text']}; found {found}"
    expected = _EXPECTED.get(finding.kind) or _expected(finding)
    return f"expected {expected}, found {found}"


def _expected(finding: _Finding) -> str:
    if finding.kind == "too_short":
        return f"at least {finding.context['min_length']} item(s)"
    if finding.kind == "too_long":
        return f"at most {finding.context['max_length']} item(s)"
    if finding.kind == "literal_error":
        return str(finding.context["expected"]).replace("'", '"')
    if finding.kind == "number":
        return str(finding.context["expected"])
    text = str(finding.context["text"])
    return text.removeprefix("Input should be ")


def _unknown(name: str, shape: object) -> str:
    known = list(shape.model_fields) if isinstance(shape, type) and issubclass(shape, BaseModel) else []
    near = get_close_matches(name[:80], known, n=1)
    if near:
        return f"{shorten(name)} is not a field here; did you mean `{near[0]}`?"
    return f"{shorten(name)} is not a field here; known are {', '.join(known) or 'none'}"


def describe(value: object) -> str:
    """A value for a message: short, on one line."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)} item(s)" if value else "an empty array"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value) if not isinstance(value, int) or abs(value) < 10**40 else "a very large integer"
    return f"a {type(value).__name__}"


def path_text(location: Location) -> str:
    """`tasks[3].depends_on[0]`; keys that are not plain words are quoted."""
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{shorten(step)}]"
    return text


def _rank(shape: object) -> Any:
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        order = {name: place for place, name in enumerate(shape.model_fields)}
        return lambda step: order.get(step, len(order))
    return lambda step: step if isinstance(step, int) else 0


def _shape_below(shape: object, step: str | int) -> object:
    """The declared type of a member, as far as it is known."""
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        known = shape.model_fields.get(str(step))
        return _bare(known.annotation) if known else None
    parts = [part for part in get_args(shape) if part is not Ellipsis]
    return _bare(parts[-1]) if parts else None


def _bare(annotation: object) -> object:
    """The type without markers and without None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    parts = [part for part in get_args(annotation) if part is not type(None)]
    optional = len(parts) != len(get_args(annotation))
    return _bare(parts[0]) if optional and parts else annotation
