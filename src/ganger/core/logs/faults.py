"""What is wrong according to a log: failed tests, and errors that name their place, in the formats of known tools.

Two logs of one fault give the same faults: the names of tests, files and reasons are kept; what differs from one
run to the next is left out, such as line numbers, times, temporary names, and the order of tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ganger.core.failures.classes import without_what_varies
from ganger.core.logs.failed_tests import (
    LONGEST_BLOCK,
    MOST_HEADS,
    FailureHead,
    block_of,
    bounded,
    heads_of,
    key_of,
    place_of,
)
from ganger.core.logs.log_lines import read_lines
from ganger.core.logs.places import files, is_foreign, plain_path

_MOST_FAULTS = 500
_LONGEST_WHY = 200
_MOST_FRAMES = 20
_BELOW_AN_ERROR = 8

# --- why a test failed -----------------------------------------------------------------------------------------------

_E_LINE = re.compile(r"E {2,}(?P<text>\S.*)$")
_E_RAISED = re.compile(r"\S+:\d+: (?P<name>[A-Za-z_][\w.]*)$")
_FIRST_FRAME = re.compile(r"(?P<file>[\w./\\+-]+\.\w+):\d+: ?(?:in .*|[A-Za-z_][\w.]*)?$")
_RAISED = re.compile(
    r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Failure|Timeout)\b|[A-Za-z_]\w*(?:\.\w+)+: "
)
_FRAME_OF_PYTHON = re.compile(r"  File \"")
_GO_SAYS = re.compile(r"\s+[\w.-]+\.go:\d+: ?(?P<text>.*)$")
_TESTIFY = re.compile(r"\s+Error: +(?P<text>\S.*)$")
_PANICKED = re.compile(r"thread '.*' (?:\(\d+\) )?panicked at (?:'(?P<old>.*)', )?(?P<file>[^\s:]+):\d+:\d+:?$")
_TAP_ERROR = re.compile(r"\s+error: (?:\|-|'(?P<text>.*)'|(?P<plain>[^|].*))$")
_TAP_NAME = re.compile(r"\s+name: '(?P<text>\w+)'$")
_TAP_KEY = re.compile(r"\s+(?:code|name|expected|actual|operator|stack|duration_ms|failureType|location|type): ?")
_CODE_OF_NODE = re.compile(r"^(\w+) \[\w+\]: ")
_PARENT = re.compile(r"failureType: 'subtestsFailed'|error: '\d+ subtests? failed'")
_DETAIL = re.compile(
    r"\s*(?:Expected|Received|expected|actual|got|want|wanted|left|right|Which is|Actual)\b[^:]{0,20}: *\S"
)
_JS_DIFF = re.compile(r"[-+] (?!Expected|Received)\S")
_AT_JAVA = re.compile(r" at \w+\.(?:java|kt|groovy|scala):\d+$")
_NOT_WHY = re.compile(
    r"\s*(?:at |❯ |\d+ *\||> *\d+ *\||\||[-=_~^*]+$|File \"|Traceback|stack:|---$|\.\.\.$|note:|goroutine |duration_ms"
    r"|failureType|location:|type:|<\S+ at |# |\[gw\d+\]|\(Use )"
)
# The file that a test is in, if its own name does not say it.
_JEST_FILE = re.compile(r"\s*(?:FAIL|PASS)\s+(?:\S+ )?(?P<file>\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\))?$")
_GO_PACKAGE = re.compile(r"(?:FAIL|ok  )\s+(?P<file>[\w./~+-]+)\s+(?:[\d.]+s|\[build failed\]|\(cached\))")
_TAP_PLACE = re.compile(r"\s+location: '(?P<file>.*?):\d+:\d+'")
_SPEC_PLACE = re.compile(r"test at (?P<file>\S.*?):\d+:\d+$")
_VITEST_NAME = re.compile(r"(?:\|[^|]*\| )?(?P<file>\S+\.\w+) > (?P<rest>.*)$")
_SUITES = (
    re.compile(r"\s*● Test suite failed to run$"),
    re.compile(r"\s*FAIL\s+(?P<file>\S+\.\w+) \[ \S+ \]$"),
)
_FAILING_TESTS = re.compile(r"\s*✖ failing tests:$")
_OLD_JUNIT = re.compile(r"^(?P<test>\w+)\((?P<of>[\w.$]+)\)$")
_OLD_UNITTEST = re.compile(r"^(?P<test>\w+) \((?P<of>[\w.]+)\)(?P<rest>.*)$")

# --- errors that name their place ------------------------------------------------------------------------------------

_PATH = r"(?P<file>(?:[A-Za-z]:)?[\w@.+~/\\ -]*?[\w+@-]+(?:\.\w{1,8})?)"
_SEVERE = r"(?P<kind>fatal error|error|Error|ERROR|internal compiler error)"
_ERRORS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:\[ERROR\] +|[ew]: (?:file://)?|vet: )?{_PATH}:(?P<line>\d+)(?::\d+)?(?: -|:) {_SEVERE}"
        r"(?P<code> \w+\d+)?:? (?P<why>\S.*)$",
        rf"{_PATH}\((?P<line>\d+)(?:,\d+)?\) ?: (?:fatal )?{_SEVERE}(?P<code> \w+\d+)?:? (?P<why>\S.*)$",
        rf"\[ERROR\] +{_PATH}:\[(?P<line>\d+),\d+\] (?P<why>\S.*)$",
        rf"e: (?:file://)?{_PATH}:(?: \()?(?P<line>\d+)[:,] ?\d+\)?:? (?P<why>\S.*)$",
        r"(?P<file>[\w@.+~/\\-]+\.\w{1,8}):(?P<line>\d+):\d+: (?P<why>(?:[A-Z]{1,5}\d{2,5}:? |E: )\S.*)$",
        r"(?:vet: )?(?P<file>[\w@.+~/\\-]+\.go):(?P<line>\d+):\d+: (?P<why>\S.*)$",
        r"(?P<file>[\w@.+/-]*(?:[Mm]akefile|\.mk)):(?P<line>\d+): \*\*\* (?P<why>(?!\[).*)$",
        r"(?P<file>[\w@.+/-]+\.(?:sh|bash)): line (?P<line>\d+): (?P<why>\S.*)$",
        r"(?:[Ww]ould reformat:? |unformatted: )(?P<file>\S+\.\w+)$",
        r"Diff in (?P<file>\S+\.rs)(?: at line |:)(?P<line>\d+):?$",
        r"\[warn\] (?P<file>[\w@.+/-]+\.\w+)$",
    )
)
# The place is below: Rust, and linters that write like it.
_HEADED = re.compile(r"(?:error(?:\[(?P<code>\w+)\])?: |(?P<rule>[A-Z]{1,5}\d{2,5}) (?:\[\*\] )?)(?P<why>\S.*)$")
_ARROW = re.compile(r"\s*--> (?P<file>\S.*?):(?P<line>\d+):\d+$")
# Below the name of its file.
_UNDER_FILE = re.compile(r"\s+(?P<line>\d+):\d+\s+error\s+(?P<why>\S.*)$")
_SYMBOL = re.compile(r"(?:\[ERROR\] )? +(?:symbol: +|\| +\^+ (?=expected))(?P<text>\S.*)$")
_UNDEFINED = re.compile(
    r"(?:(?:.*: )?(?P<file>[\w./+-]+\.\w+):|.*:)?(?:\(\.\w+[^)]*\): |ld: )"
    r"(?P<why>(?:undefined reference|multiple definition).*)$"
)
_NO_RULE = re.compile(r"make(?:\[\d+\])?: \*\*\* (?P<why>No rule to make target .*?)\.?  Stop\.$")
_NO_ERROR = re.compile(r"\b(?:warning|note|info|remark|help)\b:|0 errors?\b")
_TRACEBACK = "Traceback (most recent call last):"
_UNCAUGHT = re.compile(r"(?:Uncaught )?(?P<why>[A-Z]\w*(?:Error|Exception)(?: \[\w+\])?: \S.*|panic: \S.*)$")
_STOPPED = re.compile(
    r"make(?:\[\d+\])?: \*\*\* \[(?:(?P<file>[^\s:\]]+):(?P<line>\d+): )?(?P<target>[^\]]+)\] (?P<how>Error \d+)"
)
# Parts of test names that differ from run to run.
_IN_NAMES = re.compile(r"0x[0-9a-f]{4,}|\(line \d+\)|(?<![\w.])/tmp/[^\s\]]+|\(retry x?\d+\)| \(re-run \d+\)")
_OF_LINTERS = re.compile(r"^(\w+) \[\*\] |\s{2,}\[[\w-]+\]$|\[\*\] ")


@dataclass(frozen=True, slots=True)
class LogFault:
    """A failed test, or an error and its place. `file` is where it belongs: the test's file, or the error's.

    `frames` are the project's files that its lines name, the innermost first; `loads`: nothing of that file could run;
    `raised`: an error that ended a program, or was only printed by one.
    """

    name: str
    why: str
    file: str = ""
    place: str = ""
    is_test: bool = False
    loads: bool = False
    raised: bool = False
    frames: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """As people see it."""
        name = self._full_name if self.is_test else (self.place or self.name)
        return f"{name}: {self.why}" if name and self.why else name or self.why

    @property
    def key(self) -> str:
        """The same for one fault in every run that reports it."""
        return f"{_IN_NAMES.sub('<v>', self._full_name)}: {_stable(self.why)}"

    @property
    def _full_name(self) -> str:
        if not self.is_test:
            return self.name
        has_file = not self.file or self.name.startswith(self.file)
        return self.name if has_file else f"{self.file}::{self.name}"


@dataclass(frozen=True, slots=True)
class LogReading:
    """The parsed lines of a log, and the faults in it. `stops`: make's own words about a failed recipe, which matter
    only if nothing else is known."""

    lines: tuple[str, ...]
    faults: tuple[LogFault, ...] = ()
    stops: tuple[LogFault, ...] = ()


def read_log(log: str, root: str = "") -> LogReading:
    """Bounded in time and memory, whatever the log holds."""
    lines = bounded(read_lines(log, root))
    tests, taken = _tests(lines)
    errors = list(_errors(lines, taken))
    if tests or any(error.place for error in errors):
        # If failures are known, a traceback beside them may be one that a passing test caught.
        errors = [error for error in errors if not error.raised]
    stops = [
        LogFault(f"{found['file'] or 'make'}: {found['target']}", found["how"], found["file"] or "")
        for line in lines
        if (found := _STOPPED.match(line)) is not None
    ]
    return LogReading(tuple(lines), _each_once([*tests, *errors]), _each_once(stops))


def _each_once(faults: Iterable[LogFault]) -> tuple[LogFault, ...]:
    found: dict[str, LogFault] = {}
    for fault in faults:
        found.setdefault(fault.key, fault)
    # If there are too many, not the first ones: tests come in any order.
    kept = frozenset(sorted(found)[:_MOST_FAULTS])
    return tuple(fault for key, fault in found.items() if key in kept)


def _stable(text: str) -> str:
    return without_what_varies(_OF_LINTERS.sub(lambda found: f"{found[1]} " if found[1] else "", text))


# --- tests -----------------------------------------------------------------------------------------------------------


def _tests(lines: Sequence[str]) -> tuple[list[LogFault], set[int]]:
    """The failed tests, and the lines about them."""
    heads = list(heads_of(lines))
    starts = frozenset(head.at for head in heads if head.told)
    # A runner that lists all failures again at the end has reported suites before.
    again = next((at for at, line in enumerate(lines) if _FAILING_TESTS.match(line)), -1)
    found: list[LogFault] = []
    taken: set[int] = set()
    for number, head in enumerate(heads):
        block = block_of(lines, starts, head) if head.told and number < MOST_HEADS else [head.at]
        taken.update(block)
        if "✖" in lines[head.at] and head.at < again:
            continue
        if (fault := _test(lines, head, block)) is not None:
            found.append(fault)
    suites = list(_unloaded(lines, taken))
    return [*_merged(found), *suites], taken


def _test(lines: Sequence[str], head: FailureHead, block: Sequence[int]) -> LogFault | None:
    told = [lines[at] for at in block if at != head.at]
    if any(_PARENT.search(line) for line in told):
        return None
    name, file = _named(lines, head, told)
    why = _why(told) or head.why
    frames = [one for line in told for one in files(line)]
    place = place_of([*told], name) if told else ""
    loads = "ERROR collecting" in lines[head.at] or "_FailedTest" in name
    return LogFault(
        name, why[:_LONGEST_WHY], file, place, is_test=True, loads=loads, frames=tuple(reversed(frames[-_MOST_FRAMES:]))
    )


def _named(lines: Sequence[str], head: FailureHead, told: Sequence[str]) -> tuple[str, str]:
    """Its full name, and the file it is in."""
    name = head.name
    if (vitest := _VITEST_NAME.match(name)) is not None:
        return f"{vitest['file']} > {vitest['rest']}", vitest["file"]
    if "::" in name and (file := name.partition("::")[0]).endswith(".py"):
        return name, file
    if (old := _OLD_JUNIT.match(name)) is not None:
        return f"{old['of']}.{old['test']}", ""
    if (unit := _OLD_UNITTEST.match(name)) is not None:
        return f"{unit['of'].removesuffix('.' + unit['test'])}.{unit['test']}{unit['rest']}", ""
    if "-- FAIL:" in lines[head.at]:
        return name, _below(lines, head.at, _GO_PACKAGE)
    if "●" in lines[head.at]:
        return name, _above(lines, head.at, _JEST_FILE)
    return name, next((file for line in told if (file := _file_told(line))), _spec_file(lines, head.at))


def _file_told(line: str) -> str:
    match = _TAP_PLACE.match(line) or _PANICKED.match(line) or _FIRST_FRAME.match(line)
    return plain_path(match["file"]) if match is not None and not is_foreign(line) else ""


def _spec_file(lines: Sequence[str], at: int) -> str:
    match = _SPEC_PLACE.match(lines[at - 1]) if at else None
    return plain_path(match["file"]) if match is not None else ""


def _above(lines: Sequence[str], at: int, pattern: re.Pattern[str]) -> str:
    for line in reversed(lines[max(0, at - 10 * LONGEST_BLOCK) : at]):
        if (match := pattern.match(line)) is not None:
            return plain_path(match["file"])
    return ""


def _below(lines: Sequence[str], at: int, pattern: re.Pattern[str]) -> str:
    for line in lines[at + 1 : at + 10 * LONGEST_BLOCK]:
        if (match := pattern.match(line)) is not None:
            return match["file"]
    return ""


def _unloaded(lines: Sequence[str], taken: set[int]) -> Iterator[LogFault]:
    """Test files that could not be loaded."""
    for at, line in enumerate(lines):
        match = next((found for pattern in _SUITES if (found := pattern.match(line))), None)
        if match is None:
            continue
        file = match.groupdict().get("file") or _above(lines, at, _JEST_FILE)
        block = range(at + 1, min(len(lines), at + 30))
        taken.update(block)
        told = [lines[number] for number in block]
        frames = tuple(one for line in told for one in files(line))
        why = next((line.strip() for line in told if line.strip() and not _NOT_WHY.match(line)), "")
        yield LogFault(file, why[:_LONGEST_WHY], file, "", is_test=True, loads=True, frames=frames[:_MOST_FRAMES])


def _why(told: Sequence[str]) -> str:
    """The reason, in the runners' formats; for others the first line that is neither a frame nor code."""
    for reader in (_why_of_pytest, _why_of_python, _why_of_go, _why_of_rust, _why_of_tap):
        if why := reader(told):
            return why
    first = next((at for at, line in enumerate(told) if line.strip() and not _NOT_WHY.match(line)), -1)
    if first < 0:
        return ""
    text = _CODE_OF_NODE.sub(r"\1: ", _AT_JAVA.sub("", told[first].strip()))
    if text.endswith(":") and (more := _next_line(told, first)):
        return f"{text} {more}"
    details = [line.strip() for line in told[first + 1 :] if _DETAIL.match(line)][:2]
    return "; ".join([text, *details])


def _next_line(told: Sequence[str], at: int) -> str:
    return next((line.strip() for line in told[at + 1 : at + 4] if line.strip() and not _NOT_WHY.match(line)), "")


def _why_of_pytest(told: Sequence[str]) -> str:
    """The first line of the last error, with the name of the exception."""
    errors = [at for at, line in enumerate(told) if _E_LINE.match(line)]
    if not errors:
        return ""
    first = errors[-1]
    while first - 1 in errors or (first and told[first - 1].strip() == "E"):
        first -= 1
    match = next(found for line in told[first:] if (found := _E_LINE.match(line)))
    raised = next((found["name"] for line in told[errors[-1] :] if (found := _E_RAISED.match(line))), "")
    text = match["text"].strip()
    return (
        text if not raised or text.startswith(raised.rpartition(".")[2]) or _RAISED.match(text) else f"{raised}: {text}"
    )


def _why_of_python(told: Sequence[str]) -> str:
    frames = [at for at, line in enumerate(told) if _FRAME_OF_PYTHON.match(line)]
    if not frames:
        return ""
    after = (line for line in told[frames[-1] + 1 :] if line and not line[0].isspace())
    return next(after, "").strip()


def _why_of_go(told: Sequence[str]) -> str:
    for at, line in enumerate(told):
        if (panic := re.match(r"\s*panic: (?P<text>.*?)(?: \[recovered\].*)?$", line)) is not None:
            return f"panic: {panic['text']}"
        if (match := _GO_SAYS.match(line)) is not None:
            text = match["text"].strip()
            said = next((found["text"] for more in told[at:] if (found := _TESTIFY.match(more))), "")
            details = [more.strip() for more in told[at:] if _DETAIL.match(more)][:2] if said else []
            return "; ".join([said, *details]) if said and not text else text
    return ""


def _why_of_rust(told: Sequence[str]) -> str:
    for at, line in enumerate(told):
        if (match := _PANICKED.match(line)) is not None:
            details = [more.strip() for more in told[at + 1 : at + 5] if _DETAIL.match(more)][:2]
            return "; ".join([match["old"] or _next_line(told, at) or "panicked", *details])
    return ""


def _why_of_tap(told: Sequence[str]) -> str:
    for at, line in enumerate(told):
        if (match := _TAP_ERROR.match(line)) is None:
            continue
        name = next((found["text"] for more in told[at:] if (found := _TAP_NAME.match(more))), "")
        text = match["text"] or match["plain"] or ""
        if not text:
            inner = []
            for more in told[at + 1 : at + 6]:
                if _TAP_KEY.match(more):
                    break
                inner.append(more.strip())
            kept = [one for one in inner if one]
            text = f"{kept[0]} {kept[1]}" if len(kept) > 1 and kept[0].endswith(":") else (kept[0] if kept else "")
        return f"{name}: {text}" if name else text
    return ""


def _merged(found: Sequence[LogFault]) -> list[LogFault]:
    """Each test once: an entry without its file, class or reason is the same as one that has them."""
    listed: dict[str, set[str]] = {}
    for fault in found:
        if "::" in fault.name:
            listed.setdefault(key_of(fault.name), set()).add(fault.file)
    found = [_where_listed(fault, listed.get(key_of(fault.name), set())) for fault in found]
    groups: dict[tuple[str, str], LogFault] = {}
    by_name: dict[str, tuple[str, str]] = {}
    for fault in sorted(found, key=lambda one: (not one.file, not one.why)):
        name = key_of(fault.name)
        same = (fault.file, name) if fault.file else by_name.get(name, ("", name))
        by_name.setdefault(name, same)
        known = groups.get(same)
        if known is None:
            groups[same] = fault
            continue
        full = max(known.name, fault.name, key=lambda text: ("::" in text, len(text)))
        groups[same] = LogFault(
            full,
            known.why or fault.why,
            known.file,
            known.place or fault.place,
            is_test=True,
            loads=known.loads or fault.loads,
            frames=known.frames or fault.frames,
        )
    shorter = {name[at + 1 :] for _, name in groups for at, char in enumerate(name) if char == "."}
    # A suite that only contains failed tests adds nothing.
    holders = {name[:at] for _, name in groups for at, char in enumerate(name) if char == "/"}
    order = {key_of(fault.name): number for number, fault in reversed(list(enumerate(found)))}
    kept = [
        (order.get(name, 0), fault)
        for (file, name), fault in groups.items()
        if not (name in shorter and not file) and not (name in holders and not fault.why)
    ]
    return [fault for _, fault in sorted(kept, key=lambda one: one[0])]


def _where_listed(fault: LogFault, known: set[str]) -> LogFault:
    """In the file that the runner lists it in: an exception in a fixture names the fixture's file first."""
    if not known or fault.file in known:
        return fault
    return replace(fault, file=min(known) if len(known) == 1 else "")


# --- errors ----------------------------------------------------------------------------------------------------------


def _errors(lines: Sequence[str], taken: set[int]) -> Iterator[LogFault]:
    """Errors of compilers, linters, linkers and scripts, outside the output of tests."""
    above = ""
    for at, line in enumerate(lines):
        if at in taken or not line:
            continue
        if not line[0].isspace():
            above = line
        if _NO_ERROR.search(line) or is_foreign(line):
            continue
        fault = _error(lines, at, above)
        if fault is not None:
            yield fault


def _error(lines: Sequence[str], at: int, above: str) -> LogFault | None:
    line = lines[at]
    if line == _TRACEBACK:
        return _traceback(lines, at)
    if (match := _HEADED.match(line)) is not None:
        arrow = next((found for more in lines[at + 1 : at + 3] if (found := _ARROW.match(more))), None)
        if arrow is not None:
            code = match["rule"] or (match["code"] and f"error[{match['code']}]:") or "error:"
            return _located(arrow["file"], arrow["line"], f"{code} {match['why']}{_symbol(lines, at)}")
    if (match := _UNDER_FILE.match(line)) is not None:
        return (
            _located(above, match["line"], f"error: {re.sub(r'  +', ' ', match['why'])}")
            if "/" in above or "." in above
            else None
        )
    for pattern in _ERRORS:
        if (match := pattern.match(line)) is not None:
            parts = match.groupdict()
            kind = f"{parts['kind']}{parts.get('code') or ''}: " if parts.get("kind") else ""
            why = parts.get("why") or "is not formatted"
            return _located(match["file"], parts.get("line") or "", f"{kind}{why}{_symbol(lines, at)}")
    if (match := _UNDEFINED.match(line)) is not None:
        file = plain_path(match["file"] or "")
        return LogFault(file, match["why"], file)
    if (match := _NO_RULE.match(line)) is not None:
        return LogFault("make", match["why"])
    if (match := _PANICKED.match(line)) is not None and not is_foreign(line):
        file = match["file"]
        return LogFault(file, _why_of_rust(lines[at : at + 6])[:_LONGEST_WHY], file, raised=True, frames=(file,))
    if (match := _UNCAUGHT.match(line)) is not None:
        frames = [one for more in lines[at + 1 : at + 20] for one in files(more)]
        why = match["why"][:_LONGEST_WHY]
        return LogFault(frames[0], why, frames[0], raised=True, frames=tuple(frames)) if frames else None
    return None


def _symbol(lines: Sequence[str], at: int) -> str:
    """What a compiler prints below an error with a general message, such as the missing symbol."""
    for line in lines[at + 1 : at + _BELOW_AN_ERROR]:
        if not line or not (line[0].isspace() or line[0].isdigit() or line.startswith("[ERROR]  ")):
            break
        if (match := _SYMBOL.match(line)) is not None:
            return f": {match['text']}"
    return ""


def _located(file: str, line: str, why: str) -> LogFault:
    path = plain_path(file.strip())
    return LogFault(path, why.strip()[:_LONGEST_WHY], path, f"{path}:{line}" if line else path, frames=(path,))


def _traceback(lines: Sequence[str], at: int) -> LogFault | None:
    """For a Python program that ended with an error."""
    block = lines[at + 1 : at + LONGEST_BLOCK]
    end = next((n for n, line in enumerate(block) if line and not line[0].isspace()), -1)
    if end < 0 or not _RAISED.match(block[end]):
        return None
    frames = [one for line in block[:end] for one in files(line)]
    name = frames[-1] if frames else ""
    return LogFault(name, block[end].strip()[:_LONGEST_WHY], name, raised=True, frames=tuple(reversed(frames)))
