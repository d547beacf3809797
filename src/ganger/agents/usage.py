"""The cost of an attempt as any program may report it: a line `GANGER_USAGE {"usd": 0.12, …}` in its output."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ganger.agents.streams import opened
from ganger.core.signs import Tokens

MARK = b"GANGER_USAGE "
_TAIL_BYTES = 256 * 1024
_HUGE = 1e15
_SHOWN = 40


def read_usage(log: Path) -> Tokens | None:
    """The last such line near the log's end; None if there is none or it cannot be read."""
    with opened(log) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read(_TAIL_BYTES).splitlines()
    found = next((line[len(MARK) :] for line in reversed(lines) if line.startswith(MARK)), None)
    return _usage(found) if found is not None else None


def _usage(text: bytes) -> Tokens | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    told = {name: data.get(name) for name in ("usd", "input_tokens", "output_tokens")}
    wrong = [f"{name} {str(value)[:_SHOWN]}" for name, value in told.items() if not _is_amount(name, value)]
    sound = {name: value for name, value in told.items() if value is not None and _is_amount(name, value)}
    given, made = (int(sound[n]) if n in sound else None for n in ("input_tokens", "output_tokens"))
    return Tokens(given, made, usd=float(sound["usd"]) if "usd" in sound else None, doubted=", ".join(wrong))


def _is_amount(name: str, value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _HUGE:
        return False
    return name == "usd" or value == int(value)
