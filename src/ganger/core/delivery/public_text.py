"""An agent's words before a forge reads them: they silence no CI, call nobody, close no issue, and hide nothing."""

from __future__ import annotations

import re

# Forges and runners differ in which of these they heed, in capitals and in blanks; brackets are what all have.
_SILENCING = re.compile(
    r"\[[\s_-]*(?:(?:skip|no)[\s_-]*(?:ci|actions?|builds?|azp|travis|circle|drone)"
    r"|(?:ci|actions?|builds?|azp|travis|circle|drone)[\s_-]*(?:skip|no|off))[\s_-]*\]"
    r"|\*\*\*[\s_-]*no[\s_-]*ci[\s_-]*\*\*\*"
    r"|\bskip-checks(?=\s*:)",
    re.IGNORECASE,
)
# `@name`, `#12`, `!12`, `owner/name#12`, `GH-12`, and addresses of issues and change requests.
_CALLING = re.compile(
    r"(?<![\w.])@(?=\w)|[#!](?=\d)|\bgh-(?=\d)|:(?=//\S{0,400}/(?:issues|pulls?|merge_requests|work_items)/)",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[\\`*_\[\]<>~|]")


def unsilencing(text: str) -> str:
    """For commit messages: a forge runs no CI for a commit that says so; an agent must not be able to."""
    return _SILENCING.sub(lambda found: f"({found[0].strip('[]* ')})", text)


def uncalling(text: str) -> str:
    """Nobody is told, nothing is linked or closed. A blank does it, and people see that it is there."""
    return _CALLING.sub(lambda found: f"{found[0]} ", unsilencing(text))


def unmarked(text: str) -> str:
    """For the body of a change request, behind a word of Ganger's own: what begins a line may be an order."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", uncalling(text))


def quoted(text: str) -> str:
    """A name between backticks; it cannot end them."""
    return f"`{uncalling(text).replace('`', chr(39))}`"
