"""go test, cargo test and ctest: runners that build the tests first."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.core.verify.census import TestCensus, TestOutcome, TestReport, census_of
from ganger.ports.runners import CheckedChange, PlantedTest, Planting, RunnerCall
from ganger.runners.calls import Program
from ganger.runners.marks import choose, random_word, shuffled
from ganger.runners.reports import json_lines, read_junit

_GO_REPORT = Path(__file__).with_name("go_report.py")
_GO_OUTCOMES = {"pass": TestOutcome.PASSED, "fail": TestOutcome.FAILED, "skip": TestOutcome.SKIPPED}
_MOST_WORDS = 4000
# Also matches an import under another name.
_GO_TESTING = re.compile(rb'^[ \t]*(?:import[ \t]+)?(?:(?!import\b)(\w+)[ \t]+)?"testing"[ \t]*$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GoTest:
    program: Program
    name: str = "go test"
    certain: bool = True
    rebuilds: bool = True
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        at, argv = self.program.rest + 1, call.argv
        json = () if "-json" in argv else ("-json",)
        own = (os.path.realpath(sys.executable), "-I", "-S", str(_GO_REPORT), str(report))
        go = shutil.which(argv[self.program.at], path=call.env.get("PATH"))
        return replace(call, argv=(*own, *argv[:at], *json, *argv[at:]), programs=(go,) if go else ())

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        lines = json_lines(report)
        return None if lines is None else census_of(_go_reports(lines))

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        """One failing test, in a package that the change touched, else in any package."""
        folders = {Path(file).parent for file in touched.files if file.endswith(".go")}
        found = [file for folder in folders for file in sorted((root / folder).glob("*_test.go"))]
        found = found or sorted(root.rglob("*_test.go"))
        files: dict[str, bytes] = {}
        tests: list[PlantedTest] = []
        for file in shuffled(map(str, found))[:1]:
            source = Path(file).read_bytes()
            own = _GO_TESTING.search(source)
            if own is None:
                continue
            name, words = f"Test{random_word().title()}", random_word()
            alias = (own.group(1) or b"testing").decode()
            more = f'\nfunc {name}(t *{alias}.T) {{ t.Fatal("{words}") }}\n'
            files[Path(file).relative_to(root).as_posix()] = source + more.encode()
            tests.append(PlantedTest(name, words))
        if not files or any(word.startswith(("-run", "--run")) for word in call.argv):
            return None
        return Planting(files, tuple(tests))


def _go_reports(lines: list[dict[str, object]]) -> Iterator[TestReport]:
    """Go itself reads output that looks like another test's result as that result. So of several the best counts, and
    exit code and planted tests decide whether all tests passed."""
    said: dict[str, str] = {}
    found: dict[str, TestOutcome] = {}
    for told in lines:
        if not told.get("Test"):
            continue
        name = f"{told.get('Package', '')}.{told['Test']}"
        if told.get("Action") == "output":
            said[name] = (said.get(name, "") + str(told.get("Output", "")))[-_MOST_WORDS:]
        elif told.get("Action") in _GO_OUTCOMES:
            outcome = _GO_OUTCOMES[str(told["Action"])]
            found[name] = TestOutcome.PASSED if TestOutcome.PASSED in (outcome, found.get(name)) else outcome
    for name, outcome in found.items():
        yield TestReport(name, outcome, said.get(name, ""))


_CARGO_TARGET = re.compile(r"\s+(?:Running|Doc-tests) (?P<what>.*?)(?: \([^)]*\))?$")
_CARGO_TEST = re.compile(r"test (?P<name>\S.*?) \.\.\. (?P<outcome>ok|FAILED|ignored)\b")
_CARGO_WORDS = re.compile(r"---- (?P<name>\S.*?) stdout ----$")
_CARGO_OUTCOMES = {"ok": TestOutcome.PASSED, "FAILED": TestOutcome.FAILED, "ignored": TestOutcome.SKIPPED}
_CARGO_END = re.compile(r"test result: (?:ok|FAILED)\. ")


@dataclass(frozen=True, slots=True)
class CargoTest:
    """Its report is its output: the stable toolchain has no other."""

    program: Program
    name: str = "cargo test"
    certain: bool = True
    rebuilds: bool = True
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        return call

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        lines = output.splitlines()
        if not any(map(_CARGO_END.match, lines)):
            return None
        return census_of(_cargo_reports(lines))

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        """At the end of a touched source file that has tests, else of a file in `tests`."""
        rust = [root / file for file in touched.files if file.endswith(".rs")]
        inner = [file for file in rust if b"#[cfg(test)]" in _bytes(file)]
        tests = [file for file in sorted(root.rglob("tests/*.rs")) if b"#[test]" in _bytes(file)]
        within = inner or tests or [file for file in sorted(root.rglob("src/*.rs")) if b"#[cfg(test)]" in _bytes(file)]
        if not within:
            return None
        file = Path(shuffled(map(str, within))[0])
        word, words = random_word(), random_word()
        check = f'assert_eq!("{random_word()}", "{random_word()}", "{words}");'
        module = f"\n#[cfg(test)]\nmod {random_word()} {{\n    #[test]\n    fn {word}() {{ {check} }}\n}}\n"
        planted = {file.relative_to(root).as_posix(): _bytes(file) + module.encode()}
        return Planting(planted, (PlantedTest(word, words),))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _cargo_reports(lines: list[str]) -> Iterator[TestReport]:
    target, found = "", []
    words: dict[str, str] = {}
    speaking = ""
    for line in lines:
        if (seen := _CARGO_TARGET.match(line)) is not None:
            target, speaking = seen["what"].removeprefix("unittests "), ""
        elif (test := _CARGO_TEST.match(line)) is not None:
            found.append((f"{target} > {test['name'].removesuffix(' - should panic')}", test["outcome"]))
        elif (own := _CARGO_WORDS.match(line)) is not None:
            speaking = f"{target} > {own['name']}"
        elif line.startswith("failures:") or _CARGO_END.match(line):
            speaking = ""
        elif speaking:
            words[speaking] = (words.get(speaking, "") + line + "\n")[-_MOST_WORDS:]
    for name, outcome in found:
        yield TestReport(name, _CARGO_OUTCOMES[outcome], words.get(name, ""))


def _failing_c(source: bytes) -> bytes:
    """The compiler must not see that the code after this is never reached, or it would no longer link the product."""
    word, words = random_word().encode(), random_word().encode()
    if re.search(rb"\bassert\s*\(", source):
        return b' volatile int %s = 0; assert(%s && "%s");' % (word, word, words)
    return b" volatile int %s = 0; if (%s == 0) return 97;" % (word, word)


_MAIN = re.compile(rb"\bint\s+main\s*\([^)]*\)\s*\{")


@dataclass(frozen=True, slots=True)
class Ctest:
    program: Program
    name: str = "ctest"
    certain: bool = True
    rebuilds: bool = True
    needs_build: bool = True

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        return replace(call, argv=(*call.argv, "--output-junit", str(report)))

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        cases = read_junit(report)
        if cases is None:
            return None
        return census_of(
            TestReport(
                case.attributes.get("name", ""),
                TestOutcome.SKIPPED if case.attributes.get("status") in ("notrun", "disabled") else case.outcome,
                case.words,
            )
            for case in cases
        )

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        """The main function of a test program fails at its start, by assertion or exit code as in its source."""
        sources = [p for ending in ("*.c", "*.cc", "*.cpp", "*.cxx") for p in sorted(root.rglob(ending))]
        named = {
            name: [p for p in sources if p.stem in (name, f"test_{name}", f"{name}_test")] for name in census.tests
        }
        passed = [name for name, outcome in census.tests.items() if outcome is TestOutcome.PASSED]
        mended = [name for name in passed if name in touched.fixed_tests]
        for name in choose(mended, passed, len(passed)):
            for file in named[name]:
                source = file.read_bytes()
                body = _MAIN.search(source)
                if body is None:
                    continue
                changed = source[: body.end()] + _failing_c(source) + source[body.end() :]
                return Planting({file.relative_to(root).as_posix(): changed}, (PlantedTest(name, whole=True),))
        return None
