"""The telling line of an output: what a person looks at first, without colours, bars and summaries.

`first_error` is for checks, whose output names its first fault; `last_words` is for a program that ended unexpectedly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from ganger.core.logs.faults import read_log

TAIL_BYTES = 64 * 1024
_MAX_SHOWN = 300
_MAX_LINE = 2000
_LAST_LINES = 60
ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)?|[ -/]*+[0-~]?)")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_LINE_BREAK = re.compile(r"[\r\n]+")
_EXCEPTION = re.compile(r"(?:Uncaught )?[\w.$]*(?:Error|Exception|Failure|SystemExit|Interrupt|Expired)(?= \[|:|\(|$)")
_PANIC = re.compile(r"panic: |thread '.{0,80}' panicked|Exception in thread |Caused by: ")
_PYTEST_LINE = re.compile(r"E {2,}(?=\S)")
_LOCATED = re.compile(r"[^\s:()]++(?::\d+|\(\d+)")
_ERROR_WORD = re.compile(r"\berror\b", re.IGNORECASE)
_COMPILER = re.compile(r"error(?:\[\w+\])?: |[^\s:]+\.(?:go|py|js|jsx|ts|tsx):\d+(?::\d+)?: ")
_TEST_FAILED = re.compile(r"--- FAIL: |FAIL: |ERROR: |FAILED |not ok \d|[\u2715\u2717\u00d7\u25cf] ")
_TROUBLE = re.compile(
    r"\b(?:error|fatal|fail|failed|failure|failing|panic|cannot|can't|exception|undefined|denied)\b|not found|no such",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"FAILED \(|FAIL$|FAIL\s+\S+\s+[\d.]+s$|make(?:\[\d+\])?: \*\*\*|npm (?:ERR!|error)"
    r"|error: (?:aborting|could not compile|test failed, to rerun)"
    r"|=+ .* =+$|Found \d+ error|\d+ (?:errors?|failed|failing|problems?)\b"
    r"|Tests:\s|BUILD FAILED\b|FAILURE: Build failed|\[\*\] \d+ fixable"
    r"|error: (?:\|-|'\d+ subtests? failed')$|(?:collect2|clang): error: (?:ld|linker) "
    r"|\[ERROR\] (?:\[Help|->|To see|Re-run|For more|Failed to execute goal|Please refer|COMPILATION ERROR)"
    r"|Test Suites: |. Test suite failed to run$"
)
# A percentage beside a bar, or a spinner before its word: what is redrawn again and again says nothing about the end.
_BAR = re.compile(
    r"(?:\d{1,3} ?%.*[#=█▉▊▋▌▍▎▏░▒▓━╸■□●○]{2}|[#=█░▒▓━■□>.-]{5,}.*\d{1,3} ?%)|^[\u2800-\u28ff◐◓◑◒]|^\d{1,3} ?%$"
)
_WORD = re.compile(r"[^\W_]")
_TOLD_IN = ("error", "message", "detail", "reason", "result", "text")


def first_error(tail: str) -> str:
    """The most telling line of a log's tail, the same for the same fault. In this order: an exception, a compiler's
    message, a failed test with its reason in its runner's format, any line that mentions trouble, and otherwise the
    last line."""
    lines = clean_lines(tail)
    telling = [line for line in lines if not _SUMMARY.match(line)]
    for choose in (_last_exception, _first_pytest_line, _first_located):
        line = choose(telling)
        if line is not None:
            return line[:_MAX_SHOWN]
    if told := next((fault.shown for fault in read_log(tail[-TAIL_BYTES:]).faults if fault.why), ""):
        return told[:_MAX_SHOWN]
    for choose in (_first_failed_test, _last_trouble):
        line = choose(telling)
        if line is not None:
            return line[:_MAX_SHOWN]
    return lines[-1][:_MAX_SHOWN] if lines else ""


def last_words(tail: str) -> str:
    """What a program said before it ended without a result: the exception, else the last line that mentions trouble,
    else its last line; never a bar, a frame, or what came long before."""
    lines = [told for line in clean_lines(tail)[-_LAST_LINES:] if (told := _told(line))]
    for choose in (_last_exception, _last_trouble):
        line = choose([line for line in lines if not _SUMMARY.match(line)])
        if line is not None:
            return line[:_MAX_SHOWN]
    return lines[-1][:_MAX_SHOWN] if lines else ""


def clean_lines(tail: str) -> list[str]:
    """The lines of a log's tail as a person reads them: no colours, control characters or blank lines."""
    clean = ESCAPE_SEQUENCE.sub("", tail[-TAIL_BYTES:])
    return [text for raw in _LINE_BREAK.split(clean) if (text := CONTROL.sub("", raw[:_MAX_LINE]).strip())]


def _told(line: str) -> str:
    """The line, or the words in it if a program prints events; nothing if the program only draws."""
    if line.startswith("{"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return line
        return next(_words_in(found), "")
    return line if _WORD.search(line) and not _BAR.search(line) else ""


def _words_in(found: object, depth: int = 4) -> Iterator[str]:
    if isinstance(found, str) and _WORD.search(found):
        yield " ".join(found.split())
    elif isinstance(found, dict) and depth:
        for name in _TOLD_IN:
            yield from _words_in(found.get(name), depth - 1)


def _last_exception(lines: Sequence[str]) -> str | None:
    bare = (_PYTEST_LINE.sub("", line, count=1) for line in reversed(lines))
    return next((line for line in bare if _EXCEPTION.match(line) or _PANIC.match(line)), None)


def _first_pytest_line(lines: Sequence[str]) -> str | None:
    return next((_PYTEST_LINE.sub("", line, count=1) for line in lines if _PYTEST_LINE.match(line)), None)


def _first_located(lines: Sequence[str]) -> str | None:
    """The first, because a compiler's later complaints often follow from the first."""
    return next((line for line in lines if _COMPILER.match(line) or _is_located_error(line)), None)


def _is_located_error(line: str) -> bool:
    return _LOCATED.match(line) is not None and _ERROR_WORD.search(line) is not None


def _first_failed_test(lines: Sequence[str]) -> str | None:
    return next((line for line in lines if _TEST_FAILED.match(line)), None)


def _last_trouble(lines: Sequence[str]) -> str | None:
    return next((line for line in reversed(lines) if _TROUBLE.search(line)), None)
