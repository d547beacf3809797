"""The only parser of agents' answers: the last fenced block of a log becomes a checked record or a refusal with a
code."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ganger.contracts.faults import describe, examine
from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.model import Contract
from ganger.contracts.reading import blocks, terminal
from ganger.contracts.reading.blocks import CHUNK, HEAL_DECISION, LARGEST_BODY, TASK_RESULT, Body, Fence
from ganger.contracts.reading.repair import repair
from ganger.contracts.reading.strict_json import JsonFault, check_count, loads, shorten
from ganger.contracts.task_result import TaskResult
from ganger.errors import Fault

MOST_VALUES = 200_000

_MOST_NAMED = 20
_SENTINEL = re.compile(r"<<<((?:END_)?(?:TASK_RESULT|HEAL_DECISION)_V2)>>>")

Record = TypeVar("Record", bound=Contract)


@dataclass(frozen=True, slots=True)
class Parsed(Generic[Record]):
    """An answer that fulfils its contract; `data` is the object as written."""

    value: Record
    repaired: bool
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an answer is refused: one of the five codes, and a message that helps to fix it."""

    code: str
    message: str


def parse_result(
    source: Path | bytes, *, task_id: str | None = None, chunk: int = CHUNK
) -> Parsed[TaskResult] | Refused:
    """The task result in a log (or its bytes); with `task_id`, one for another task is refused."""
    parsed = _parse(source, TASK_RESULT, TaskResult, chunk)
    if isinstance(parsed, Parsed) and task_id is not None and parsed.value.task_id != task_id:
        found = shorten(parsed.value.task_id)
        return Refused(
            "SCHEMA_VIOLATION", f"task_id: this is a result for {found}, expected one for {shorten(task_id)}"
        )
    return parsed


def parse_heal(source: Path | bytes, *, chunk: int = CHUNK) -> Parsed[HealDecision] | Refused:
    """The heal decision in a log (or its bytes)."""
    return _parse(source, HEAL_DECISION, HealDecision, chunk)


def neutralise(text: str) -> str:
    """The text with every sentinel visibly broken, so that a prompt can contain it and an echo does no harm."""
    washed = terminal.FULL.apply(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    broken, count = _SENTINEL.subn(r"<< <\1> >>", washed)
    return broken if count else text


def _parse(source: Path | bytes, fence: Fence, model: type[Record], chunk: int) -> Parsed[Record] | Refused:
    bodies = blocks.find_bodies(source, fence, chunk=chunk)
    if not bodies:
        start, end = fence.start.decode(), fence.end.decode()
        return Refused("NO_SENTINEL", f"the log holds no complete block from {start} to {end} with anything in it")
    first = _judged(bodies[0], model)
    # An end that is quoted, or written more often than needed, may cut a block short or make it too long.
    others = (_judged(body, model) for body in bodies[1:] if isinstance(first, Refused))
    return next((one for one in others if isinstance(one, Parsed)), first)


def _judged(body: Body, model: type[Record]) -> Parsed[Record] | Refused:
    if body.data is None:
        return Refused("INVALID_JSON", f"the block is larger than {LARGEST_BODY} bytes")
    try:
        return _judge(body.data, model)
    except JsonFault as fault:
        code = "SCHEMA_VIOLATION" if fault.code == "DUPLICATE_KEY" else "INVALID_JSON"
        return Refused(code, f"/: {fault}")


def _judge(body: bytes, model: type[Record]) -> Parsed[Record] | Refused:
    if terminal.is_blank(body):
        return Refused("NO_SENTINEL", "the block is blank")
    data, repaired = _read(body)
    if not isinstance(data, dict | list):
        return Refused("SCHEMA_VIOLATION", f"/: expected an object, found {describe(data)}")
    if isinstance(data, list):
        return Refused("UNSUPPORTED_VERSION", "/: expected an object with a contract_version, found an array")
    if data.get("contract_version") != "2.0":
        found = describe(data["contract_version"]) if "contract_version" in data else "none"
        return Refused("UNSUPPORTED_VERSION", f'contract_version: expected "2.0", found {found}')
    value, faults = examine(model, data)
    return _refusal(faults) if value is None else Parsed(value, repaired, data)


def _read(body: bytes) -> tuple[object, bool]:
    """The first reading that parses; if none does, raises the fault of the text as written."""
    first: JsonFault | None = None
    for text, repaired in _readings(body):
        try:
            return loads(text), repaired
        except JsonFault as fault:
            if fault.code == "DUPLICATE_KEY":
                raise
            first = first or fault
    assert first is not None
    raise first


def _readings(body: bytes) -> Iterator[tuple[str, bool]]:
    """The strict text; then the text without characters that a terminal adds; then both repaired."""
    text = _decoded(terminal.NORMAL.apply(body))
    check_count(text, MOST_VALUES)
    yield text, False
    plain = _decoded(terminal.FULL.apply(body))
    if plain != text:
        yield plain, False
    yield repair(text), True
    if plain != text:
        yield repair(plain), True


def _decoded(raw: bytes | bytearray) -> str:
    raw = raw.strip(b" \t\r\n").removeprefix(BOM_UTF8).removesuffix(BOM_UTF8)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonFault("INVALID_JSON", f"the block is not UTF-8: byte 0x{raw[error.start]:02x}") from None


def _refusal(faults: list[Fault]) -> Refused:
    first = faults[0].code
    code = first if first == "MISSING_REQUIRED_FIELD" else "SCHEMA_VIOLATION"
    named = [f"{fault.path or '/'}: {fault.message}" for fault in faults[:_MOST_NAMED]]
    if len(faults) > _MOST_NAMED:
        named.append(f"/: and {len(faults) - _MOST_NAMED} more")
    return Refused(code, "; ".join(named))
