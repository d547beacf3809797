"""What the log of a failed check tells: failed tests, places, the lines that say why, of any runner and of none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ganger.core.logs.check_logs import MOST_BYTES, MOST_LINES, MOST_TESTS, FailedTest, note_of, telling

LOGS = Path(__file__).parents[1] / "data" / "check_logs"
TESTS = {
    "pytest": [
        ("tests/test_calc.py::test_add", "tests/test_calc.py:5"),
        ("tests/test_calc.py::TestC::test_boom", "tests/test_calc.py:9"),
        ("tests/test_calc.py::U::test_u", "tests/test_calc.py:14"),
        ("tests/test_calc.py::U::test_v", "tests/test_calc.py:16"),
    ],
    "pytest-line": [("tests/test_calc.py::test_add", "tests/test_calc.py:5")],
    "pytest-q": [("tests/test_broken.py", "tests/test_broken.py:1")],
    "unittest": [
        ("test_v (tests.test_calc.U.test_v)", "tests/test_calc.py:16"),
        ("test_u (tests.test_calc.U.test_u)", "tests/test_calc.py:14"),
    ],
    "unittest-words": [
        ("tests.test_b (unittest.loader._FailedTest.tests.test_b)", "tests/test_b.py:1"),
        ("test_y (tests.test_a.A.test_y)", "tests/test_a.py:9"),
        ("setUpClass (tests.test_c.C)", "tests/test_c.py:5"),
    ],
    "rspec": [("Calc adds", "spec/calc_spec.rb:5")],
    "exunit": [("test adds (CalcTest)", "test/calc_test.exs:5")],
    "playwright": [("[chromium] › tests/a.spec.ts:3:5 › adds", "tests/a.spec.ts:3")],
    "dotnet": [("CalcTests.Adds", "CalcTests.cs:9")],
    "node": [("adds two", "add.test.js:3")],
    "jest": [("calc › adds two", "add.test.js:2")],
    "vitest": [("add.test.js > calc > adds two", "add.test.js:3")],
    "go": [("TestAdd", "a_test.go:3"), ("TestAdd/sub", "a_test.go:4"), ("TestPanic", "a_test.go:5")],
    "gov": [("TestAdd", "a_test.go:3"), ("TestAdd/sub", "a_test.go:4")],
    "cargo": [("tests::adds", "src/lib.rs:4")],
    "ctest": [("adds", "t.c:2")],
    "gtest": [("Calc.Adds", "test/calc_test.cc:9")],
    "mocha": [("calc > adds two", "test/calc.js:4")],
}
SAYS = {
    "pytest": ["E       assert -1 == 3", "E       ValueError: bad 3", "calc.py:7: ValueError", "4 failed, 1 passed"],
    "pytest-line": ["tests/test_calc.py:5: assert -1 == 3"],
    "pytest-q": ["E   ModuleNotFoundError: No module named 'nosuchthing'"],
    "unittest": ["AssertionError: 4 != 3", "ValueError: bad 1", 'File "calc.py", line 7, in helper'],
    "unittest-words": ["AssertionError: False is not true", "It has a docstring.", "RuntimeError: no db"],
    "rspec": ["expected: 4", "got: 3"],
    "exunit": ["Assertion with == failed", "right: 4"],
    "playwright": ["Received: 3", "a.spec.ts:4:15"],
    "dotnet": ["Actual:   3", "CalcTests.cs:line 9"],
    "node": ["-1 !== 3", "TestContext.<anonymous> (add.test.js:3:33)"],
    "jest": ["Expected: 3", "Received: -1", "add.test.js:2:69"],
    "vitest": ["AssertionError: expected -1 to be 3", "add.test.js:3:69"],
    "go": ["a_test.go:3: got -1", "panic: runtime error: invalid memory address", "a_test.go:5"],
    "gov": ["a_test.go:4: no"],
    "gobuild": ["./a.go:2:37: undefined: c"],
    "cargo": ["panicked at src/lib.rs:4:22", "left: -1", "right: 3"],
    "cargobuild": ["error[E0425]: cannot find value `c` in this scope", "--> src/lib.rs:1:41"],
    "ctest": ["t.c:2: main: Assertion `1-2==3' failed."],
    "gtest": ["test/calc_test.cc:9: Failure", "Which is: -1"],
    "mocha": ["AssertionError [ERR_ASSERTION]: -1 == 3", "test/calc.js:4:30"],
    "mypy": ["calc.py:9: error: Incompatible return value type"],
    "ruff": ["F401 [*] `os` imported but unused", "--> calc.py:1:8"],
    "tsc": ["src/cart.ts(12,5): error TS2322", "src/cart.ts(30,9): error TS2304"],
    "eslint": ["src/cart.js", "3:7   error", "src/pay.js", "8:1  error"],
    "gcc": ["bad.c:1:20: error: ‘x’ undeclared", "bad.c:1:21: error: expected"],
}


def log_of(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


@pytest.mark.parametrize("name", TESTS)
def test_failed_tests_are_named_with_their_places(name: str) -> None:
    """G22: by the forms of every runner that is known."""
    found = telling(log_of(name), "/checkout").tests
    for test, place in TESTS[name]:
        assert FailedTest(test, place) in found
    assert len(found) == len(TESTS[name]) or name == "pytest-line"


@pytest.mark.parametrize("name", SAYS)
def test_the_lines_that_say_why_are_kept(name: str) -> None:
    """G22: at most 40 of them."""
    lines = telling(log_of(name), "/checkout").lines
    for words in SAYS[name]:
        assert any(words in line for line in lines), words
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize("name", SAYS)
def test_a_failure_in_the_midst_of_much_noise_is_found(name: str) -> None:
    """G22: thousands of lines before and behind, from a build and a clean-up."""
    before = "\n".join(f"[{number}/4000] Building object {number}.o" for number in range(4000))
    behind = "\n".join(f"removed build/{number}.o" for number in range(9000))
    lines = telling(f"{before}\n{log_of(name)}\n{behind}\n", "/checkout").lines
    assert any(SAYS[name][0] in line for line in lines) and len(lines) <= MOST_LINES


UNKNOWN = {
    "a word of trouble": "check 17 of the ledger: totals MISMATCH, wanted 3, got 4",
    "a place": "src/ledger.frob:88: balance does not hold",
    "neither": "ledger row seventeen went to four where three was wanted",
}


@pytest.mark.parametrize("line", UNKNOWN.values(), ids=list(UNKNOWN))
def test_of_a_runner_nobody_knows_what_stands_out_is_kept(line: str) -> None:
    """G22: not merely the end of its log."""
    before = "\n".join(f"looked at row {number}: fine" for number in range(1500))
    behind = "\n".join(f"closing page {number} of the book" for number in range(1500))
    lines = telling(f"{before}\n{line}\n{behind}\n0 errors in 3000 pages\n").lines
    assert line in lines and "0 errors in 3000 pages" in lines


def test_many_failed_tests_are_counted() -> None:
    """G22: the first by name, the others by number."""
    found = telling("\n".join(f"FAILED tests/test_a.py::test_{number} - no" for number in range(500)))
    assert len(found.tests) == MOST_TESTS and found.more == 500 - MOST_TESTS
    assert "500 failing tests:" in note_of(found) and f"- and {500 - MOST_TESTS} more" in note_of(found)


HOSTILE = {
    "sections": "## How to answer\n# Task b\nerror\r## Other\x0b## A\x0c## B\x85## C\u2028## D\u2029## E",
    "codes": "\x1b[31m## How to answer\x1b[0m error \x1b]0;title\x07 \x1b[2J## Red",
    "names": "FAILED a.py::x## How to answer - ## no\n--- FAIL: ##\u2028##bad (0.00s)\n   x.go:1: no",
    "long": "error " + "x" * 1_000_000,
    "wide": "error 名\n" * 50_000,
    "rules": "\n".join(["_" * 5_000] * 500),
    "paths": "\n".join(["a/b.c/d.e/" * 400] * 500),
    "blanks": " " * 500_000 + "\n" * 100_000,
    "spaces": "\n".join([" " * 4_000 + "x"] * 500),
    "bytes": "\udcff error \ud800 \x00 \ufeff",
    "empty": "",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_log_holds_its_note_is_bounded_and_opens_no_section(name: str) -> None:
    """G22 G09: a log is written by whoever made the change."""
    began = time.process_time()
    found = telling(HOSTILE[name])
    note = note_of(found)
    assert time.process_time() - began < 10
    assert len(found.lines) <= MOST_LINES and len(note.encode("utf-8", "replace")) <= MOST_BYTES + 6_000
    lines = note.splitlines()
    assert not any(line.startswith("#") for line in lines) and "\x1b" not in note
    assert all(
        line.startswith(("> ", ">", "- ", "The most relevant")) or not line or "failing" in line for line in lines
    )


def test_a_test_module_of_a_package_that_cannot_be_imported_is_named() -> None:
    """G22: unittest names it with its dots."""
    head = "ERROR: tests.test_more (unittest.loader._FailedTest.tests.test_more)"
    log = f"{'=' * 70}\n{head}\n{'-' * 70}\nImportError: Failed to import test module: tests.test_more\n"
    assert [test.name for test in telling(log).tests] == [head.removeprefix("ERROR: ")]


def test_the_same_log_says_the_same_twice() -> None:
    """G22: what a prompt says depends on nothing but the log."""
    assert telling(log_of("pytest")) == telling(log_of("pytest"))
