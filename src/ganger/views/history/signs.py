"""Signals in an agent's output and their summary, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import UTC, datetime

from ganger.core.failures.agent_errors import trouble_of
from ganger.core.signs import Heard, Said, Sign

_LONGEST = 160


def as_json(sign: Sign) -> dict[str, object]:
    return {"sign": _name(sign), **asdict(sign)}


def sign_line(sign: Sign) -> str:
    """One signal, short; unknown parts are left out."""
    if isinstance(sign, Said):
        return f"said          {_short(sign.text)!r}{' (part)' if sign.part else ''}"
    told = [
        f"{field.name}={_shown(getattr(sign, field.name), field.name)}"
        for field in fields(sign)
        if getattr(sign, field.name) not in (None, "", False, 0)
    ]
    return f"{_name(sign):<13} {' '.join(told)}".rstrip()


def heard_json(heard: Heard) -> dict[str, object]:
    tokens, trouble = heard.tokens, trouble_of(heard, cut_short=True)
    return {
        "session": heard.session or None,
        "model": heard.model or None,
        "answer": heard.answer,
        "tools": heard.tools,
        "tokens": asdict(tokens) if tokens is not None else None,
        "denied": [asdict(denied) for denied in heard.denied],
        "context": asdict(heard.context) if heard.context is not None else None,
        "over": asdict(heard.over) if heard.over is not None else None,
        "without_result": trouble.failure_class.value if trouble is not None else None,
        "reset_at": heard.limited.reset_at if heard.limited is not None else None,
    }


def heard_lines(heard: Heard) -> Iterator[str]:
    tokens, trouble = heard.tokens, trouble_of(heard, cut_short=True)
    yield "---"
    yield f"session       {heard.session or 'unknown'}"
    yield f"model         {heard.model or 'unknown'}"
    if tokens is None:
        yield "tokens        unknown"
    else:
        cost = f"${tokens.usd:.4f}" if tokens.usd is not None else "cost unknown"
        yield f"tokens        {tokens.input} in, {tokens.output} out, {cost}"
    yield f"ended         {heard.over.how if heard.over is not None else 'without an end signal'}"
    yield f"answer        {len(heard.answer)} characters"
    if trouble is not None:
        yield f"if no result  {trouble.failure_class.value}: {_short(trouble.detail)}"


def _name(sign: Sign) -> str:
    name = type(sign).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _shown(value: object, name: str) -> str:
    if name == "reset_at" and isinstance(value, float):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    return _short(value) if isinstance(value, str) else str(value)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"
