"""Strict JSON: no duplicate keys, no non-finite numbers, no lone surrogates, bounded depth and number of values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from math import isinf
from typing import NoReturn

MAX_DEPTH = 100

STRING = r'"(?:[^"\\]++|\\.?)*+"?'
_STRINGS = re.compile(STRING, re.DOTALL)
_TOKENS = re.compile(rf"(?P<string>{STRING})|(?P<mark>[{{}}\[\],:])|(?P<word>[-+.\w]++)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_INTEGER = 4300
_LOCATE_WITHIN = 4_000_000
_CONTAINERS = frozenset({dict, list})


class DocumentFault(ValueError):
    """Why a document is refused, and where; line 0 means an unknown place."""

    def __init__(self, code: str, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})" if self.line else self.message


class JsonFault(DocumentFault):
    """Why a text is not acceptable JSON."""


class _Duplicate(LookupError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class _NotFinite(ArithmeticError):
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def loads(text: str, *, max_depth: int = MAX_DEPTH) -> object:
    """The value of a JSON text, or a JsonFault."""
    value = _parse(text)
    _check_depth(value, max_depth)
    _check_text(text, value)
    return value


def _parse(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonFault("INVALID_JSON", error.msg, error.lineno, error.colno) from None
    except _Duplicate as error:
        place = _duplicate_at(text, error.key)
        raise _fault("DUPLICATE_KEY", f"the key {shorten(error.key)} is given twice", text, place) from None
    except _NotFinite as error:
        place = _word_at(text, error.word)
        raise _fault("INVALID_JSON", f"{shorten(error.word)} is not a finite number", text, place) from None
    except RecursionError:
        raise JsonFault("NESTED_TOO_DEEP", "arrays and objects are nested too deep") from None
    except ValueError:
        message = f"an integer has more than {_LONGEST_INTEGER} digits"
        raise _fault("INVALID_JSON", message, text, _long_integer_at(text)) from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Duplicate(key)
            seen.add(key)
    return made


def _finite(word: str) -> float:
    value = float(word)
    if isinf(value):
        raise _NotFinite(word)
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise _NotFinite(word)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant)


def check_count(text: str, limit: int) -> None:
    """Refuses a text of more than `limit` values, so that parsing it takes bounded memory."""
    if _separators(text, 0, len(text)) + text.count('"') <= limit:
        return
    values = place = 0
    for strings, string in enumerate(_STRINGS.finditer(text)):
        values += _separators(text, place, string.start())
        place = string.end()
        if values > limit or strings > 2 * limit:
            break
    else:
        values += _separators(text, place, len(text))
        if values <= limit:
            return
    raise JsonFault("INVALID_JSON", f"too many values (more than {limit})")


def _separators(text: str, first: int, last: int) -> int:
    return text.count(",", first, last) + text.count("[", first, last) + text.count("{", first, last)


def _check_depth(value: object, limit: int) -> None:
    level: list[object] = [value]
    for _ in range(limit):
        level = [child for parent in level for child in _children(parent) if type(child) in _CONTAINERS]
        if not level:
            return
    raise JsonFault("NESTED_TOO_DEEP", f"arrays and objects are nested more than {limit} deep")


def _children(parent: object) -> Iterable[object]:
    if isinstance(parent, dict):
        return parent.values()
    return parent if isinstance(parent, list) else ()


def _check_text(text: str, value: object) -> None:
    suspicious = "\\ud" in text or "\\uD" in text or not text.isascii()
    if suspicious and any(_SURROGATE.search(string) for string in _strings_of(value)):
        raise JsonFault("INVALID_JSON", "a string holds half of a surrogate pair, which is not a character")


def _strings_of(value: object) -> Iterator[str]:
    todo: list[object] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from item
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)


def _duplicate_at(text: str, key: str) -> int:
    """The position of the first repeated key. Runs only for texts that parse up to the duplicate."""
    open_objects: list[set[str] | None] = []
    candidate: tuple[str, int] | None = None
    for token in _tokens(text):
        word = token.group()
        if token.lastgroup == "string":
            candidate = (word, token.start())
            continue
        if word == ":" and candidate and open_objects and open_objects[-1] is not None:
            name = json.loads(candidate[0])
            if name == key and name in open_objects[-1]:
                return candidate[1]
            open_objects[-1].add(name)
        elif word in "{[":
            open_objects.append(set() if word == "{" else None)
        elif word in "}]" and open_objects:
            open_objects.pop()
        candidate = None
    return -1


def _word_at(text: str, word: str) -> int:
    return next((t.start() for t in _tokens(text) if t.lastgroup == "word" and t.group() == word), -1)


def _long_integer_at(text: str) -> int:
    long = (t.start() for t in _tokens(text) if t.lastgroup == "word" and t.end() - t.start() > _LONGEST_INTEGER)
    return next(long, -1)


def _tokens(text: str) -> Iterator[re.Match[str]]:
    return _TOKENS.finditer(text, 0, _LOCATE_WITHIN)


def _fault(code: str, message: str, text: str, place: int) -> JsonFault:
    if place < 0:
        return JsonFault(code, message)
    return JsonFault(code, message, text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place))


def shorten(value: str, longest: int = 60) -> str:
    """A string for a message: quoted, escaped, on one line, short."""
    cut = value if len(value) <= longest else value[: longest - 1] + "…"
    quoted = json.dumps(cut, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in quoted)
