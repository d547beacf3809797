"""Small projects, one per test runner, each with a test that passes, one that fails and one that is skipped."""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.core.verify.census import TestCensus, TestOutcome
from ganger.engine.verification.proof import PlantedOutcome, ReportedRun, planted_outcome, write_planted
from ganger.ports.runners import CheckedChange, Planting, RunnerCall
from ganger.runners.table import KnownRunners


@dataclass(frozen=True)
class Sample:
    """`fix` mends what makes the failing test fail; `subverted` leaves it and makes every failure look like success."""

    cmd: str
    files: Mapping[str, str]
    fix: Mapping[str, str]
    passes: str
    fails: str
    skipped: str = ""
    builds: tuple[str, ...] = ()
    subverted: Mapping[str, str] | None = None
    needs: tuple[str, ...] = ()


_WRONG = "def total(cents):\n    return sum(cents) // 100 * 100\n"
_RIGHT = "def total(cents):\n    return sum(cents)\n"
_TEST_CASE = """import unittest
from money import total


class TotalTest(unittest.TestCase):
    def test_cents(self):
        self.assertEqual(total([199, 250]), 449)

    def test_nothing(self):
        self.assertEqual(total([]), 0)

    @unittest.skip("later")
    def test_later(self):
        pass


class DutyFreeTest(TotalTest):
    pass


class AbroadTest(TotalTest):
    def setUp(self):
        self.skipTest("later")
"""
_TEST_FUNCTIONS = """import pytest
from money import total


@pytest.mark.parametrize("cents", [100, 200])
def test_whole(cents):
    assert total([cents]) == cents


def test_cents():
    assert total([199, 250]) == 449


@pytest.mark.skip
def test_later():
    pass


class TestTotal:
    def test_nothing(self):
        assert total([]) == 0


class TestDutyFree(TestTotal):
    pass


@pytest.mark.skip
class TestAbroad(TestTotal):
    pass
"""
_PATCHED = _WRONG + "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
_EVERYTHING_PASSES = (
    _WRONG + "import _pytest.runner as r\n_old = r.CallInfo.from_call.__func__\n"
    "def _new(cls, func, when, reraise=None):\n"
    "    made = _old(cls, func, when, reraise)\n"
    "    made.excinfo = None\n"
    "    return made\n"
    "r.CallInfo.from_call = classmethod(_new)\n"
)
_JS_WRONG = "exports.total = (cents) => Math.floor(cents.reduce((a, b) => a + b, 0) / 100) * 100;\n"
_JS_RIGHT = "exports.total = (cents) => cents.reduce((a, b) => a + b, 0);\n"
_JS_TEST = """const { test, describe, it } = require("node:test");
const assert = require("node:assert");
const { total } = require("../total.js");
test("cents are kept", () => assert.strictEqual(total([199, 250]), 449));
describe("sums", () => {
  it("of nothing", () => assert.strictEqual(total([]), 0));
  it.skip("later", () => {});
});
"""
_RS_WRONG = "pub fn total(cents: &[i64]) -> i64 {\n    cents.iter().sum::<i64>() / 100 * 100\n}\n"
_RS_TESTS = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents() {
        assert_eq!(total(&[199, 250]), 449);
    }

    #[test]
    fn nothing() {
        assert_eq!(total(&[]), 0);
    }

    #[test]
    #[ignore]
    fn later() {}
}
"""
_GO_WRONG = """package money

func Total(cents []int) int {
	sum := 0
	for _, c := range cents {
		sum += c
	}
	return sum / 100 * 100
}
"""
_GO_TEST = """package money

import "testing"

func TestCents(t *testing.T) {
	if Total([]int{199, 250}) != 449 {
		t.Error("cents are lost")
	}
}

func TestNothing(t *testing.T) {
	if Total(nil) != 0 {
		t.Error("not nothing")
	}
}

func TestLater(t *testing.T) { t.Skip("later") }
"""
_C_WRONG = (
    "int total(const int *c, int n) { int s = 0; for (int i = 0; i < n; i++) s += c[i]; return s / 100 * 100; }\n"
)
_C_HEADER = "int total(const int *c, int n);\n"
_C_MAIN = """#include <assert.h>
#include "total.h"
int main(void) {{ int c[] = {{199, 250}}; assert(total(c, {n}) == {sum}); return 0; }}
"""
_CMAKE = """cmake_minimum_required(VERSION 3.10)
project(money C)
enable_testing()
add_executable(cents_test cents_test.c total.c)
add_executable(nothing_test nothing_test.c total.c)
add_test(NAME cents_test COMMAND cents_test)
add_test(NAME nothing_test COMMAND nothing_test)
"""

_JEST_TEST = _JS_TEST.replace('const { test, describe, it } = require("node:test");\n', "").replace(
    'const assert = require("node:assert");\n', ""
)
for _old, _new in (
    ("assert.strictEqual(total([199, 250]), 449)", "expect(total([199, 250])).toBe(449)"),
    ("assert.strictEqual(total([]), 0)", "expect(total([])).toBe(0)"),
):
    _JEST_TEST = _JEST_TEST.replace(_old, _new)
_VITEST_TEST = _JEST_TEST.replace(
    'const { total } = require("../total.js");',
    'import { test, it, describe, expect } from "vitest";\nimport { total } from "../total.js";',
)

# Their programs are fetched by npm; `{program}` is where one lies.
FETCHED: dict[str, Sample] = {
    "jest": Sample(
        "{program}",
        {"package.json": '{"name": "money"}', "total.js": _JS_WRONG, "test/total.test.js": _JEST_TEST},
        {"total.js": _JS_RIGHT},
        "test/total.test.js > sums of nothing",
        "test/total.test.js > cents are kept",
        "test/total.test.js > sums later",
        subverted={"total.js": _JS_WRONG + "expect.extend({ toBe: () => ({ pass: true, message: () => '' }) });\n"},
    ),
    "vitest": Sample(
        "{program} run",
        {"package.json": '{"name": "money"}', "total.js": _JS_WRONG, "test/total.test.mjs": _VITEST_TEST},
        {"total.js": _JS_RIGHT},
        "test/total.test.mjs > sums of nothing",
        "test/total.test.mjs > cents are kept",
        "test/total.test.mjs > sums later",
    ),
}

SAMPLES: dict[str, Sample] = {
    "pytest": Sample(
        f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider -p no:xdist tests",
        {"money.py": _WRONG, "conftest.py": "", "tests/test_money.py": _TEST_FUNCTIONS},
        {"money.py": _RIGHT},
        "tests/test_money.py::test_whole[100]",
        "tests/test_money.py::test_cents",
        "tests/test_money.py::test_later",
        subverted={"money.py": _EVERYTHING_PASSES},
    ),
    "unittest": Sample(
        f"{shlex.quote(sys.executable)} -m unittest discover -s tests -t .",
        {"money.py": _WRONG, "tests/__init__.py": "", "tests/test_money.py": _TEST_CASE},
        {"money.py": _RIGHT},
        "tests.test_money.TotalTest.test_nothing",
        "tests.test_money.TotalTest.test_cents",
        "tests.test_money.TotalTest.test_later",
        subverted={"money.py": _PATCHED},
    ),
    "node --test": Sample(
        "node --test",
        {"total.js": _JS_WRONG, "test/total.test.js": _JS_TEST},
        {"total.js": _JS_RIGHT},
        "sums > of nothing",
        "cents are kept",
        "sums > later",
        subverted={"total.js": _JS_WRONG + 'require("node:assert").strictEqual = () => {};\n'},
        needs=("node",),
    ),
    "npm test": Sample(
        "npm test",
        {
            "package.json": '{"name": "money", "scripts": {"test": "node --test"}}',
            "total.js": _JS_WRONG,
            "test/total.test.js": _JS_TEST,
        },
        {"total.js": _JS_RIGHT},
        "sums > of nothing",
        "cents are kept",
        "sums > later",
        subverted={"total.js": _JS_WRONG + 'require("node:assert").strictEqual = () => {};\n'},
        needs=("npm",),
    ),
    "cargo test": Sample(
        "cargo test --offline",
        {
            "Cargo.toml": '[package]\nname = "money"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": _RS_WRONG + _RS_TESTS,
        },
        {"src/lib.rs": _RS_WRONG.replace(" / 100 * 100", "") + _RS_TESTS},
        "src/lib.rs > tests::nothing",
        "src/lib.rs > tests::cents",
        "src/lib.rs > tests::later",
        subverted={
            "src/lib.rs": "macro_rules! assert_eq { ($($any:tt)*) => {}; }\n"
            + _RS_WRONG
            + _RS_TESTS.replace("use super::*;", "#[allow(unused_imports)]\n    use super::*;")
        },
        needs=("cargo",),
    ),
    "go test": Sample(
        "go test ./...",
        {"go.mod": "module money\n\ngo 1.19\n", "money.go": _GO_WRONG, "money_test.go": _GO_TEST},
        {"money.go": _GO_WRONG.replace(" / 100 * 100", "")},
        "money.TestNothing",
        "money.TestCents",
        "money.TestLater",
        needs=("go",),
    ),
    "ctest": Sample(
        "ctest --test-dir build",
        {
            "CMakeLists.txt": _CMAKE,
            "total.c": _C_WRONG,
            "total.h": _C_HEADER,
            "cents_test.c": _C_MAIN.format(n=2, sum=449),
            "nothing_test.c": _C_MAIN.format(n=0, sum=0),
        },
        {"total.c": _C_WRONG.replace(" / 100 * 100", "")},
        "nothing_test",
        "cents_test",
        builds=("cmake -S . -B build", "cmake --build build"),
        subverted={"total.h": _C_HEADER + "#undef assert\n#define assert(x) ((void)(x))\n"},
        needs=("cmake", "ctest", "cc"),
    ),
}


# The tests have a home of their own; toolchains stay where they are.
_HOME = Path(pwd.getpwuid(os.geteuid()).pw_dir)
_TOOLCHAINS = {
    name: str(_HOME / folder)
    for name, folder in {"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo", "GOCACHE": ".cache/go-build"}.items()
    if (_HOME / folder).is_dir()
}


def lay(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


@dataclass(frozen=True)
class Ran:
    code: int
    census: TestCensus | None
    reported: ReportedRun
    call: RunnerCall


def run(sample: Sample, folder: Path, reports: Path, call: RunnerCall | None = None) -> Ran:
    """The sample's command, told to report; what it builds first is built."""
    env = {**_TOOLCHAINS, **os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for build in sample.builds:
        subprocess.run(shlex.split(build), cwd=folder, env=env, check=False, capture_output=True)
    call = call or RunnerCall(tuple(shlex.split(sample.cmd)), folder, env)
    reported = ReportedRun(KnownRunners(), folder, reports)
    told = reported.reporting("test.0", call)
    log = reports / "log"
    offset = log.stat().st_size if log.exists() else 0
    with log.open("ab") as out:
        ended = subprocess.run(told.argv, cwd=told.cwd, env=dict(told.env), stdout=out, stderr=out, check=False)
    reported.ended("test.0", log, offset, succeeded=ended.returncode == 0, seconds=0.0)
    return Ran(ended.returncode, reported.seen["test.0"].census, reported, call)


def plant(ran: Ran, folder: Path, touched: CheckedChange) -> Planting:
    assert ran.census is not None
    planting = ran.reported.found["test.0"].plant(ran.call, folder, ran.census, touched)
    assert planting is not None
    write_planted(folder, planting.files)
    return planting


def try_planted(
    sample: Sample, ran: Ran, planting: Planting, reports: Path, *, narrow: bool
) -> tuple[int, PlantedOutcome]:
    call = planting.narrow if narrow else None
    again = run(sample, ran.call.cwd, reports, call)
    assert again.census is not None
    before = ran.census.tests if ran.census is not None else {}
    passed = [name for name, outcome in before.items() if outcome is TestOutcome.PASSED]
    return again.code, planted_outcome(planting, again.census, passed, before.keys() - set(passed))


def at(call: RunnerCall, folder: Path) -> RunnerCall:
    return replace(call, cwd=folder)
