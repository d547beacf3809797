"""The part of a change request's text that Ganger keeps current; what people write around it stays theirs."""

from __future__ import annotations

BEGIN, END = "<!-- ganger: kept current from here -->", "<!-- ganger: to here -->"


def framed(text: str) -> str:
    return f"{BEGIN}\n{text}\n{END}"


def renewed(shown: str, text: str) -> str:
    """`shown` with Ganger's part replaced; as it is where somebody took the marks away."""
    before, begun, rest = shown.partition(BEGIN)
    _, ended, after = rest.partition(END)
    return f"{before}{framed(text)}{after}" if begun and ended else shown


def renewed_title(shown: str, given: str, wanted: str) -> str:
    """A title that is not the one it was given last is somebody's own. `given` is empty where that is not known."""
    return wanted if given and shown == given else shown
