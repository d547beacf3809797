"""A CI job's log: what failed in it, the line that identifies it, what kind of fault it is, the files it names.

It is read like the logs of local checks. A fault is identified by the tests that failed or the errors with their
places, never by a heading that every log of its kind has.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ganger.core.failures.classes import without_what_varies
from ganger.core.logs.causes import CLASS_OF, LogCause, by_people, cause_of
from ganger.core.logs.check_logs import Telling, telling_of
from ganger.core.logs.faults import LogFault, LogReading, read_log
from ganger.core.logs.places import files
from ganger.core.vocabulary import FailureClass

_LONGEST_SIGNAL = 300
_NAMED_IN_SIGNAL = 3
_LONGEST_NAME = 80
_MOST_SAID = 50
_MOST_FILES = 50
_BEFORE_A_STOP = 60
_STOP = re.compile(r"make(?:\[\d+\])?: \*\*\* ")
_LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")

_ERROR = re.compile(
    r"\b(?:error|fatal|failed|failure|failures|panicked|exception|traceback|assert\w*|undefined|cannot|"
    r"not found|no such|segmentation|denied|unresolved|mismatch(?:ed)?)\b|^E\s{2,}|^\s*(?:FAIL|✗|✕|×)\b|^--- FAIL",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"^=== |^=+ .* =+$|\b0 (?:errors?|failed|failures)\b|\bno (?:errors?|failures)\b|process completed with exit code|"
    r"\bexit(?:ed)? (?:with )?(?:code|status)\b|🏁|job failed|job '.*' failed|continue-on-error|error_on|errors?=0|"
    r"failed=0|^make(?:\[\d+\])?: \*\*\* |^\$ ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`signal` is what people see first; `faults` are the keys by which two logs are compared, and `named` says
    whether they are tests and errors with places, or only lines that speak of trouble."""

    telling: Telling
    signal: str
    cause: LogCause
    faults: frozenset[str]
    named: bool

    @property
    def kind(self) -> FailureClass:
        return CLASS_OF[self.cause]

    @property
    def text(self) -> str:
        return "\n".join(self.telling.lines)


def trim(log: str) -> Excerpt:
    """Bounded, whatever the log holds."""
    reading = read_log(log)
    told = telling_of(reading.lines)
    cause, line = cause_of(reading, told.lines)
    if line:
        return Excerpt(told, line, cause, frozenset({f"{cause.value}: {without_what_varies(line)}"}), named=False)
    if found := by_people(reading.faults):
        return Excerpt(told, _signal(found), cause, frozenset(fault.key for fault in found), named=True)
    said = _said(reading) or _stops(reading)
    last = next((one.strip() for one in reversed(reading.lines) if one.strip()), "")
    return Excerpt(told, said[0] if said else last, cause, frozenset(map(without_what_varies, said)), named=False)


def faults(log: str) -> frozenset[str]:
    """What this log says is wrong, without what differs from one run to the next, so that two logs can be compared."""
    return trim(log).faults


def known_by(excerpts: Iterable[tuple[str, Excerpt]]) -> str:
    """The name of a commit's failure, from the logs of its jobs by name. The same faults give the same name, in any
    order and in any number of jobs of a matrix."""
    every = list(excerpts)
    named = sorted({fault for _, excerpt in every if excerpt.named for fault in excerpt.faults})
    if not named:
        named = sorted({f"{job}: {fault}" for job, excerpt in every for fault in excerpt.faults or {excerpt.signal}})
    if not named:
        return ""
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    # In letters: digits would count as something that varies.
    digest = hashlib.sha256("\n".join(named).encode("utf-8", "replace")).hexdigest()[:8].translate(_LETTERS)
    return f"{named[0][:_LONGEST_NAME].strip()}{more} #{digest}"


def named_files(log: str) -> tuple[str, ...]:
    """The files of the repository that a failed log names, the likeliest culprit first: the places of errors, then
    the frames of failed tests from the innermost call outwards, then the tests themselves, then other named files.

    A log may name only part of a path: a Java class comes without its source folder, so compare the ends of paths.
    """
    reading = read_log(log)
    weights: Counter[str] = Counter()
    for fault in reading.faults:
        for path, weight in _files_of(fault):
            weights[path] = max(weights[path], weight)
    for line in telling_of(reading.lines).lines:
        for path in files(line):
            weights[path] = max(weights[path], 1)
    ordered = sorted(weights, key=lambda path: -weights[path])
    return tuple(path for path in ordered if _is_inside(path))[:_MOST_FILES]


def _files_of(fault: LogFault) -> Iterator[tuple[str, int]]:
    if not fault.is_test and fault.file:
        yield fault.file, 100
    for number, path in enumerate(dict.fromkeys(fault.frames)):
        yield path, (10 if _is_of_tests(path) else 90 - min(number, 40))
    if fault.file and "." in fault.file.rpartition("/")[2]:
        yield fault.file, 20


def _is_of_tests(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return "test" in name or "spec" in name or path.startswith(("tests/", "test/", "spec/"))


def _is_inside(path: str) -> bool:
    return bool(path) and not path.startswith(("/", "~", "..", "<")) and ":" not in path


def _signal(found: Sequence[LogFault]) -> str:
    """The first fault, and the names of the next ones."""
    first = found[0].shown[:_LONGEST_SIGNAL]
    others = [fault.shown.partition(": ")[0][:_LONGEST_NAME] for fault in found[1:_NAMED_IN_SIGNAL]]
    rest = len(found) - 1 - len(others)
    if not others:
        return first
    return f"{first}; and {', '.join(others)}{f' and {rest} more' if rest else ''}"


def _said(reading: LogReading) -> list[str]:
    """Lines that mention trouble, from a log in which no known tool names what failed."""
    stop = next((at for at, line in enumerate(reading.lines) if _STOP.match(line)), None)
    lines = reading.lines if stop is None else reading.lines[max(0, stop - _BEFORE_A_STOP) : stop]
    told = (line.strip() for line in lines if _ERROR.search(line) and not _NOISE.search(line))
    return list(dict.fromkeys(told))[:_MOST_SAID]


def _stops(reading: LogReading) -> list[str]:
    return [fault.shown for fault in reading.stops][:_MOST_SAID]
