"""The lines of a log as a person reads them: no terminal codes, and nothing of what forges add around them.

Forgejo, Gitea, GitHub and GitLab put a timestamp before each line, and their own marks around groups of lines; a
progress bar writes one line many times. The checkout's place differs from one runner to the next and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ganger.contracts.reading.terminal import FULL

# Of a long log, the beginning and the end are read.
FIRST_CHARS, LAST_CHARS = 256 * 1024, 2 * 1024 * 1024
LONGEST_LINE = 300
_CUT_AT = 4 * LONGEST_LINE
_MOST_REWRITES = 50

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", re.IGNORECASE)
# A timestamp; GitLab adds the number of its stream, and a plus if the line continues.
_MOMENT = re.compile(
    r"\ufeff?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? ?(?:[0-9a-f]{2}[OE](\+| |$))?"
)
_MARKS = re.compile(
    r"##\[\w+\]|::(?:group|endgroup|add-mask|debug)::|section_(?:start|end):\d+:[\w.-]*(?:\[[^\]]*\])?"
    r"|\[[^\]\n]{1,80}/[^\]\n]{1,80}\]\s+\| |#\d+ \d+\.\d{1,3} "
    # Gradle does not end its line before a compiler prints.
    r"|:[A-Za-z][\w:-]*(?=/\S+\.\w+:\d+:)"
)
_ANNOTATION = re.compile(r"::(?P<kind>error|warning|notice)(?: (?P<told>[^:]*(?::(?!:)[^:]*)*))?::(?P<text>.*)")
_OF_ANNOTATION = re.compile(r"(?:^|,) *(file|line|col)=([^,]*)")
# How tools and forges name the checkout's folder, and where forges put it.
_TOLD_ROOT = re.compile(
    r"rootdir: (/[^\s,]+)|\bRUN +v[\d.]+ (/\S+)|make(?:\[1\])?: Entering directory [`'](/[^']+)'"
    r"|Git repository in (/\S+?)/\.git/?$|\[INFO\] .* (/\S+)/src/(?:main|test)/resources$"
)
_USUAL_ROOT = re.compile(
    r"(?<![\w.~/-])(?:/(?:home|Users)/runner/work/[^/\s]+/[^/\s]+|/__w/[^/\s]+/[^/\s]+|/github/workspace"
    r"|/builds/[^/\s]+/[^/\s]+|/workspace/[^/\s]+/[^/\s]+|/root/\.cache/act/[0-9a-f]+/hostexecutor|/drone/src"
    r"|/woodpecker/src/[^/\s]+/[^/\s]+/[^/\s]+|/home/circleci/project)(?=/)"
)
_MOST_ROOTS = 4


# What a forge says about its own steps: the command with its variables, and how each step ended.
_STEP = re.compile(r"##\[group\]Run ")
_STEP_ENDS = "##[endgroup]"
_MOST_OF_A_STEP = 100
_OF_THE_FORGE = re.compile(
    r"⭐ Run |🏁 +Job |⚙️? +\[runner\]| *[❌✅] +(?:Failure|Success) - |Job '[^']*' (?:failed|succeeded)$"
)


def read_lines(log: str, root: str = "") -> list[str]:
    """Bounded, whatever the log holds. `root`: the folder it was made in, removed from all paths."""
    if len(log) > FIRST_CHARS + LAST_CHARS:
        log = f"{log[:FIRST_CHARS]}\n{log[-LAST_CHARS:]}"
    raw: list[str] = []
    for line in _physical(log):
        text, goes_on = _without_moment(line)
        if goes_on and raw:
            raw[-1] = (raw[-1] + text)[:_CUT_AT]
        else:
            raw.extend(_shown(text))
    # Cleaned as a whole: in one call, so that no terminal code is split.
    washed = bytes(FULL.apply("\n".join(raw).encode("utf-8", "replace"))).decode("utf-8", "replace").split("\n")
    found = [_plain(line) for line in _of_jobs(washed)]
    return _without_roots(found, [root] if root else _roots(found))


def _physical(log: str) -> Iterator[str]:
    for line in log.replace("\r\n", "\n").split("\n"):
        yield line[: _CUT_AT * 4]


def _without_moment(line: str) -> tuple[str, bool]:
    """What follows the timestamp, and whether it continues the line before."""
    match = _MOMENT.match(line)
    return (line[match.end() :], match[1] == "+") if match else (line, False)


def _shown(line: str) -> Iterator[str]:
    """Of a progress bar, which overwrites its line, only the last state; other overwritten text as lines of its own."""
    if "\r" not in line:
        yield line[:_CUT_AT]
        return
    parts = [part for part in line.split("\r") if part][-_MOST_REWRITES:]
    shapes = [VARIES.sub("#", part[:LONGEST_LINE])[:12] for part in parts]
    for number, part in enumerate(parts):
        if number + 1 == len(parts) or shapes[number] != shapes[number + 1]:
            yield part[:_CUT_AT]


def _of_jobs(lines: Sequence[str]) -> Iterator[str]:
    """What the job's own programs printed."""
    left = 0
    for line in lines:
        left = _MOST_OF_A_STEP if _STEP.match(line) else max(0, left - 1)
        if line.startswith(_STEP_ENDS):
            left = 0
        elif not left and not _OF_THE_FORGE.match(line):
            yield line


def _plain(line: str) -> str:
    clean = CONTROL.sub("", line.replace("\t", "    ").replace("\r", "")).rstrip()
    if "::" in clean[:40] and (match := _ANNOTATION.search(clean)) is not None and match.start() < 12:
        return _annotated(match)[:LONGEST_LINE]
    while (match := _MARKS.match(clean)) is not None:
        clean = clean[match.end() :]
    return clean[:LONGEST_LINE].rstrip()


def _annotated(match: re.Match[str]) -> str:
    """An annotation, by which a tool tells a forge about a line of code, in a compiler's format."""
    told = dict(_OF_ANNOTATION.findall(match["told"] or ""))
    text = match["text"].split("%0A")[0]
    if not told.get("file"):
        return f"{match['kind']}: {text}"
    place = f"{told['file']}:{told.get('line') or 1}:{told.get('col') or 1}:"
    # Some name the place again.
    text = re.sub(r"^[^\s:]+:\d+(?::\d+)?: ", "", text)
    has_code = re.match(r"[A-Z]{1,5}\d{2,5}\b|error\b", text) is not None
    return f"{place} {text}" if has_code and match["kind"] == "error" else f"{place} {match['kind']}: {text}"


def _roots(lines: Sequence[str]) -> list[str]:
    """The folders of the checkout, as far as the log names them, the shortest first."""
    found: dict[str, None] = {}
    for line in lines:
        if "/" not in line:
            continue
        for match in (_TOLD_ROOT.search(line), _USUAL_ROOT.search(line)):
            if match is not None:
                found.setdefault(next(filter(None, match.groups()), match[0]).rstrip("/"))
        if len(found) >= _MOST_ROOTS:
            break
    return sorted((one for one in found if one.count("/") > 1), key=len)


def _without_roots(lines: list[str], roots: Sequence[str]) -> list[str]:
    for root in roots:
        start = re.compile(r"(?<![\w.~-])(?:file://)?" + re.escape(root) + "/")
        lines = [start.sub("", line) if root in line else line for line in lines]
    return lines
