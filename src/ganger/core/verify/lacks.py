"""What a command lacked to run, from how it ended: a program, an interpreter, a library, a test runner.

A program's output is never proof, only a reason to look: the same command runs without the change as well, and only
what is missing there too is the environment's fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ganger.core.logs.telling_line import clean_lines
from ganger.errors import UNRUNNABLE

SIGNAL = "signal"
NOT_FOUND, NOT_RUNNABLE, NO_SANDBOX = 127, 126, 125
_LAST_LINES, _LONGEST_LINE = 60, 500
_LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class Lack:
    """`kind`: `program`, `module`, `library`, `folder`, `disk` or `sandbox`. `said` is the line that says so.

    `there`: it exists and cannot be run. With kind `signal` nothing is missing: a signal ended the command each time.
    """

    kind: str
    name: str
    said: str = ""
    there: bool = False

    def is_same(self, other: Lack | None) -> bool:
        return other is not None and (self.kind, self.name, self.there) == (other.kind, other.name, other.there)


# Modules that run checks and belong to no project. A project's own `python -m app` is the project's matter.
_RUNNERS = frozenset(
    (
        *("pytest", "py", "_pytest", "pluggy", "iniconfig", "xdist", "nose2", "nose", "tox", "nox", "coverage", "ward"),
        *(
            "mypy",
            "pyright",
            "pytype",
            "ruff",
            "flake8",
            "pylint",
            "black",
            "isort",
            "bandit",
            "pyflakes",
            "pydocstyle",
        ),
        *("build", "pip", "setuptools", "wheel", "hatch", "hatchling", "poetry", "pdm", "uv", "pre_commit", "invoke"),
        *("behave", "robot", "twisted", "green", "sphinx", "mkdocs", "hypothesis", "django", "pycodestyle", "vulture"),
    )
)
_QUOTES = "‘’'\"`"
_WORDY = rf"[{_QUOTES}]?(?P<name>[^{_QUOTES}:\s][^{_QUOTES}:]*?)[{_QUOTES}]?"
_SHELL = r"(?:\S*/)?(?:sh|bash|dash|ash|ksh|mksh|busybox)"
# The program that starts the intended one: `inside` in the sandbox, see there.
_IN_SANDBOX = re.compile(r"ganger: (['\"])(?P<name>.*)\1 cannot be started in the sandbox: (?P<why>.+)")
_SANDBOX_FELL = re.compile(r"ganger: the sandbox (?:could not be closed|ended before the program in it did)")
_NOT_FOUND_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\S.*?: (?:line )?\d+: (?:exec: )?(?P<name>\S+): (?:command )?not found$",
        rf"{_SHELL}: (?:exec: )?(?P<name>\S+): (?:command )?not found$",
        r"(?:\S*/)?zsh:(?:\d+:)? command not found: (?P<name>\S+)$",
        r"fish: Unknown command: (?P<name>\S+)$",
        r"(?:pyenv|rbenv|nodenv|asdf): (?P<name>\S+): command not found$",
        rf"(?:\S*/)?(?:env|nice|nohup|xargs|setsid): {_WORDY}: No such file or directory$",
        rf"(?:\S*/)?(?:timeout|stdbuf|chroot): failed to run command {_WORDY}: No such file or directory$",
        r"(?:\S*/)?time: cannot run (?P<name>\S+): No such file or directory$",
        r".*: (?P<name>/\S+): bad interpreter: No such file or directory$",
        r"(?:\S.*?: (?:line )?\d+: |\S+: )(?P<name>\S+): (?:cannot execute: required file not found|No such file "
        r"or directory)$",
    )
)
_NOT_RUNNABLE_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        r".*: (?P<name>/\S+): bad interpreter: ",
        r"(?:.*: )?(?P<name>\S+): (?:Permission denied|cannot execute(?: binary file)?(?:: .*)?|Exec format error)$",
        rf"(?:\S*/)?(?:env|nice|nohup|xargs|timeout|stdbuf|chroot|setsid): (?:failed to run command )?{_WORDY}: "
        r"(?:Permission denied|Exec format error)$",
    )
)
_MAKE = re.compile(
    r"g?make(?:\[\d+\])?: (?P<name>[^\s*]\S*): (?:No such file or directory|Command not found|Permission denied)$"
)
_MAKE_CODE = re.compile(
    r"g?make(?:\[\d+\])?: \*\*\* .*\bError (?P<code>12[67])$|npm (?:ERR!|error) code (?P<npm>12[67])$"
)
_LIBRARY = re.compile(r"error while loading shared libraries: (?P<name>[^:\s]+): cannot open shared object file")
_PYTHON_MODULE = re.compile(
    r"(?:\S*python[\d.]*|\S*pypy[\d.]*): (?:No module named (?P<name>[\w.]+)"
    r"|Error while finding module specification for '.*' \(ModuleNotFoundError: No module named '(?P<other>[\w.]+)'\))"
)
_IMPORTED = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'$")
_NO_STANDARD_LIBRARY = re.compile(r"ModuleNotFoundError: No module named 'encodings'$")
# Programs that start others, each with its own message.
_STARTERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"error: Failed to spawn: `(?P<name>[^`]+)`",
        r"Command not found: (?P<name>\S+)$",
        r"error: no such command: `(?P<name>[^`]+)`",
        r"error: linker `(?P<name>[^`]+)` not found",
        r'.*\bexec: "(?P<name>[^"]+)": executable file not found in \$PATH',
        r'error Command "(?P<name>[^"]+)" not found\.$',
        r'.*ERR_PNPM_\w+\s+Command "(?P<name>[^"]+)" not found',
        r"Error: spawn (?P<name>\S+) ENOENT$",
        r"npm (?:ERR!|error) npx canceled due to missing packages and no YES option: \[\s*[\"'](?P<name>[^\"'@]+)",
        r"npm (?:ERR!|error) (?P<name>could not determine executable to run)$",
        r"Error: Cannot find module '(?P<name>[^']*/node_modules/[^']+)'$",
    )
)
_UNRUNNABLE = re.compile("|".join((*UNRUNNABLE, "Permission denied", "Exec format error")))
_CHILD_FAILED = re.compile(r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<name>[^'/.]+)'$")
_FULL = re.compile(r"No space left on device|\bENOSPC\b|Disk quota exceeded|\bEDQUOT\b")


def lack_of(code: int | None, output: str) -> Lack | None:
    """What a command that ended with `code` seems to have lacked; None if it ran, with any result."""
    if code in (None, 0):
        return None
    lines = [line[:_LONGEST_LINE] for line in clean_lines(output)[-_LAST_LINES:]]
    return _in_sandbox(code, lines) or _in_shell(code, lines) or _in_runner(lines)


def runs_out_of_disk(output: str) -> str:
    """The line that says so."""
    return next((line for line in reversed(clean_lines(output)[-_LAST_LINES:]) if _FULL.search(line)), "")


def never_began(code: int | None, output: str) -> Lack | None:
    """Only what Ganger's own launcher in the sandbox says, and only if nothing else was printed: the program that it
    should have started has not run."""
    lines = clean_lines(output)
    return _in_sandbox(code, lines) if len(lines) == 1 else None


def refused_start(program: str, error: str) -> Lack:
    """What the launcher says about a program that it could not start."""
    return Lack("program", _name(program), error, there=_UNRUNNABLE.search(error) is not None)


def _in_sandbox(code: int | None, lines: Sequence[str]) -> Lack | None:
    if len(lines) != 1 or code not in (NOT_FOUND, NOT_RUNNABLE, NO_SANDBOX):
        return None
    said = _IN_SANDBOX.fullmatch(lines[0])
    if said is not None and code != NO_SANDBOX:
        return Lack("program", _name(said["name"]), f"{said['name']}: {said['why']}", there=code == NOT_RUNNABLE)
    fell = _SANDBOX_FELL.match(lines[0])
    return Lack("sandbox", "sandbox", lines[0].removeprefix("ganger: ")) if fell is not None else None


def _in_shell(code: int | None, lines: Sequence[str]) -> Lack | None:
    """A shell, or a program that runs shells, ends with 127 or 126 if it could not start something."""
    told = code
    for line in reversed(lines):
        handed_on = _MAKE_CODE.match(line)
        if handed_on is not None:
            told = int(handed_on["code"] or handed_on["npm"])
            break
    if told != code and (found := _first(_MAKE, lines)) is not None:
        return found
    if told not in (NOT_FOUND, NOT_RUNNABLE):
        return None
    library = next((Lack("library", _name(m["name"]), line) for line in lines if (m := _LIBRARY.search(line))), None)
    if library is not None:
        return library
    patterns = _NOT_FOUND_LINES if told == NOT_FOUND else _NOT_RUNNABLE_LINES
    for line in reversed(lines):
        for pattern in patterns:
            said = pattern.match(line)
            if said is not None:
                return Lack("program", _name(said["name"]), line, there=told == NOT_RUNNABLE)
    return None


def _in_runner(lines: Sequence[str]) -> Lack | None:
    """A test runner that is not installed, or one that could not start what it needs."""
    for line in reversed(lines):
        if _NO_STANDARD_LIBRARY.match(line):
            return Lack("program", "python", f"{line} (the interpreter does not find its own library)")
        said = _PYTHON_MODULE.match(line)
        module = (said["name"] or said["other"]) if said is not None else ""
        imported = _IMPORTED.search(line)
        module = module or (imported["name"] if imported is not None else "")
        if module and module.partition(".")[0] in _RUNNERS:
            return Lack("module", module.partition(".")[0], line)
        for pattern in _STARTERS:
            started = pattern.match(line)
            if started is not None:
                return Lack("program", _name(started["name"]), line)
        child = _CHILD_FAILED.match(line)
        if child is not None and any("_execute_child" in other for other in lines):
            return Lack("program", _name(child["name"]), line)
    library = next((m for line in reversed(lines) if (m := _LIBRARY.search(line))), None)
    return Lack("library", _name(library["name"]), library[0]) if library is not None else None


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> Lack | None:
    return next((Lack("program", _name(m["name"]), line) for line in lines if (m := pattern.match(line))), None)


def _name(text: str) -> str:
    return text[:_LONGEST_NAME]
