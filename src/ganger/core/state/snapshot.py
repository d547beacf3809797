"""A run's whole state as one text, so that continuing it need not read every event.

The text is only a cache: if it is damaged, or written for other records, the events are replayed instead.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import Any

from ganger import __version__
from ganger.core.model.run_state import RunState

_PLAIN = frozenset({str, int, float, bool})


def encode_state(state: RunState) -> str:
    body = json.dumps(_column(RunState).pack([state]), ensure_ascii=False, separators=(",", ":"))
    return json.dumps([fingerprint(), _digest(body)]) + "\n" + body


def decode_state(text: str) -> RunState | None:
    """None when the text is damaged or its records are not today's."""
    head, _, body = text.partition("\n")
    try:
        if json.loads(head) != [fingerprint(), _digest(body)]:
            return None
        state = _column(RunState).unpack(json.loads(body))[0]
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError, StopIteration):
        return None
    return state if isinstance(state, RunState) else None


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def fingerprint() -> str:
    """Changes with every field, type, default and enumeration a state can hold, and with the version that replays."""
    found: dict[str, object] = {"": __version__}
    _describe(RunState, found)
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _describe(kind: Any, found: dict[str, object]) -> None:
    for part in typing.get_args(kind):
        _describe(part, found)
    if not isinstance(kind, type) or kind.__name__ in found:
        return
    if issubclass(kind, StrEnum):
        found[kind.__name__] = [member.value for member in kind]
    elif dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        found[kind.__name__] = [[f.name, str(f.type), _default(f.default)] for f in fields]
        for hint in typing.get_type_hints(kind).values():
            _describe(hint, found)


def _default(default: object) -> str:
    """`MISSING` would show its address, which differs in every process."""
    return "" if default is dataclasses.MISSING else repr(default)


# A state is kept by columns, one for each field of all records together: few lists to read, and the work of building
# ten thousand tasks is left to `map`.


@dataclass(frozen=True, slots=True)
class _Column:
    """How values of one type are written as one JSON value, and read again in the same order."""

    pack: Callable[[Sequence[Any]], Any]
    unpack: Callable[[Any], list[Any]]


_AS_IT_IS = _Column(lambda values: values, lambda packed: packed)


@cache
def _column(kind: Any) -> _Column:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return _AS_IT_IS
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        member = {member.value: member for member in kind}.__getitem__
        return _Column(lambda values: values, lambda packed: list(map(member, packed)))
    if dataclasses.is_dataclass(kind):
        return _records(kind)
    if origin in (types.UnionType, typing.Union):
        return _optional([arg for arg in args if arg is not type(None)])
    if origin is dict:
        return _mappings(_column(args[0]), _column(args[1]))
    if origin is tuple and args[-1] is not Ellipsis:
        return _rows([_column(arg) for arg in args])
    if origin in (tuple, list, set, frozenset):
        return _several(origin, _column(args[0]))
    raise TypeError(f"a state cannot be kept with a field of type {kind}")


def _records(kind: Any) -> _Column:
    hints = typing.get_type_hints(kind)
    fields = [(f.name, f.default, attrgetter(f.name), _column(hints[f.name])) for f in dataclasses.fields(kind)]

    def pack(values: Sequence[Any]) -> list[Any]:
        """The number of records, and the columns in which one of them is not as it was made."""
        columns: dict[str, Any] = {}
        for name, default, get, column in fields:
            entries = list(map(get, values))
            if not {*map(id, entries)} <= {id(default)}:
                columns[name] = column.pack(entries)
        return [len(values), columns]

    def unpack(packed: Any) -> list[Any]:
        """Fills the slots of all records field by field; their constructor would take most of the time."""
        count, columns = packed
        if not count:
            return []
        records = [*map(kind.__new__, repeat(kind, count))]
        for name, default, _, column in fields:
            usual = default is not dataclasses.MISSING and name not in columns
            entries = [default] * count if usual else column.unpack(columns[name])
            if len(entries) != count:
                raise ValueError(f"{name}: {len(entries)} values for {count} records")
            deque(map(getattr(kind, name).__set__, records, entries), maxlen=0)
        return records

    return _Column(pack, unpack)


def _optional(kinds: list[Any]) -> _Column:
    if all(kind in _PLAIN for kind in kinds):
        return _AS_IT_IS
    (kind,) = kinds
    column = _column(kind)

    def unpack(packed: Any) -> list[Any]:
        there, entries = packed[0], iter(column.unpack(packed[1]))
        return [next(entries) if present else None for present in there]

    def pack(values: Sequence[Any]) -> list[Any]:
        return [[int(v is not None) for v in values], column.pack([v for v in values if v is not None])]

    return _Column(pack, unpack)


def _several(kind: Any, column: _Column) -> _Column:
    def pack(values: Sequence[Any]) -> list[Any]:
        ordered = values if kind in (tuple, list) else [sorted(value) for value in values]
        return [list(map(len, ordered)), column.pack(list(chain.from_iterable(ordered)))]

    def unpack(packed: Any) -> list[Any]:
        entries = iter(column.unpack(packed[1]))
        return [kind(islice(entries, length)) for length in packed[0]]

    return _Column(pack, unpack)


def _mappings(key: _Column, entry: _Column) -> _Column:
    def pack(values: Sequence[Mapping[Any, Any]]) -> list[Any]:
        keys, entries = list(chain.from_iterable(values)), [part for value in values for part in value.values()]
        return [list(map(len, values)), key.pack(keys), entry.pack(entries)]

    def unpack(packed: Any) -> list[Any]:
        pairs = zip(key.unpack(packed[1]), entry.unpack(packed[2]), strict=True)
        return [dict(islice(pairs, length)) for length in packed[0]]

    return _Column(pack, unpack)


def _rows(columns: list[_Column]) -> _Column:
    """Tuples of a fixed length."""

    def pack(values: Sequence[Any]) -> list[Any]:
        return [column.pack([value[n] for value in values]) for n, column in enumerate(columns)]

    def unpack(packed: Any) -> list[Any]:
        parts = [column.unpack(part) for column, part in zip(columns, packed, strict=True)]
        return list(zip(*parts, strict=True))

    return _Column(pack, unpack)
