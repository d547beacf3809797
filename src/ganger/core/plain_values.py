"""Frozen dataclasses rebuilt from plain JSON values."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Any

Build = Callable[[Any], object]


@cache
def builder(kind: Any) -> Build:
    """Unknown fields are left out; missing ones take their default."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        inner = builder(next(arg for arg in args if arg is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = builder(args[0])
        return lambda value: tuple(item(entry) for entry in value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        makers = {f.name: builder(hints[f.name]) for f in dataclasses.fields(kind)}
        return lambda value: kind(**{name: make(value[name]) for name, make in makers.items() if name in value})
    return lambda value: value
