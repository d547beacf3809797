"""Which tests failed according to a log, in the format of every known runner, and the lines about each.

Known runners are parsed by their own formats. Of a long log, the beginning and the end are read, and between them
the lines that mention trouble.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ganger.core.logs.log_lines import VARIES
from ganger.core.logs.places import PLACE, is_foreign, places

_BEGINNING, _END, _BETWEEN = 1_000, 4_000, 1_000
# Very long lines are not parsed one by one.
_MOST_LOOKED_AT = 40_000
MOST_HEADS = 400
LONGEST_BLOCK = 120
MOST_ALIKE = 50
_LONGEST_NAME = 200

# Patterns that name a failed test. `told`: the lines below it say why it failed; the others only list it.
_TOLD = tuple(
    re.compile(pattern)
    for pattern in (
        r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{3,}$",
        r"(?:FAIL|ERROR): (?P<name>[\w.]+ \([\w.<>]+\).*|Doctest: \S+)$",
        r"\s*not ok \d+ -? ?(?P<name>[^#]+?)(?: # (?!TODO|SKIP|todo|skip).*)?$",
        r"\s{0,4}● (?P<name>\S.*)$",
        r"\s*FAIL\s+(?P<name>\S+\.\w+ > \S.*)$",
        r"\s*--- FAIL: (?P<name>\S+) \(",
        r"---- (?P<name>\S+) std(?:out|err) ----$",
        r"\s*\d+/\d+ Test +#\d+: (?P<name>\S+) \.*.{0,40}\*\*\*",
        r"\[ RUN      \] (?P<name>\S+)$",
        r"\s*✖ (?P<name>(?!failing tests:)\S.*?) \(\d[\d.]*m?s\)$",
        r"(?:\[ERROR\] )?(?P<name>[\w.$]+ > \S.*) FAILED$",
        r"\s*Failed (?P<name>\S.*) \[[<\d].*\]$",
        r"\(fail\) (?P<name>\S.*?)(?: \[[\d.]+m?s\])?$",
        r"\[ERROR\] (?P<name>[\w$.]+(?:\([\w$.]+\))?(?:\[\d+\])?) (?:--| ) ?Time elapsed: [\d.]+ s(?:ec)? +"
        r"<<< (?:FAILURE|ERROR)!$",
        r"=== FAIL: \S+ (?P<name>\S+) \(",
    )
)
_LISTED = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:\[gw\d+\] \[ *\d+%\] )?(?:FAILED|ERROR) (?P<name>\S+?(?:::\S.*?|\.py))(?: - (?P<why>.*))?$",
        r"test (?P<name>\S+)(?: - .*)? \.\.\. FAILED$",
        r"\s+\d+ - (?P<name>\S+) \((?:Failed|Timeout|Subprocess|SEGFAULT|Exit|Not Run|ILLEGAL|NUMERICAL|OTHER).*\)",
        r"\[  FAILED  \] (?P<name>[\w./]+)(?: \(\d+ ms\))?$",
        r"\s*[✕✗✘×] (?P<name>\S.*?)(?: \(?\d[\d.]*\s?m?s\)?)?$",
        r"rspec \S+:\d+ # (?P<name>\S.*)$",
        r"\[ERROR\]\s+(?:Run \d+: )?(?P<name>[\w$]+(?:\.[\w$]+)+(?=:\d+)):\d+(?:->[\w$.:<>()-]+)*(?: »)? ?(?P<why>.*)$",
    )
)
# Numbered, as mocha, rspec, phpunit, ExUnit and Playwright do: used only if the log announces such a list.
_NUMBERED = re.compile(r"\s{0,6}\d{1,4}\) (?P<name>\S.*?)(?: ─+|:)?$")
_LISTS_NUMBERED = re.compile(
    r"\s*\d+ failing\b|Failures:$|There (?:was|were) \d+ (?:failures?|errors?)|\d+ tests?, \d+ failures?$|  \d+ failed$"
)
_NO_TEST = re.compile(r"Console$|Test suite failed to run$|Cannot log after|\d+ (?:tests?|passed|failed|problems?)\b")
_PASSED_GTEST = re.compile(r"\[       OK \]")
_BLOCK_ENDS = re.compile(
    r"=+ .* =+$|={60,}$|failures:$|Ran \d+ tests?|Test Suites:|Test Files |# tests \d|ok \d+ |\s*Start +\d+: "
    r"|\d+% tests passed"
    r"|FAIL\t|FAIL$|ok  \t|=== RUN |test result: |#\s*Subtest: |⎯{10,}|\[-{8,}\]|-{60,}$"
)
_RUN = "=== RUN   "
# An error with its place on the same line, or the first line of an error that has its place below.
LOCATED = re.compile(
    r"\s*(?:\w+: )?\S+?(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))(?::| -)\s*(?:fatal )?(?:error\b|[A-Z]{1,4}\d{2,5}\b"
    r"|E:|undefined|cannot|expected)"
    r"|(?:error|ERROR)(?:\[\w+\])?: (?!could not compile|aborting|test failed)|\s+\d+:\d+\s+error\s"
    r"|\./\S+\.go:\d+:\d+: "
    r"|[A-Z]{1,4}\d{2,4} (?:\[\*\] )?\S"
)
BELOW = re.compile(r"\s*(?:-->|\||\d+ [|+-]|= |\^|help:|note:)|\s{4,}\S")

STRONG = re.compile(
    r"\b(?:errors?|fatal|fail(?:s|ed|ure|ures|ing)?|panic\w*|exception|traceback|assert\w*|abort\w*|segfault"
    r"|segmentation"
    r"|mismatch\w*|violat\w+|diverg\w+|differs?|broken|unexpected(?:ly)?|FAIL|NG|KO)\b|[✗✘✕✖❌]|\bnot ok\b|!=|≠"
    r"|\bexpected\b.*\b(?:got|but|was|received|actual|found)\b|\b(?:did|does|do) not\b",
    re.IGNORECASE,
)
WEAK = re.compile(
    r"\b(?:cannot|can't|could not|couldn't|unable|missing|undefined|invalid|denied|refused|wrong|bad|should"
    r"|must|expected|actual"
    r"|rejected|illegal|timed? ?out|killed|corrupt\w*|stale|unknown|unresolved|warning)\b|not found|no such"
    r"|\bnot (?:hold|equal|match)",
    re.IGNORECASE,
)
HARMLESS = re.compile(
    r"\b(?:0|no|zero|without) (?:\w+ )?(?:errors?|fail\w*|warnings?|problems?|issues?)\b|\b(?:errors?|failed"
    r"|failures)[=:] ?0\b"
    r"|\bexpected to (?:fail|pass)\b|\bxfail(?:ed)?\b|\b(?:pass(?:ed|es)?|ok|success\w*|succeeded|PASS)\b\W*$"
    r"|^\s*(?:ok|PASS|PASSED|✓|✔|√)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FailedTest:
    """`place` is a file and a line, where the log names them."""

    name: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class FailureHead:
    """A line that names a failed test."""

    at: int
    name: str
    told: bool
    why: str = ""


def bounded(lines: Sequence[str]) -> list[str]:
    last = len(lines) - _END
    if last <= _BEGINNING + _BETWEEN:
        return list(lines)
    wanted: dict[int, None] = {}
    shapes = Counter(map(shape, lines[_BEGINNING:last]))
    for at in range(_BEGINNING, last):
        if shapes[shape(lines[at])] <= MOST_ALIKE and _tells(lines[at]):
            wanted |= dict.fromkeys(range(at - 2, min(last, at + 9)))
            if len(wanted) > _BETWEEN:
                break
    return [*lines[:_BEGINNING], *(lines[at] for at in sorted(wanted) if at >= _BEGINNING), *lines[last:]]


def _tells(line: str) -> bool:
    if LOCATED.match(line) or any(pattern.match(line) for pattern in (*_TOLD, *_LISTED)):
        return True
    return STRONG.search(line) is not None and not HARMLESS.search(line)


def heads_of(lines: Sequence[str]) -> Iterator[FailureHead]:
    numbered = any(_LISTS_NUMBERED.match(line) for line in lines)
    for at, line in enumerate(lines):
        for told, patterns in ((True, (*_TOLD, _NUMBERED) if numbered else _TOLD), (False, _LISTED)):
            match = next((m for pattern in patterns if (m := pattern.match(line))), None)
            if match is None:
                continue
            name = _whole(lines, at, match["name"].strip()) if match.re is _NUMBERED else match["name"].strip()
            if not _NO_TEST.search(name) and not (line.startswith("[ RUN") and _passes(lines, at, name)):
                why = match["why"] or "" if "why" in match.re.groupindex else ""
                yield FailureHead(at, name[:_LONGEST_NAME], told, why)
            break


def _whole(lines: Sequence[str], at: int, name: str) -> str:
    """A name that spans several lines, the last of which ends in a colon."""
    parts = [name]
    for line in lines[at + 1 : at + 5] if not lines[at].endswith(":") else ():
        if not line.strip():
            break
        parts.append(line.strip().rstrip(":"))
        if line.endswith(":"):
            return " > ".join(parts)
    return name


def _passes(lines: Sequence[str], at: int, name: str) -> bool:
    """A test that is announced before its result is known."""
    for line in lines[at + 1 : at + LONGEST_BLOCK]:
        if line.startswith("[  FAILED  ]") and name in line:
            return False
        if _PASSED_GTEST.match(line) or line.startswith("[ RUN"):
            return True
    return True


def first_of_each(heads: Iterable[FailureHead]) -> list[FailureHead]:
    found: dict[str, FailureHead] = {}
    for head in heads:
        key = key_of(head.name)
        if key not in found or (head.told and not found[key].told):
            found[key] = head
    return sorted(found.values(), key=lambda head: head.at)


def key_of(name: str) -> str:
    """What two spellings of one test's name have in common."""
    bare = re.sub(r"^\S+\.\w{1,4}(?:::| > )", "", name)
    bare = re.sub(r"^(\w+) \((?:[\w.]+\.)?(\w+)\.\1\)$", r"\2.\1", bare)
    return re.sub(r"::| > | › ", ".", bare).strip()


def tests_of(lines: Sequence[str], heads: Sequence[FailureHead], starts: frozenset[int]) -> tuple[FailedTest, ...]:
    """Each failed test once, by its most complete name."""
    reasons = reasons_of(lines) if any(head.why for head in heads) else {}
    found: dict[str, FailedTest] = {}
    for number, head in enumerate(heads):
        key = key_of(head.name)
        known = found.get(key, FailedTest(""))
        place = known.place
        if not place and number < MOST_HEADS:
            block = [lines[at] for at in block_of(lines, starts, head)] if head.told else [head.name]
            place = place_of([*block, *reasons.get(head.why, ())], head.name)
        name = max(known.name, head.name, key=lambda text: ("::" in text, len(text)))
        found[key] = FailedTest(name, place)
    # A test that a runner lists by its last name only is the same test.
    shorter = {key[at + 1 :] for key in found for at, char in enumerate(key) if char == "."}
    return tuple(test for key, test in found.items() if key not in shorter)


def reasons_of(lines: Sequence[str]) -> dict[str, list[str]]:
    """Lines that consist of a place and a reason, by that reason."""
    found: dict[str, list[str]] = {}
    for line in lines:
        place, _, why = line.partition(": ")
        if why and why not in found and PLACE.fullmatch(place):
            found[why] = [line]
    return found


def block_of(lines: Sequence[str], starts: frozenset[int], head: FailureHead) -> list[int]:
    """The lines about one failed test, its name first; `starts`: where others begin."""
    found = [head.at]
    for at in range(head.at + 1, min(len(lines), head.at + LONGEST_BLOCK)):
        if at in starts or (_BLOCK_ENDS.match(lines[at]) and not (at <= head.at + 2 and is_rule(lines[at]))):
            break
        found.append(at)
    if not any(lines[at].strip() for at in found[1:]):
        found = [*_before(lines, head), *found]
    return found


def is_rule(line: str) -> bool:
    return re.fullmatch(r"[\s_=~^-]+", line) is not None


def _before(lines: Sequence[str], head: FailureHead) -> list[int]:
    """For a runner that says why before it says that a test failed."""
    for at in range(head.at - 1, max(-1, head.at - 2 * LONGEST_BLOCK), -1):
        if lines[at] == f"{_RUN}{head.name}":
            ends = (n for n in range(at + 1, head.at) if lines[n].startswith(_RUN) or "--- " in lines[n])
            return list(range(at + 1, next(ends, head.at)))
    return []


def place_of(block: Sequence[str], name: str) -> str:
    """Where a test failed: in Python the last line of the test itself, elsewhere the first named place."""
    found = [place for line in block for place in places(line)]
    if not found:
        return ""
    if not any(".py" in place for place in found):
        return found[0]
    own = name.partition("::")[0]
    tests = [place for place in found if place.startswith(f"{own}:") or "test" in place.rpartition("/")[2]]
    return (tests or found)[-1]


def located(lines: Sequence[str], taken: set[int]) -> list[list[int]]:
    """Errors of compilers and linters, each with the lines below it."""
    found: list[list[int]] = []
    for at, line in enumerate(lines):
        if at in taken or not line.strip() or not LOCATED.match(line) or is_foreign(line):
            continue
        block = [at]
        if re.match(r"\s+\d+:\d+\s", line):
            block = [*file_above(lines, at), at]
        for below in range(at + 1, min(len(lines), at + 9)):
            if not BELOW.match(lines[below]) or LOCATED.match(lines[below]):
                break
            block.append(below)
        found.append(block)
    return found


def file_above(lines: Sequence[str], at: int) -> list[int]:
    """The file under which a list of its errors appears."""
    for above in range(at - 1, max(-1, at - 50), -1):
        if lines[above] and not lines[above][0].isspace():
            return [above]
    return []


def shape(line: str) -> str:
    return " ".join(VARIES.sub("#", line).split()[:3])
