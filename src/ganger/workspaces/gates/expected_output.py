"""What a passing run of a test command prints at its end, where that is known from the test runner."""

from __future__ import annotations

import posixpath
import re

from ganger.workspaces.gates.recipes import Read, RecipeStep, unfolded

_PYTEST = r"[1-9][0-9]* passed"
_UNITTEST = r"Ran [1-9][0-9]* tests? in [0-9.]+s\s+OK"
# By program or Python module. A run without any test prints none of these.
_PRINTED = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": _UNITTEST,
    "nose2": _UNITTEST,
    "jest": r"Tests:\s.*?[1-9][0-9]* passed",
    "vitest": r"Tests\s.*?[1-9][0-9]* passed",
    "mocha": r"[1-9][0-9]* passing",
    "ava": r"[1-9][0-9]* tests? passed",
    "ctest": r"100% tests passed, 0 tests failed out of [1-9]",
    "rspec": r"[1-9][0-9]* examples?, 0 failures",
    "phpunit": r"OK \([1-9]|Tests: [1-9]",
}
# By program and the word after it.
_PRINTED_BY = {
    ("go", "test"): r"(?m)^ok\s+\S+\s+(?:\(cached\)|[0-9.]+s)(?! \[no tests)",
    ("cargo", "test"): r"test result: ok\. [1-9][0-9]* passed",
    ("cargo", "nextest"): r"[1-9][0-9]* passed",
    ("mvn", "test"): r"Tests run: [1-9][0-9]*, Failures: 0, Errors: 0",
    ("mix", "test"): r"[1-9][0-9]* tests?, 0 failures",
    ("dotnet", "test"): r"Passed:\s+[1-9]",
    ("node", "--test"): r"(?m)^(?:#|ℹ) pass [1-9]",
}
# With these the runner prints something else, or nothing.
_SILENT = re.compile(r"-q+|--quiet|--silent|--json|-json|--reporters?(?:=.*)?|--test-reporter(?:=.*)?|--format(?:=.*)?")
_PYTEST_SETTINGS = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_ADDED = re.compile(r"^\s*addopts\s*=\s*(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)


def expected_output(command: str, read: Read) -> str:
    """A pattern for `verify.expect`; "" where it is unknown what a pass prints."""
    steps = unfolded(command, read)
    if any(word in (">", ">>", "|", ">&", "&>") for step in steps for word in step.argv):
        return ""
    found = [pattern for step in steps if (pattern := _printed_by(step, read))]
    return found[-1] if found else ""


def is_quiet_pytest(read: Read) -> bool:
    """Whether pytest's settings make it quiet already: one more `-q` hides its count of tests."""
    return any(word in ("-q", "--quiet") for word in _added_options(read))


def _printed_by(step: RecipeStep, read: Read) -> str:
    programs, words = step.programs, list(step.argv)
    last = programs[-1] if programs else ""
    if last in ("pytest", "py.test"):
        quiet = sum(word.count("q") for word in [*words, *_added_options(read)] if re.fullmatch(r"-q+|--quiet", word))
        return _PYTEST if quiet < 2 else ""
    at = next((at for at, word in enumerate(words) if posixpath.basename(word) == last), len(words))
    behind = words[at + 1 :]
    if any(_SILENT.fullmatch(word) for word in behind):
        return ""
    if last in _PRINTED:
        return _PRINTED[last]
    return next((text for (program, word), text in _PRINTED_BY.items() if program == last and word in behind), "")


def _added_options(read: Read) -> list[str]:
    found = [_ADDED.search(read(name)) for name in _PYTEST_SETTINGS]
    return [word.strip("\"'[],") for match in found if match for word in match[1].split()]
