"""Makes an agent's text safe for a forge: it skips no CI, notifies no one, closes no issue, and hides nothing."""

from __future__ import annotations

import re

# Forges and runners differ in which of these they obey, in case and in spaces; all of them use brackets.
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
    """For commit messages: some words make a forge skip CI; an agent must not be able to do that."""
    return _SILENCING.sub(lambda found: f"({found[0].strip('[]* ')})", text)


def uncalling(text: str) -> str:
    """No one is notified, nothing is linked or closed: a visible space after each marker prevents that."""
    return _CALLING.sub(lambda found: f"{found[0]} ", unsilencing(text))


def unmarked(text: str) -> str:
    """For the body of a change request, after Ganger's own words: a line could begin with a command."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", uncalling(text))


def quoted(text: str) -> str:
    """A name between backticks; it cannot end them."""
    return f"`{uncalling(text).replace('`', chr(39))}`"
