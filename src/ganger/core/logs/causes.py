"""What ended a CI job if neither a test nor the code did: workflow, runner, disk, memory, time or network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from ganger.core.logs.faults import LogFault, LogReading
from ganger.core.vocabulary import FailureClass


class LogCause(StrEnum):
    """Why a job is red, according to its log."""

    TESTS = "tests"
    BUILD = "build"
    WORKFLOW = "workflow"
    RUNNER_LOST = "runner_lost"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    DISK_FULL = "disk_full"
    OUT_OF_MEMORY = "out_of_memory"
    NETWORK = "network"


# A worker fixes tests and builds; the operator fixes a workflow that cannot be read. The others are usually temporary.
CLASS_OF: dict[LogCause, FailureClass] = {
    LogCause.TESTS: FailureClass.TEST_ERROR,
    LogCause.BUILD: FailureClass.BUILD_ERROR,
    LogCause.WORKFLOW: FailureClass.ENVIRONMENT,
    LogCause.RUNNER_LOST: FailureClass.TRANSIENT_INFRA,
    LogCause.TIMED_OUT: FailureClass.TIMEOUT,
    LogCause.CANCELLED: FailureClass.TRANSIENT_INFRA,
    LogCause.DISK_FULL: FailureClass.TRANSIENT_INFRA,
    LogCause.OUT_OF_MEMORY: FailureClass.TRANSIENT_INFRA,
    LogCause.NETWORK: FailureClass.TRANSIENT_INFRA,
}

_DISK = r"no space left on device|\bENOSPC\b|not enough space on the disk|disk quota exceeded|\bdisk is full\b"
_MEMORY = (
    r"heap out of memory|java\.lang\.OutOfMemoryError|\bOOMKilled\b|Killed signal terminated program|out of memory\b"
    r"|cannot allocate memory|exit(?:ed)?(?: with)?(?: code| status)?[: ]+137\b|(?:^|: |\] )Killed\b(?: +\S.*)?$"
    r"|signal: 9, SIGKILL|\bsignal: killed\b|was terminated by signal SIGKILL"
)
_NETWORK = (
    r"could not resolve host|couldn't resolve host|temporary failure (?:in name resolution|resolving)"
    r"|name or service not known|no such host|connection (?:reset|refused|timed out|aborted)|network is unreachable"
    r"|failed to establish a new connection|\b(?:ETIMEDOUT|ECONNRESET|ECONNREFUSED|ENOTFOUND|EAI_AGAIN)\b"
    r"|npm err(?:or)? network"
    r"|could(?:n't| not) connect to server|failed to connect to|TLS handshake|i/o timeout|read timed out"
    r"|(?:error|returned|status|code|HTTP/\S+)[^\n]{0,30}\b50[234]\b"
    r"|\b50[234] (?:bad gateway|service unavailable|gateway)"
    r"|rate limit|too ?many ?requests|remote end hung up|\bearly EOF\b|unknown host"
    r"|could not transfer artifact|unable to connect to|gnutls_handshake|SSL_ERROR_SYSCALL|proxy error"
)
# The first that matches wins, the most certain first; each is looked for in the last lines of a log.
_SAYS: tuple[tuple[LogCause, re.Pattern[str]], ...] = tuple(
    (cause, re.compile(pattern, re.IGNORECASE))
    for cause, pattern in (
        (
            LogCause.WORKFLOW,
            r"invalid workflow file|the workflow is not valid|workflow is (?:in)?valid\b.*yaml"
            r"|(?:unable|failed|cannot) to (?:parse|read|unmarshal)(?: the)? workflow|workflow.*did not (?:parse|find)"
            r"|error in your yaml syntax|found errors? in your .*ci\.yml|jobs config should contain|yaml invalid"
            r"|jobs:\S+ config (?:should|contains|key)|unable to resolve action|\.gitlab-ci\.yml.*(?:invalid|syntax)"
            r"|\.(?:forgejo|gitea|github)/workflows/\S+ ?[:(].*(?:yaml|line: ?\d+|unexpected value|mapping values)"
            r"|workflow.*yaml: (?:line \d+|unmarshal)|no stages / jobs for this pipeline",
        ),
        (
            LogCause.TIMED_OUT,
            r"exceeded the maximum execution time|execution took longer than|has timed out after \d+ minutes"
            r"|exit(?:ed)?(?: with)?(?: code| status)?[: ]+124\b"
            r"|job (?:exceeded|reached) (?:its |the )?time(?:-| )?(?:out|limit)"
            r"|^timeout: sending signal|\bcontext deadline exceeded\b|too long with no output|script timeout",
        ),
        (
            LogCause.RUNNER_LOST,
            r"lost communication with the server|runner has received a shutdown signal|runner system failure"
            r"|job failed \(system failure\)|runner (?:was )?(?:lost|shut ?down|is offline|went away|unavailable)"
            r"|pod .{0,60}(?:evicted|not found)|no such container|cannot connect to the docker daemon"
            r"|(?:instance|node) (?:was )?(?:preempted|terminated|shutting down)|zombie task",
        ),
        (LogCause.DISK_FULL, _DISK),
        (LogCause.OUT_OF_MEMORY, _MEMORY),
        (LogCause.NETWORK, _NETWORK),
        (LogCause.CANCELLED, r"the operation was cancell?ed|\bcontext cancell?ed\b|job was cancell?ed"),
    )
)
# What a program also prints when it succeeds.
_PASSING_BY = re.compile(
    r"\bwarn(?:ing)?\b|\bretry|\bretrying|tries remaining|try remaining|tried again|attempt \d+ (?:of|failed)|\bINFO\b"
    r"|\b(?:ok|passed|PASS)\b|✓|✔",
    re.IGNORECASE,
)
_OUT_OF_REACH = re.compile(r"after connection broken by")
_NOTHING_FOUND = re.compile(r"\(from versions: none\)")
_LAST_LINES = 200
_NEEDS_CERTAINTY = frozenset({LogCause.WORKFLOW, LogCause.TIMED_OUT, LogCause.RUNNER_LOST})
_FULL = re.compile(rf"^(?:OSError|\w*IOException|Error)?:? ?.{{0,20}}(?:{_DISK})", re.IGNORECASE)
_ANY_OF_PLACE = re.compile("|".join((_DISK, _MEMORY, _NETWORK)), re.IGNORECASE)

_SOME_TESTS = re.compile(r"\b[1-9]\d* failed\b|(?<!BUILD )\bFAILED (?!in )\S|--- FAIL|\b[Aa]ssert\w*")
_OF_TESTS = re.compile(r"\b(?:tests?|assert\w*|expected|FAILED|pytest|unittest|jest|spec)\b", re.IGNORECASE)
_OF_BUILDS = re.compile(
    r"\b(?:compil\w+|syntax ?error|cannot find (?:module|crate|package)|undefined reference|lint|clippy|ruff|eslint|"
    r"mypy|type ?error|tsc|cargo build|linker|unresolved import|ModuleNotFoundError|ImportError|format)\b",
    re.IGNORECASE,
)


def cause_of(reading: LogReading, told: Sequence[str]) -> tuple[LogCause, str]:
    """Why the job is red, and the line that says so if neither a test nor the code is the cause. `told`: its telling
    lines.

    A failed test and an error with its place outweigh everything else, unless they only report the machine's trouble.
    """
    if mended := by_people(reading.faults):
        tests = [fault for fault in mended if fault.is_test and not fault.loads]
        return (LogCause.TESTS if tests else LogCause.BUILD), ""
    said = _said(reading.lines, doubtful=bool(_SOME_TESTS.search("\n".join(told))) and not reading.faults)
    if said is not None:
        return said
    text = "\n".join(told)
    if _OF_BUILDS.search(text) and not _SOME_TESTS.search(text):
        return LogCause.BUILD, ""
    return (LogCause.TESTS if _OF_TESTS.search(text) else LogCause.BUILD), ""


def by_people(faults: Sequence[LogFault]) -> tuple[LogFault, ...]:
    """Without those that only say that the disk was full, memory used up or the network down. A test that cannot reach
    the network may have a fault of its own."""
    return tuple(fault for fault in faults if not (_FULL if fault.is_test else _ANY_OF_PLACE).search(fault.why))


def _said(lines: Sequence[str], *, doubtful: bool) -> tuple[LogCause, str] | None:
    """If something mentions failed tests, only lines that cannot be their output count."""
    last = [line for line in lines if line.strip()][-_LAST_LINES:]
    for cause, pattern in _SAYS:
        if doubtful and cause not in _NEEDS_CERTAINTY:
            continue
        for line in last:
            if pattern.search(line) and not _PASSING_BY.search(line):
                return cause, line.strip()
    if not doubtful and any(_OUT_OF_REACH.search(line) for line in last):
        # Pip warns about the network first, and then complains about the name.
        return next(((LogCause.NETWORK, line.strip()) for line in last if _NOTHING_FOUND.search(line)), None)
    return None
