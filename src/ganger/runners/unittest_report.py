"""`python -m unittest` with a report: a plain file that the project's interpreter runs before any product code.

Each test is a line of JSON in the file that is the first argument; the last line says that the run ended.
"""

# ruff: noqa: N802, PTH109
# The names are unittest's; and little is imported, so that a product's own modules cannot interfere.

from __future__ import annotations

import json
import os
import sys
import unittest
from typing import Any

_dumps, _write = json.dumps, os.write
_describe = unittest.TestResult._exc_info_to_string  # type: ignore[attr-defined]
_LONGEST = 4000


def _say(report: int, told: dict[str, object]) -> None:
    _write(report, (_dumps(told) + "\n").encode())


class Result(unittest.TextTestResult):
    """Writes the result of each test as soon as it ends."""

    report = -1

    def startTest(self, test: Any) -> None:
        self._outcome, self._words = "", ""
        super().startTest(test)

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        file = getattr(sys.modules.get(type(test).__module__), "__file__", "") or ""
        told = {"name": test.id(), "outcome": self._outcome or "skipped", "words": self._words, "file": file}
        _say(self.report, told)

    def _fail(self, test: Any, problem: Any) -> None:
        self._outcome = "failed"
        self._words = getattr(self, "_words", "") + _describe(self, problem, test)[-_LONGEST:]

    def _unless_failed(self, outcome: str) -> None:
        self._outcome = getattr(self, "_outcome", "") or outcome

    def addSuccess(self, test: Any) -> None:
        self._unless_failed("passed")
        super().addSuccess(test)

    def addFailure(self, test: Any, err: Any) -> None:
        self._fail(test, err)
        super().addFailure(test, err)

    def addError(self, test: Any, err: Any) -> None:
        self._fail(test, err)
        super().addError(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._fail(test, err)
        super().addSubTest(test, subtest, err)

    def addSkip(self, test: Any, reason: str) -> None:
        self._unless_failed("skipped")
        super().addSkip(test, reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._unless_failed("skipped")
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._outcome = "failed"
        super().addUnexpectedSuccess(test)


class Runner(unittest.TextTestRunner):
    resultclass: Any = Result

    def run(self, test: Any) -> Any:
        result = super().run(test)
        _say(Result.report, {"end": True})
        return result


def main(arguments: list[str]) -> None:
    Result.report = os.open(arguments[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        # As with -m.
        sys.path[0] = os.getcwd()
    unittest.main(module=None, testRunner=Runner, argv=["python -m unittest", *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
