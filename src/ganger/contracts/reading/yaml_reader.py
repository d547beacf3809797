"""The safe part of YAML: plain data, `true` and `false` as the only booleans, no tags, anchors or aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from ganger.contracts.reading.strict_json import MAX_DEPTH, DocumentFault, shorten

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_REAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_LONGEST_NUMBER = 4300


class _Builder:
    """Turns YAML events into plain values, one pass, without recursion."""

    def __init__(self) -> None:
        self.root: object = None
        self._open: list[dict[str, object] | list[object]] = []
        self._keys: list[str | None] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _fault("a second document begins here; one file holds one document", event)
        elif isinstance(event, yaml.AliasEvent):
            raise _fault(f"aliases (*{event.anchor}) are refused; write the value out", event)
        elif isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._check_marks(event)
            self._begin(event)
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._open.pop()
            self._keys.pop()

    def _check_marks(self, event: yaml.NodeEvent) -> None:
        if event.anchor is not None:
            raise _fault(f"anchors (&{event.anchor}) are refused; write the value out", event)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _fault(f"tags ({tag}) are refused; write plain values", event)

    def _begin(self, event: yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._put(_scalar(event), event)
            return
        made: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._put(made, event)
        self._open.append(made)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            raise _fault(f"values are nested more than {MAX_DEPTH} deep", event, "NESTED_TOO_DEEP")

    def _put(self, value: object, event: yaml.Event) -> None:
        if not self._open:
            self.root = value
            return
        parent, key = self._open[-1], self._keys[-1]
        if isinstance(parent, list):
            parent.append(value)
        elif key is not None:
            parent[key] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise _fault("a key must be a string; put it in quotes", event)
        elif value in parent:
            raise _fault(f"the key {shorten(value)} is given twice", event, "DUPLICATE_KEY")
        else:
            self._keys[-1] = value


def read_yaml(text: str) -> object:
    """The value of the one document in a YAML text, or a DocumentFault."""
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise DocumentFault(
            "INVALID_YAML", error.problem or error.context or "this is not YAML", line, column
        ) from None
    except yaml.reader.ReaderError as error:
        place = error.position if isinstance(error.position, int) else 0
        message = f"a character that YAML does not allow: {error.reason}"
        raise DocumentFault("INVALID_YAML", message, *_at(text, place)) from None
    return builder.root


def _events(text: str) -> Iterator[yaml.Event]:
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=_Loader)
    return events


def _scalar(event: yaml.ScalarEvent) -> object:
    text: str = event.value
    if event.style or not event.implicit[0]:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _NOT_FINITE.fullmatch(text):
        raise _fault(f"{text} is not a finite number", event)
    if text[0] not in "+-0123456789" or not _REAL.fullmatch(text):
        return text
    return _number(text, event)


def _number(text: str, event: yaml.Event) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise _fault(f"a number has more than {_LONGEST_NUMBER} digits", event)
    if _INTEGER.fullmatch(text):
        return int(text)
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _fault(f"{shorten(text)} is not a finite number", event)
    return value


def _fault(message: str, event: yaml.Event, code: str = "INVALID_YAML") -> DocumentFault:
    mark = event.start_mark
    return DocumentFault(code, message, mark.line + 1, mark.column + 1) if mark else DocumentFault(code, message)


def _at(text: str, place: int) -> tuple[int, int]:
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
