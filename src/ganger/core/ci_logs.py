"""A CI job's log, cut down to the error: which lines matter, which one is the signal, what kind of fault it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ganger.contracts.terminal import FULL
from ganger.core.vocabulary import FailureClass

_MOST_LINES = 60
_MOST_CHARS = 6_000
_LONGEST_LINE = 400
_AROUND = 4
_LAST_BYTES = 512 * 1024
_MOST_FAULTS = 500

# Forges put a moment before each line, and marks of their own around groups.
_PREFIX = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z? ?")
_MARKS = re.compile(r"^(?:##\[\w+\]|::(?:group|endgroup|error|warning|notice|debug)[^:]*::|section_\w+:\d+:\S*)")
_ERROR = re.compile(
    r"\b(?:error|fatal|failed|failure|failures|panicked|exception|traceback|assert\w*|undefined|cannot|"
    r"not found|no such|segmentation|denied|unresolved|mismatch(?:ed)?)\b|^E\s{2,}|^\s*(?:FAIL|✗|✕|×)\b|^--- FAIL",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"^=== |\b0 (?:errors?|failed|failures)\b|\bno (?:errors?|failures)\b|process completed with exit code|"
    r"\bexit(?:ed)? (?:with )?(?:code|status)\b|🏁|job failed|continue-on-error|error_on|errors?=0|failed=0",
    re.IGNORECASE,
)
_TESTS = re.compile(r"\b(?:tests?|assert\w*|expected|FAILED|--- FAIL|pytest|unittest|jest|spec)\b", re.IGNORECASE)
_BUILD = re.compile(
    r"\b(?:compil\w+|syntax ?error|cannot find (?:module|crate|package)|undefined reference|lint|clippy|ruff|eslint|"
    r"mypy|type ?error|tsc|cargo build|linker|unresolved import|ModuleNotFoundError|ImportError|format)\b",
    re.IGNORECASE,
)
_FAILED_TESTS = re.compile(r"\b(?:[1-9]\d* failed|FAILED |--- FAIL|assert)", re.IGNORECASE)
_PASSING = re.compile(
    r"\b(?:connection (?:reset|refused|timed out)|temporary failure|could not resolve host|50[234] |rate limit|"
    r"TLS handshake|no space left|runner (?:lost|shut)|the operation was canceled|network is unreachable)\b",
    re.IGNORECASE,
)
_VARIES = re.compile(r"\b\d+(?:\.\d+)? ?m?s\b|\b0x[0-9a-f]+|\b[0-9a-f]{7,64}\b|\b\d\d:\d\d:\d\d(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`signal` is the line the failure is known by; `kind` is what it looks like."""

    text: str
    signal: str
    kind: FailureClass


def trim(log: str) -> Excerpt:
    """The first error with what stands around it, and the end. Bounded, whatever the log is."""
    lines = [_plain(line) for line in log[-_LAST_BYTES:].splitlines()]
    lines = [line for line in lines if line.strip()]
    found = [n for n, line in enumerate(lines) if _ERROR.search(line) and not _NOISE.search(line)]
    wanted: dict[int, None] = {}
    for number in found[:8]:
        wanted.update(dict.fromkeys(range(max(0, number - 1), min(len(lines), number + _AROUND))))
    if not found:
        wanted.update(dict.fromkeys(range(max(0, len(lines) - 20), len(lines))))
    kept = sorted(wanted)[:_MOST_LINES]
    shown: list[str] = []
    for place, number in enumerate(kept):
        if place and number != kept[place - 1] + 1:
            shown.append("…")
        shown.append(lines[number])
    text = "\n".join(shown)[:_MOST_CHARS]
    signal = lines[found[0]].strip() if found else (lines[-1].strip() if lines else "")
    return Excerpt(text, signal, _kind(text))


def plain(log: str) -> str:
    """The log without what a forge puts before and around its lines."""
    return "\n".join(_plain(line) for line in log[-4 * _LAST_BYTES :].splitlines())


def faults(log: str) -> frozenset[str]:
    """Every line that tells of an error, without what differs from one run to the next: two logs can be compared."""
    lines = [_plain(line) for line in log[-_LAST_BYTES:].splitlines()]
    told = [line for line in lines if _ERROR.search(line) and not _NOISE.search(line)]
    return frozenset(_VARIES.sub("", line).strip() for line in told[:_MOST_FAULTS])


def _plain(line: str) -> str:
    plain = FULL.apply(line[: 4 * _LONGEST_LINE].encode("utf-8", "replace")).decode("utf-8", "replace")
    return _MARKS.sub("", _PREFIX.sub("", plain)).rstrip()[:_LONGEST_LINE]


def _kind(text: str) -> FailureClass:
    tests = _FAILED_TESTS.search(text)
    if _PASSING.search(text) and not tests:
        return FailureClass.TRANSIENT_INFRA
    if _BUILD.search(text) and not tests:
        return FailureClass.BUILD_ERROR
    return FailureClass.TEST_ERROR if _TESTS.search(text) else FailureClass.BUILD_ERROR
