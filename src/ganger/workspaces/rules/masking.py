"""Removes secrets from text that comes from outside: CI logs, output of git and forges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ganger.contracts.reading.terminal import FULL
from ganger.core.masking import NOTHING, Masker, forms_of
from ganger.workspaces.rules.secrets import Span, secret_spans

MASKED = b"[masked]"
IN_USE = "a token in use"
_SHORTEST = 6
_MOST_REPEATED = 100
_LONGEST_REPEATED = 1024
_WITHOUT_WIDTH = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
# Removed wherever they stand. They do not indicate a leak: a forge's own log is full of them.
_ALWAYS = re.compile(
    rb"://[^\s:/@'\"<>]{0,64}:([^\s@/'\"<>]{1,256})@"
    rb"|[Aa]uthorization: ?(?:[Bb]asic|[Bb]earer|[Tt]oken) ([^\s'\"]{6,4096})"
    rb"|(?:PRIVATE|JOB)-TOKEN: ?([^\s'\"]{6,4096})",
)


class Mask:
    """`known` are secrets in use, such as the forge's token; `handed` knows what agents and checks received."""

    def __init__(self, known: Iterable[str] = (), handed: Masker = NOTHING) -> None:
        forms = (form for one in known if len(one) >= _SHORTEST for form in forms_of(one))
        self._known = {form.encode("utf-8", "surrogatepass") for form in forms}
        self._handed = handed

    def __call__(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The text without secrets, and which kinds it held. The time is bounded by the length.

        Terminal codes are removed first: a colour code in the middle of a token would hide the token here and vanish
        where the text is shown.
        """
        data = _seen(text)
        spans = [*secret_spans(data), *_everywhere(data, self._known, IN_USE)]
        kinds = tuple(sorted({span.kind for span in spans}))
        values = {data[span.start : span.end] for span in spans if span.end - span.start <= _LONGEST_REPEATED}
        spans += _everywhere(data, sorted(values)[:_MOST_REPEATED], "")
        spans += [Span(*match.span(match.lastindex or 0), "") for match in _ALWAYS.finditer(data)]
        spans += [Span(hit.start, hit.end, "") for hit in self._handed.hits(data)]
        shown = _without(data, sorted(spans)).decode("utf-8", "replace")
        return self._handed.text(shown), kinds

    def shown(self, text: str) -> str:
        return self(text)[0]


def _seen(text: str) -> bytes:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for sign in _WITHOUT_WIDTH:
        text = text.replace(sign, "")
    return bytes(FULL.apply(text.encode("utf-8", "surrogatepass")))


def _everywhere(data: bytes, values: Iterable[bytes], kind: str) -> list[Span]:
    """Masks every further occurrence: a secret named once may stand again without its name."""
    found: list[Span] = []
    for value in values:
        at = data.find(value)
        while at >= 0:
            found.append(Span(at, at + len(value), kind))
            at = data.find(value, at + len(value))
    return found


def _without(data: bytes, spans: Sequence[Span]) -> bytes:
    pieces: list[bytes] = []
    reached = 0
    for span in spans:
        if span.start >= reached:
            pieces += [data[reached : span.start], MASKED]
        reached = max(reached, span.end)
    return b"".join([*pieces, data[reached:]])
