"""The end of an output as a person sees it, and whether the program seems to wait for a person to answer.

This is a guess. It explains a silence and never ends an agent: an agent may print anything, and Ganger never answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ganger.contracts.reading.terminal import FULL

_LONGEST = 300
_MOST_LINES = 8
_MOST_OPTIONS = 6


def shown(tail: bytes) -> str:
    """The text without terminal codes. Text that was overwritten counts as a line of its own."""
    plain = FULL.apply(tail.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    return plain.decode("utf-8", "replace")


def last_line(tail: bytes) -> str:
    """The last line with visible text; empty if there is none."""
    return next((line.strip() for line in reversed(shown(tail).split("\n")) if line.strip()), "")


def asking(tail: bytes) -> str:
    """The line that seems to ask a question; empty if there is none."""
    text = shown(tail)
    lines = [line.strip() for line in text.split("\n")[-4 * _MOST_LINES :] if line.strip()][-_MOST_LINES:]
    if not lines:
        return ""
    last = lines[-1]
    if not _is_talk(last):
        return ""
    if _ASKS.search(last) or (_asks_in_words(last) and not _MARKED.match(last)):
        return last
    if not text.rstrip(" \t").endswith("\n") and _is_open(last):
        return last
    return _menu(lines)


def _phrases(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_END = r"[\s:?›>❯]*\Z"
_CHOICE = r"(?:y|yes|n|no|a|all|q|quit|s|skip|d|r|e|t|always|never|once|\w{0,8}fingerprint\w{0,8}|\[\w{1,12}\])"
# Forms that only a question has, whether or not the line is finished.
_ASKS = _phrases(
    rf"[\[(<]{_CHOICE}(?:[/,|]\s?{_CHOICE}){{1,8}}[\])>]{_END}",
    rf"\by(?:es)?\s?/\s?no?\b{_END}",
    rf"\?\s*[\[(](?:y|yes|n|no|ok)[\])]{_END}",
    r"\b(?:password|passphrase|passcode|passwd|pin|otp|username|user name|login|(?:one-time|verification|security) code"
    r"|api key|access token)\b(?: (?:for|to|of) .{1,120}| \([^)]{0,60}\))?\s?:\s*\Z",
    r"\A\W{0,4}(?:press|hit|tap) (?:\S{1,12} ){0,2}?\W?(?:enter|return|any key|a key|key|space|y|q|ctrl\S{0,4})\b"
    r".{0,80}\Z",
    r"\bpress \W?(?:enter|return|any key|space)\W? to\b.{0,60}\Z",
    r"\A-{1,2} ?more ?-{1,2}(?: ?\(\d{1,3}%\))?\Z|\A\(END\)\Z",
    r"\(use (?:arrow|the arrow|up/down) ?keys?.{0,60}\)\Z",
    r"\b(?:enter|↵|return) to (?:confirm|select|approve|submit|continue)\b",
    r"\A\? .{1,200}[›»❯](?:\s.{0,60})?\Z",
    r"\A\? .{1,200}\?(?: \([^)]{1,40}\))?\s*\Z",
    r"\Awaiting for (?:your|user|human) (?:input|answer|reply|response|approval|confirmation)\b.{0,40}\Z",
    r"\btype (?:['\"`]?(?:yes|y|ok|confirm)\b).{0,60}(?:to (?:confirm|continue|proceed)).{0,10}\Z",
)
_TO_A_PERSON = _phrases(
    r"\b(?:do|did|would|could|can|will|may) you (?:want|like|wish|mean|prefer|confirm|approve|allow|please|trust"
    r"|clarify|tell|provide|specify)\b",
    r"\b(?:shall|should|may|can|could) (?:i|we)\b",
    r"\b(?:continue|proceed|overwrite|replace|retry|abort|go on|try again|go ahead)(?: \w{1,20}){0,3} ?\?",
    r"\bare you sure\b|\bis (?:this|that|it) (?:ok|okay|correct|right|fine|alright)\b|\b(?:ok|okay|ready) to \w+",
    r"\A(?:which|what|where|how)\b.{0,160}\b(?:you|your|i use|should)\b",
)
# A bullet, a heading, a comment, a quotation, a table or code: words about a question, not one.
_MARKED = re.compile(r"[-*+•#>|]\s|#|//|/\*|\*|--\s|\d{1,3}[.)]\s|[\"'`(\[{<|]|[+-](?=\S)")
_LOGGED = re.compile(
    r"\A\W?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\[?(?:error|warn|warning|info|debug|trace|note|fatal|critical|notice)\b)",
    re.IGNORECASE,
)
_AT_WORK = _phrases(
    r"\A\W{0,4}(?:re-?|un)?\w{2,20}ing\b",
    r"\d{1,3}(?:\.\d+)? ?%|\bETA\b|\b\d+ ?/ ?\d+\b",
    r"\btraceback \(most recent|\b(?:error|warning|failed|failure|output|result|results|stdout|stderr)s?:\Z",
    r"\A\W{0,4}(?:def|class|if|elif|else|for|while|with|try|except|finally|case|switch|default|match)\b[^?]{0,200}:\Z",
    r"\w+://\S*\Z",
)
_SHELLS = re.compile(
    r"(?:>>>|\((?:i?pdb|gdb|lldb)\+*\)|(?:ipdb|mysql|sqlite|irb\([^)]{0,30}\)[\d:]*|node|ftp)>)\Z", re.I
)
_OPTION = re.compile(r"(?:[❯›>*●○◉◯→]\s*)?(?:\d{1,2}[.)]|[a-z][.)]|\[[ x]\]|[●○◉◯])\s?\S|[❯›→]\s?\S", re.IGNORECASE)


def _is_talk(line: str) -> bool:
    """JSON and very long lines are written for programs, not for people."""
    return len(line) <= _LONGEST and not (line[0] in "{[" and line[-1] in "}]" and any(c in line for c in ':"'))


def _asks_in_words(line: str) -> bool:
    """A sentence that ends in a question to a person."""
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)[-1]
    return sentence.endswith("?") and _TO_A_PERSON.search(sentence) is not None and not _LOGGED.match(line)


def _is_open(line: str) -> bool:
    """A line without an end, as a program leaves it when it waits for input."""
    if _SHELLS.search(line):
        return True
    if _LOGGED.match(line) or not re.search(r"[^\W\d_]{2}", line):
        return False
    return line[-1] in "?:›❯" and _AT_WORK.search(line) is None


def _menu(lines: Sequence[str]) -> str:
    """A question with its possible answers below it."""
    options = 0
    for line in reversed(lines):
        if options < _MOST_OPTIONS and _OPTION.match(line):
            options += 1
            continue
        return line if options >= 2 and (line.endswith("?") or line.startswith("? ")) and _is_talk(line) else ""
    return ""
