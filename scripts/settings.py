"""The settings table of docs/guide/configuration.md: every key with its default, meaning and variable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

PAGE = Path("docs/guide/configuration.md")
BEGIN, END = "<!-- settings: begin, written by `make generate` -->", "<!-- settings: end -->"
NAMED = {"agents": "NAME", "roles": "ROLE", "prices": "MODEL", "repos": "NAME"}


class NoPlaceError(Exception):
    """The page lacks the two lines between which the table stands."""


def render(root: Path, config: type[BaseModel]) -> str:
    page = (root / PAGE).read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoPlaceError(f"{PAGE}: the lines {BEGIN!r} and {END!r} are needed; put them where the tables shall stand")
    return "\n".join([f"{before}{BEGIN}", "", *tables(config), f"{END}{after}"])


def tables(config: type[BaseModel]) -> Iterator[str]:
    fields = config.model_fields
    single = {key: info for key, info in fields.items() if section_of(info) is None}
    yield from table("Top level", "", single)
    for name, info in fields.items():
        model = section_of(info)
        if model is not None:
            if is_list(info):
                yield from table(f"[[{name}]]", None, model.model_fields)
                continue
            prefix = f"{name}.{NAMED[name]}" if name in NAMED else name
            own = {key: part for key, part in model.model_fields.items() if section_of(part) is None}
            yield from table(f"[{prefix}]", f"{prefix}.", own)
            for key, part in model.model_fields.items():
                if (inner := section_of(part)) is not None:
                    yield from table(f"[{prefix}.{key}]", f"{prefix}.{key}.", inner.model_fields)


def section_of(info: FieldInfo) -> type[BaseModel] | None:
    """The model of a section, also where the section is a table of named ones."""
    found = info.annotation
    inner = getattr(found, "__args__", (found,))[-1]
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def is_list(info: FieldInfo) -> bool:
    """A section that may be there several times."""
    return getattr(info.annotation, "__origin__", None) is list


def is_part(info: FieldInfo) -> bool:
    """A section that may be left out: its keys have the variables."""
    return any(isinstance(one, type) and issubclass(one, BaseModel) for one in getattr(info.annotation, "__args__", ()))


def table(title: str, prefix: str | None, fields: dict[str, FieldInfo]) -> Iterator[str]:
    """Without a prefix: keys that no variable can set."""
    yield from (f"### {title}", "", "| key | default | meaning | variable |", "| --- | --- | --- | --- |")
    for key, info in fields.items():
        name = "–" if prefix is None else f"`{variable(prefix + key)}{'_…' if is_part(info) else ''}`"
        yield f"| `{key}` | {default_of(info)} | {meaning_of(info)} | {name} |"
    yield ""


def default_of(info: FieldInfo) -> str:
    value: Any = info.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    text = json.dumps(value, ensure_ascii=False)
    return "see below" if len(text) > 60 else f"`{text}`"


def meaning_of(info: FieldInfo) -> str:
    choices = getattr(info.annotation, "__args__", ())
    words = [str(choice) for choice in choices if isinstance(choice, str) and choice]
    listed = f": {', '.join(f'`{word}`' for word in words)}" if words else ""
    return f"{info.description or ''}{listed}".replace("|", "\\|")


def variable(key: str) -> str:
    return "GANGER_" + key.replace(".", "_").upper()
