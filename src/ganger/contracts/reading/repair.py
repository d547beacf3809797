"""The only repair an answer may get: outer markdown fence, comments, trailing commas. Strings are never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ganger.contracts.reading.strict_json import STRING

_MOST_TOKENS = 500_000
_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*\n", re.ASCII)
_STRING_OR_COMMENT = re.compile(rf"{STRING}|//|/\*", re.DOTALL)
_COMMAS = re.compile(
    rf"(?P<string>{STRING})|(?P<hole>[\[{{,][ \t\r\n]*+,)|(?P<trailing>,(?=[ \t\r\n]*+[\]}}]))", re.DOTALL
)


def repair(text: str) -> str:
    """The text without agents' additions to JSON; everything else is unchanged."""
    text = _unfenced(text)
    if "//" in text or "/*" in text:
        text = "".join(_without_comments(text))
    return "".join(_without_trailing_commas(text))


def _unfenced(text: str) -> str:
    text = text.strip()
    opening = _FENCE.match(text)
    if not opening:
        return text
    last_line = text.rfind("\n") + 1
    if last_line < opening.end() or text[last_line:].strip() != opening["mark"]:
        return text
    return text[opening.end() : last_line]


def _without_comments(text: str) -> Iterator[str]:
    """Each comment becomes a space; one that is never closed stays."""
    kept = place = 0
    for _ in range(_MOST_TOKENS):
        token = _STRING_OR_COMMENT.search(text, place)
        if not token:
            break
        place = token.end()
        if text[token.start()] == '"':
            continue
        closing, width = ("\n", 0) if text[token.start() + 1] == "/" else ("*/", 2)
        end = text.find(closing, place)
        if end < 0 and width:
            break
        yield text[kept : token.start()]
        yield " "
        kept = place = end + width if end >= 0 else len(text)
    yield text[kept:]


def _without_trailing_commas(text: str) -> Iterator[str]:
    kept = 0
    for count, token in enumerate(_COMMAS.finditer(text)):
        if count > _MOST_TOKENS:
            break
        if token.lastgroup == "trailing":
            yield text[kept : token.start()]
            kept = token.end()
    yield text[kept:]
