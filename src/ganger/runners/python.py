"""pytest, also when started by make and the like, and unittest."""

from __future__ import annotations

import posixpath
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.core.verify.census import TestCensus, TestOutcome, TestReport, census_of
from ganger.ports.runners import CheckedChange, Planting, RunnerCall
from ganger.runners.calls import Program
from ganger.runners.marks import choose, near_tests, plain_file
from ganger.runners.python_plants import Host, Plants, plant
from ganger.runners.reports import JunitCase, read_json_lines, read_junit

_OPTIONS = "PYTEST_ADDOPTS"
_UNITTEST_REPORT = Path(__file__).with_name("unittest_report.py")


@dataclass(frozen=True, slots=True)
class Pytest:
    """Configured by its environment variable, which works whatever starts it."""

    certain: bool
    name: str = "pytest"
    rebuilds: bool = False
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        return _with_options(call, f"--junitxml={shlex.quote(str(report))} -o junit_family=xunit1")

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        cases = read_junit(report)
        if cases is None:
            return None
        # A case without a class is a file that could not be loaded.
        return census_of(_pytest_report(case) for case in cases if case.attributes.get("classname"))

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        plants = _planted(call, root, census, touched)
        if not plants.tests:
            return None
        words = " or ".join(dict.fromkeys(plants.words))
        chosen = any(word == "-k" or word.startswith("-k") for word in call.argv)
        narrow = None if chosen else _with_options(call, f"-k {shlex.quote(words)}")
        return Planting(plants.files, tuple(plants.tests), narrow)


def _with_options(call: RunnerCall, options: str) -> RunnerCall:
    given = call.env.get(_OPTIONS, "")
    return replace(call, env={**call.env, _OPTIONS: f"{given} {options}".strip()})


def _pytest_report(case: JunitCase) -> TestReport:
    file = posixpath.normpath(case.attributes.get("file", ""))
    module = file.removesuffix(".py").replace("/", ".")
    inner = case.attributes["classname"].removeprefix(module).strip(".")
    parts = [file, *(inner.split(".") if inner else ()), case.attributes.get("name", "")]
    return TestReport("::".join(parts), case.outcome, case.words, file)


@dataclass(frozen=True, slots=True)
class Unittest:
    """Runs `unittest_report.py` with the same interpreter: it calls unittest and writes the report."""

    program: Program
    name: str = "unittest"
    certain: bool = True
    rebuilds: bool = False
    needs_build: bool = False

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        at, argv = self.program.rest - 2, call.argv
        return replace(call, argv=(*argv[:at], str(_UNITTEST_REPORT), str(report), *argv[at + 2 :]))

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        census = read_json_lines(report, root)
        if census is None:
            return None
        known = {name: outcome for name, outcome in census.tests.items() if not name.startswith("unittest.loader.")}
        return TestCensus(known, census.failures, census.files)

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        plants = _planted(call, root, census, touched)
        if not plants.tests:
            return None
        chosen = any(word.startswith("-k") for word in call.argv)
        options = [part for word in dict.fromkeys(plants.words) for part in ("-k", word)]
        return Planting(plants.files, tuple(plants.tests), None if chosen else _with_last(call, options))


def _with_last(call: RunnerCall, options: list[str]) -> RunnerCall:
    return replace(call, argv=(*call.argv, *options))


def _planted(call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Plants:
    """In a few tests: those that the change fixed, then those of files that name what it touched. One fixed test stays
    unchanged: it must still pass."""
    passed = [name for name, outcome in census.tests.items() if outcome is TestOutcome.PASSED and "#" not in name]
    near = near_tests(passed, root, census, touched)
    stays = choose([name for name in near if name in touched.fixed_tests], (), 1)
    plants = Plants()
    by_file: dict[str, list[Host]] = defaultdict(list)
    for name in dict.fromkeys((*stays, *choose(near, passed))):
        file = census.files.get(name, "")
        within = call.cwd.relative_to(root).as_posix() if call.cwd.is_relative_to(root) else "."
        named = [file, posixpath.normpath(f"{within}/{file}")] if file.endswith(".py") else []
        place = next((path for one in named if (path := plain_file(root, one)) is not None), None)
        if place is not None:
            host = replace(_host(name, file), stays=name in stays)
            by_file[place.resolve().relative_to(root.resolve()).as_posix()].append(host)
    for file, hosts in by_file.items():
        plant(file, (root / file).read_bytes(), list(_distinct(hosts)), plants)
    return plants


def _distinct(hosts: list[Host]) -> Iterator[Host]:
    """Each function once: the cases of a parametrised test share one."""
    seen: set[tuple[tuple[str, ...], str]] = set()
    for host in hosts:
        if (host.classes, host.function) not in seen:
            seen.add((host.classes, host.function))
            yield host


def _host(name: str, file: str) -> Host:
    """Reads `file::Class::test[case]` or `package.module.Class.test`."""
    if "::" in name:
        _, *classes, function = name.split("::")
        return Host(name, tuple(classes), function.partition("[")[0])
    parts = name.split(".")
    return Host(name, (parts[-2],), parts[-1])
