"""The one repair an answer may get: outer markdown fence, comments, trailing commas. Strings are never touched."""

from __future__ import annotations

import re

_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*\n", re.ASCII)
_COMMENT = r"(?://[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?)"
_GAP = rf"(?:[ \t\r\n]++|{_COMMENT})*+"
_TOKEN = re.compile(
    rf'(?P<string>"(?:[^"\\]++|\\.?)*+"?)'
    rf"|(?P<hole>[\[{{,]{_GAP},)"
    rf"|(?P<comma>,(?={_GAP}[\]}}]))"
    rf"|(?P<comment>{_COMMENT})",
    re.DOTALL,
)


def repair(text: str) -> str:
    """The text without what agents add to JSON; anything else stays as it is."""
    return _TOKEN.sub(_replacement, _unfenced(text))


def _unfenced(text: str) -> str:
    text = text.strip()
    opening = _FENCE.match(text)
    if not opening:
        return text
    last_line = text.rfind("\n") + 1
    if last_line < opening.end() or text[last_line:].strip() != opening["mark"]:
        return text
    return text[opening.end() : last_line]


def _replacement(token: re.Match[str]) -> str:
    kind, text = token.lastgroup, token.group()
    if kind == "comma":
        return ""
    if kind == "comment" and _is_closed(text):
        return " "
    return text


def _is_closed(comment: str) -> bool:
    return comment.startswith("//") or (len(comment) >= len("/**/") and comment.endswith("*/"))
