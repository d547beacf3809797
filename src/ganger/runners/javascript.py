"""Node's own runner, jest and vitest."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.core.verify.census import TestCensus, TestOutcome
from ganger.ports.runners import CheckedChange, PlantedTest, Planting, RunnerCall
from ganger.runners.calls import Program, with_words
from ganger.runners.marks import choose, near_tests, plain_file, random_word
from ganger.runners.reports import read_jest, read_json_lines

_NODE_REPORT = Path(__file__).with_name("node_report.mjs")
_OPTIONS = "NODE_OPTIONS"


@dataclass(frozen=True, slots=True)
class NodeTest:
    """Configured by its environment variable, which also works through npm."""

    program: Program
    name: str = "node --test"
    certain: bool = True
    rebuilds: bool = False
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        options = (
            "--test-reporter=spec --test-reporter-destination=stdout "
            f'--test-reporter="{_NODE_REPORT}" --test-reporter-destination="{report}"'
        )
        given = call.env.get(_OPTIONS, "")
        return replace(call, env={**call.env, _OPTIONS: f"{given} {options}".strip()})

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        census = read_json_lines(report, root)
        if census is None:
            return None
        # A file without tests, or one that ended before its tests did, is reported like a test.
        known = {n: o for n, o in census.tests.items() if not (n.endswith(census.files.get(n, " ")) and n != "")}
        return TestCensus(known, census.failures, census.files)

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        made = _appended(root, census, touched, _node_test)
        if made is None:
            return None
        files, tests = made
        plain = "--test" in call.argv and not self.program.script and call.argv[-1] == "--test"
        narrow = replace(call, argv=(*call.argv, *files)) if plain else None
        return Planting(files, tests, narrow)


def _node_test(file: str, root: Path, title: str, words: str) -> str:
    test, check = f"_{random_word()}", f"_{random_word()}"
    if _is_module(file, root):
        loaded = f'import {{ test as {test} }} from "node:test"; import {check} from "node:assert";'
    else:
        loaded = f'const {{ test: {test} }} = require("node:test"), {check} = require("node:assert");'
    one, other = random_word(), random_word()
    body = f'() => {{ {check}.strictEqual("{one}", "{other}", "{words}"); }}'
    return f'\n;{loaded}\n{test}("{title}", {body});\n'


def _is_module(file: str, root: Path) -> bool:
    if file.endswith((".mjs", ".mts")):
        return True
    if file.endswith((".cjs", ".cts")):
        return False
    for folder in (root / file).parents:
        try:
            return bool(json.loads((folder / "package.json").read_text(encoding="utf-8")).get("type") == "module")
        except (OSError, ValueError, AttributeError):
            if folder == root:
                return False
    return False


@dataclass(frozen=True, slots=True)
class Jest:
    program: Program
    name: str = "jest"
    certain: bool = True
    rebuilds: bool = False
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        return replace(call, argv=with_words(call.argv, self.program, "--json", f"--outputFile={report}"))

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        return read_jest(report, root)

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        made = _appended(root, census, touched, _jest_test)
        if made is None:
            return None
        files, tests = made
        return Planting(files, tests, _only_files(call, self.program, root, files))


def _jest_test(file: str, root: Path, title: str, words: str) -> str:
    return f'\n;test("{title}", () => {{ expect("{random_word()}").toBe("{words}"); }});\n'


@dataclass(frozen=True, slots=True)
class Vitest:
    program: Program
    name: str = "vitest"
    certain: bool = True
    rebuilds: bool = False
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        words = ("--reporter=default", "--reporter=json", f"--outputFile.json={report}")
        at, argv = self.program.rest, call.argv
        if not self.program.script and argv[at : at + 1] == ("run",):
            return replace(call, argv=(*argv[: at + 1], *words, *argv[at + 1 :]))
        return replace(call, argv=with_words(argv, self.program, *words))

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        return read_jest(report, root)

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        made = _appended(root, census, touched, _vitest_test)
        if made is None:
            return None
        files, tests = made
        return Planting(files, tests, _only_files(call, self.program, root, files))


def _vitest_test(file: str, root: Path, title: str, words: str) -> str:
    test, check = f"_{random_word()}", f"_{random_word()}"
    loaded = f'import {{ test as {test}, expect as {check} }} from "vitest";'
    return f'\n;{loaded}\n{test}("{title}", () => {{ {check}("{random_word()}").toBe("{words}"); }});\n'


def _only_files(call: RunnerCall, program: Program, root: Path, files: dict[str, bytes]) -> RunnerCall | None:
    """Adds the files, if the command names none."""
    if program.script or any(not word.startswith("-") and word != "run" for word in call.argv[program.rest :]):
        return None
    return replace(call, argv=(*call.argv, *files))


def _appended(
    root: Path, census: TestCensus, touched: CheckedChange, text: object
) -> tuple[dict[str, bytes], tuple[PlantedTest, ...]] | None:
    """One failing test at the end of a few test files, after the modules they load have run."""
    assert callable(text)
    passed = [name for name, outcome in census.tests.items() if outcome is TestOutcome.PASSED]
    files: dict[str, bytes] = {}
    tests: list[PlantedTest] = []
    for name in choose(near_tests(passed, root, census, touched), passed):
        file = census.files.get(name, "")
        path = plain_file(root, file) if file not in files else None
        if path is None:
            continue
        title, words = random_word(), random_word()
        files[file] = path.read_bytes() + str(text(file, root, title, words)).encode()
        tests.append(PlantedTest(title, words))
    return (files, tuple(tests)) if files else None
