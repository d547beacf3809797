"""Signals as lines of output, for agents operated by a process of Ganger: one JSON object per line."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ganger.core.signs import Sign

_MARK = '{"ganger": "sign", '
_MARK_BYTES = _MARK.encode()
_HUGE = 2**62
_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Sign)}
_FIELDS: dict[str, dict[str, Any]] = {name: get_type_hints(kind) for name, kind in _KINDS.items()}


def encode(sign: Sign) -> str:
    """One line without its end: `{"ganger": "sign", "is": "Said", "text": "…"}`. Default values are left out."""
    told = {
        field.name: value
        for field in dataclasses.fields(sign)
        if (value := getattr(sign, field.name)) != field.default and not _is_odd(value)
    }
    return json.dumps({"ganger": "sign", "is": type(sign).__name__, **told})


def decode(line: bytes) -> Sign | None:
    """The signal in a line, also after text from another stream; None for any other line."""
    start = line.find(_MARK_BYTES)
    if start < 0:
        return None
    try:
        data = json.loads(line[start:])
    except (ValueError, RecursionError):
        return None
    fields = _FIELDS.get(str(data.get("is")))
    if fields is None:
        return None
    given = {name: data[name] for name in fields if name in data}
    if not all(_fits(value, fields[name]) for name, value in given.items()):
        return None
    try:
        made: Sign = _KINDS[data["is"]](**given)
    except TypeError:
        return None
    return made


def harmless(text: str) -> str:
    """Foreign text for the same output, changed so that no line can be taken for a signal."""
    return text.replace('{"ganger"', '{ "ganger"')


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _fits(value: object, wanted: Any) -> bool:
    if get_origin(wanted) in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(wanted))
    if get_origin(wanted) is Literal:
        return value in get_args(wanted)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if wanted is int:
            return isinstance(value, int) and 0 <= value < _HUGE
        return wanted is float and -_HUGE < value < _HUGE
    return type(value) is wanted


class SignReader:
    """Reads the signals in the output of such a process; every other line is for people."""

    def line(self, line: bytes) -> Iterable[Sign]:
        sign = decode(line)
        return () if sign is None else (sign,)

    def end(self) -> Iterable[Sign]:
        return ()
