"""What an attempt cost, as any program may tell it: a line `GANGER_USAGE {"usd": 0.12, …}` on its output."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

from ganger.agents.streams import opened
from ganger.core.signs import Tokens

MARK = b"GANGER_USAGE "
_TAIL_BYTES = 256 * 1024


def read_usage(log: Path) -> Tokens | None:
    """The last such line of the log's end; None when there is none or it makes no sense."""
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
    usd, given, made = (data.get(name) for name in ("usd", "input_tokens", "output_tokens"))
    if usd is not None and not _is_amount(usd):
        return None
    if not all(tokens is None or (_is_amount(tokens) and tokens == int(tokens)) for tokens in (given, made)):
        return None
    return Tokens(
        None if given is None else int(given),
        None if made is None else int(made),
        usd=None if usd is None else float(usd),
    )


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
