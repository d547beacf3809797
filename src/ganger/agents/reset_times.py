"""When a limit ends, read from what vendors and programs write: fields, spans of time, moments, clocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# No limit lasts longer; a longer time means something else.
_FARTHEST_SEC = 400 * 86400.0
_DAY_SEC = 86400.0

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": _DAY_SEC, "w": 7 * _DAY_SEC}
_UNIT = r"(?:ms|millisec\w{0,6}|s(?:ec\w{0,4})?|m(?:in\w{0,4})?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)"
_AMOUNT = r"(?:\d{1,9}(?:\.\d{1,9})?|\ban?\b)"
_SPAN = re.compile(rf"({_AMOUNT})\s{{0,2}}({_UNIT})(?![a-z])", re.IGNORECASE)
_SPANS = rf"((?:{_AMOUNT}\s{{0,2}}{_UNIT}(?![a-z])(?:[\s,]{{0,2}}(?:and )?)){{1,5}})"

_LEAD = r"(?:retry|try again|resets?|reset_?at|reset ?time\w{0,6}|available|wait|until|regain access)"
_RELATIVE = re.compile(
    rf"{_LEAD}(?:\W{{0,4}}(?:again|will|is|be|for|about|approximately|please|requests?|limit|at least|in|after)\b)*?"
    rf"\s(?:in|after|for|about|approximately|wait|at least)\s{{1,2}}(?:about |approximately |~)?{_SPANS}"
    rf"|\bwait {_SPANS}",
    re.IGNORECASE,
)
_SPAN_FIELD = re.compile(
    rf"(?:retry_?delay|reset_?delay|x-ratelimit-reset-\w{{1,10}}|retry-after)\W{{1,4}}{_SPANS}", re.IGNORECASE
)
_NUMBER_FIELD = re.compile(
    r"(?:resets?_?in_?sec(?:ond)?s|retry[_-]?after(?P<ms>[_-]?ms)?(?:[_-]?sec(?:ond)?s)?"
    r"|retry_?delay\W{1,6}seconds|retry_?delay(?P<also_ms>_?ms))\W{1,4}(?P<value>\d{1,9}(?:\.\d{1,9})?)(?![\w.])",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"reset\w{0,12}\W{1,4}([12]\d{9})(?:\d{3})?(?!\d)|\|([12]\d{9})(?:\d{3})?\b",
    re.IGNORECASE,
)
_ISO = re.compile(
    rf"(?:{_LEAD}|reset)[^\d\n]{{0,24}}?(\d{{4}}-\d\d-\d\d)(?:[T ]|,? at )(\d\d:\d\d(?::\d\d)?)(?:\.\d{{1,9}})?"
    r"\s?(Z\b|UTC|GMT|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_HTTP_DATE = re.compile(
    r"retry-after\W{1,4}([A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT)", re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(
    rf"{_LEAD}(?: (?:again|at|on|by))*:?\s{{1,2}}"
    rf"(?:(?P<weekday>{'|'.join(_WEEKDAYS)})[a-z]{{0,6}},? (?:at )?)?"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,? (?P<year>\d{4}))?,?(?: at)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?\s{0,2}(?P<half>[ap]\.?m\b\.?)?"
    r"\s{0,2}\(?(?P<zone>UTC|GMT|[A-Za-z_]{1,20}(?:/[A-Za-z_-]{1,30}){1,2})?",
    re.IGNORECASE,
)


def reset_time(text: str, now: float) -> float | None:
    """The end of a limit as a Unix time; None if the text does not say, or gives an implausible time."""
    return next((at for at in _moments(text, now) if at - now <= _FARTHEST_SEC), None)


def _moments(text: str, now: float) -> Iterator[float]:
    """The times in a text, the exact ones first."""
    if found := _EPOCH.search(text):
        yield float(found[1] or found[2])
    if found := _NUMBER_FIELD.search(text):
        yield now + float(found["value"]) * (0.001 if found["ms"] or found["also_ms"] else 1.0)
    if found := _SPAN_FIELD.search(text):
        yield now + _span(found[1])
    if found := _HTTP_DATE.search(text):
        yield from _http_date(found[1])
    if found := _RELATIVE.search(text):
        yield now + _span(found[1] or found[2])
    if found := _ISO.search(text):
        yield from _iso(found)
    for found in _CLOCK.finditer(text):
        # A plain number after "try again" is a number of tries.
        if found["half"] or found["minute"]:
            yield from _clock(found, now)


def _span(text: str) -> float:
    return sum(_amount(count) * _UNITS[_unit(unit.lower())] for count, unit in _SPAN.findall(text))


def _amount(text: str) -> float:
    return 1.0 if text.lower().startswith("a") else float(text)


def _unit(word: str) -> str:
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _http_date(text: str) -> Iterator[float]:
    try:
        yield parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return


def _iso(found: re.Match[str]) -> Iterator[float]:
    zone = (found[3] or "Z").upper()
    offset = "+00:00" if zone in ("Z", "UTC", "GMT") else zone
    try:
        yield datetime.fromisoformat(f"{found[1]}T{found[2]}{offset}").timestamp()
    except (ValueError, OverflowError):
        return


def _clock(found: re.Match[str], now: float) -> Iterator[float]:
    """`resets 3pm (Europe/Berlin)`, `try again at Nov 15th, 2026 3:45 PM`: the next such moment."""
    zone = _zone(found["zone"])
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    try:
        today = datetime.fromtimestamp(now, zone).replace(hour=hour, minute=minute, second=0, microsecond=0)
        yield _day(found, today, now).timestamp()
    except (ValueError, OverflowError):
        return


def _day(found: re.Match[str], today: datetime, now: float) -> datetime:
    if found["month"]:
        month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
        at = today.replace(year=int(found["year"] or today.year), month=month, day=day)
        long_past = at.timestamp() < now - _FARTHEST_SEC / 2
        return at.replace(year=at.year + 1) if long_past and not found["year"] else at
    if found["weekday"]:
        today += timedelta(days=(_WEEKDAYS.index(found["weekday"].lower()) - today.weekday()) % 7)
    return today if today.timestamp() > now else today + timedelta(days=7 if found["weekday"] else 1)


def _zone(name: str | None) -> tzinfo:
    """The zone a text names, else this machine's, because programs print local time."""
    if name is None:
        return _here()
    if name.upper() in ("UTC", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _here()


def _here() -> tzinfo:
    return datetime.now().astimezone().tzinfo or UTC
