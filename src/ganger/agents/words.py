"""What agents' error texts mean, and when a limit ends: for agents that say it in words only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ganger.core.signs import Limited, LoginMissing, Over, Sign

_LOGIN = re.compile(
    r"not logged in|please run /login|log ?in (?:again|to continue|required)|authenticat|unauthori[sz]ed|forbidden"
    r"|invalid (?:x-)?api[ -_]?key|(?:api key|token) (?:is )?(?:not|invalid|missing|expired|required)|incorrect api key"
    r"|no api key|missing (?:environment variable|api key|credentials)|permission_error|\b40[13]\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"credit balance|insufficient[_ ](?:quota|funds|credits?|balance)|out of credits?|billing|payment required|\b402\b"
    r"|no (?:remaining )?credits|check your plan",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"rate[ _-]?limit|too many requests|quota|usage limit|hit your (?:\w+ )?limit|limit reached|resource[_ ]exhausted"
    r"|\b429\b",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"overloaded|high demand|server error|internal error|bad gateway|unavailable|gateway time-?out|\b5\d\d\b"
    r"|connection|disconnected|econnre(?:set|fused)|socket|network|fetch failed|terminated|premature|timed? ?out"
    r"|stream|eof|unexpected (?:token|end)|not valid json|invalid json|failed to parse|malformed|empty response"
    r"|no (?:response|content|candidates)",
    re.IGNORECASE,
)


def meaning(text: str, *, status: int | None = None, now: float, final: bool = True) -> list[Sign]:
    """The signs of an error, by its HTTP status where there is one, else by its words. Not understood: an `error`."""
    if is_limit(text, status):
        empty = bool(_EMPTY.search(text)) or status == 402
        return [Limited(text, reset_at=reset_in(text, now), final=final, empty=empty)]
    if status in (401, 403) or (status is None and _LOGIN.search(text)):
        return [LoginMissing(text)]
    if (status is not None and (status >= 500 or status in (408, 425))) or (status is None and _NETWORK.search(text)):
        return [Over("network", text)]
    return [Over("error", text)]


def is_limit(text: str, status: int | None = None) -> bool:
    if status in (429, 402):
        return True
    # Vendors say "you have no more money" with other statuses too.
    return bool(_EMPTY.search(text)) if status is not None else bool(_LIMIT.search(text) or _EMPTY.search(text))


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|millisec\w*|s(?:ec\w*)?|m(?:in\w*)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)(?![a-z])", re.IGNORECASE
)
_RELATIVE = re.compile(
    r"(?:retry|try again|resets?|available(?: again)?|wait|reset after)[\w\s\"':=_-]{0,30}?"
    r"(?:in|after|delay\W+|for)\s*\"?((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_SECONDS_FIELD = re.compile(r"(?:resets?_in_seconds|retry[_-]after(?:_seconds)?)\W+(\d+(?:\.\d+)?)", re.IGNORECASE)
_EPOCH_FIELD = re.compile(r"(?:resets?_?at|reset[_-]?(?:time|timestamp)?)\W+(1\d{9})(?:\d{3})?\b", re.IGNORECASE)
_EPOCH_TAIL = re.compile(r"\|(1\d{9})(?:\d{3})?\b")
_ISO = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*(Z|UTC|[+-]\d\d:?\d\d)?", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:resets?|try again|available|until)\D{0,20}?(?:at\s+)?(?:(?P<date>[A-Z][a-z]{2,8}\.? \d{1,2}(?:st|nd|rd|th)?)"
    r"(?:,? (?P<year>\d{4}))?,?(?: at)? )?(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\.?)?\s*"
    r"(?:\((?P<zone>[A-Za-z_]+(?:/[A-Za-z_]+)*)\))?",
    re.IGNORECASE,
)


def reset_in(text: str, now: float) -> float | None:
    """When a limit ends, as a Unix time; None where the text does not say."""
    for pattern in (_EPOCH_FIELD, _EPOCH_TAIL):
        if found := pattern.search(text):
            return float(found[1])
    if found := _SECONDS_FIELD.search(text):
        return now + float(found[1])
    if (found := _RELATIVE.search(text)) and (span := _span(found[1])):
        return now + span
    if found := _ISO.search(text):
        return _iso(found[1], found[2])
    return next(_clocks(text, now), None)


def _span(text: str) -> float:
    return sum(
        float(n) * _UNITS["ms" if unit.lower().startswith(("ms", "milli")) else unit[0].lower()]
        for n, unit in _SPAN.findall(text)
    )


def _iso(stamp: str, zone: str | None) -> float | None:
    offset = "+00:00" if zone is None or zone.upper() in ("Z", "UTC") else zone
    try:
        return datetime.fromisoformat(stamp.replace(" ", "T") + offset).timestamp()
    except ValueError:
        return None


def _clocks(text: str, now: float) -> Iterable[float]:
    """`resets 3pm (Europe/Berlin)`, `try again at Nov 15th, 2026 3:45 PM`: the next such moment."""
    for found in _CLOCK.finditer(text):
        if not found["half"] and not found["minute"]:
            continue
        at = _moment(found, now)
        if at is not None:
            yield at


def _moment(found: re.Match[str], now: float) -> float | None:
    zone = _zone(found["zone"])
    base = datetime.fromtimestamp(now, zone)
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    try:
        at = base.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if found["date"]:
            day = re.sub(r"(?<=\d)(?:st|nd|rd|th)|\.", "", found["date"])
            at = at.replace(tzinfo=None)
            parsed = datetime.strptime(f"{day[:3]} {day.split()[1]} {found['year'] or base.year}", "%b %d %Y")
            at = parsed.replace(hour=hour, minute=minute, tzinfo=zone)
        elif at.timestamp() <= now:
            at += timedelta(days=1)
    except ValueError:
        return None
    return at.timestamp()


def _zone(name: str | None) -> tzinfo:
    """The zone a text names; else this machine's, as programs print their own clock."""
    if name is None:
        return datetime.now().astimezone().tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC if name.upper() == "UTC" else datetime.now().astimezone().tzinfo or UTC
