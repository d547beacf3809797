"""What a green check proves: every test that ran before has run again, and a failing test is reported as failing.

Exit code 0 alone proves little: code under test can end the process that runs the tests, or change the runner. Known
runners therefore report their tests by name, before the change and with it; and tests that must be reported as failing
are planted in a copy of the project.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ganger.core.verify.census import TestCensus, TestOutcome, regression, without_case
from ganger.local.run_folder import named_os_errors, open_log
from ganger.ports.runners import KnownRunner, Planting, RunnerCall, Runners

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST_OUTPUT = 64 << 20
_MOST_KEPT = 64
# Few tests fail by chance; if many fail, the change is broken.
MOST_FLAKY = 3


@dataclass(frozen=True, slots=True)
class CommandCensus:
    """The result of one command of a check. `census` is None if its runner left no report."""

    census: TestCensus | None
    succeeded: bool


ProfileCensus = Mapping[str, CommandCensus]


def check_folder() -> str:
    """A name that reveals neither what is checked there nor why."""
    return secrets.token_hex(8)


def tells_anything(census: ProfileCensus) -> bool:
    return any(seen.census is not None for seen in census.values())


# A folder, and those outside it that it leads to.
Copied = tuple[Path, tuple[Path, ...]]


@dataclass(frozen=True)
class Proof:
    """What a verdict on one change is compared with.

    `base` runs the checks without the change, unless that was done before; `known` only looks it up. `copy` makes a new
    copy of the project with the change, for planting, and gives None if there is no place for one. `may_swap`: the
    checked folder exists for this check alone, so the copy may take its place. `without` is the project without the
    change, and None if there is no place for that. `promised` is what the change was to create.
    """

    base: Callable[[], Awaitable[ProfileCensus]]
    known: Callable[[], Awaitable[ProfileCensus | None]]
    without: Callable[[], AbstractAsyncContextManager[Copied | None]]
    files: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    may_change_tests: bool = False
    copy: Callable[[], AbstractAsyncContextManager[Copied | None]] | None = None
    may_swap: bool = True


@dataclass
class ReportedRun:
    """Observes the commands of one verification in one folder. `calls` are those that may start a known runner,
    `readable` are folders outside that they need."""

    runners: Runners
    root: Path
    reports: Path
    readable: tuple[Path, ...] = ()
    calls: dict[str, RunnerCall] = field(default_factory=dict)
    found: dict[str, KnownRunner] = field(default_factory=dict)
    seen: dict[str, CommandCensus] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    _reports: dict[str, Path] = field(default_factory=dict)

    def reporting(self, key: str, call: RunnerCall) -> RunnerCall:
        runner = self.runners.of(call)
        if runner is None:
            return call
        self.calls[key], self.found[key] = call, runner
        self._reports[key] = self.reports / secrets.token_hex(8)
        return runner.reporting(call, self._reports[key])

    def ended(self, key: str, log: Path, offset: int, *, succeeded: bool, seconds: float) -> None:
        runner = self.found.get(key)
        if runner is not None:
            self.seen[key] = CommandCensus(self._read(runner, key, _output(log, offset)), succeeded)
            self.seconds[key] = seconds

    def _read(self, runner: KnownRunner, key: str, output: str) -> TestCensus | None:
        """The author of a report is not trusted: an unreadable report counts as none."""
        try:
            return runner.read(self._reports[key], output, self.root)
        except (ValueError, TypeError, KeyError, AttributeError, OSError, RecursionError):
            return None


def _output(log: Path, offset: int) -> str:
    try:
        with open_log(log) as file:
            file.seek(offset)
            return file.read(_LARGEST_OUTPUT).decode("utf-8", "replace")
    except OSError:
        return ""


@contextlib.contextmanager
def report_folder(above: Path, owner_of: Path) -> Iterator[Path]:
    """Where runners write their reports: a folder for one check, owned by the owner of the folder it runs in."""
    folder = above / f"reports-{secrets.token_hex(8)}"
    with named_os_errors(folder):
        folder.mkdir(mode=0o700, parents=True)
        owner = owner_of.stat()
        if os.geteuid() == 0:
            os.chown(folder, owner.st_uid, owner.st_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- the census -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unproved:
    """Why a green check is not accepted. `names` are the tests concerned, if there are any."""

    key: str
    code: str
    sentence: str
    names: tuple[str, ...] = ()


def unproved(base: ProfileCensus, reported: ReportedRun, *, may_change_tests: bool) -> list[Unproved]:
    """What the report of each command lacks, compared with the same command without the change."""
    found = (
        _unproved(key, runner, base.get(key), reported.seen[key], may_change_tests=may_change_tests)
        for key, runner in reported.found.items()
        if key in reported.seen and reported.seen[key].succeeded
    )
    return [one for one in found if one is not None]


def _unproved(
    key: str, runner: KnownRunner, was: CommandCensus | None, now: CommandCensus, *, may_change_tests: bool
) -> Unproved | None:
    census = was.census if was is not None else None
    if now.census is None:
        # It succeeded on trusted code and reported nothing: it cannot report here.
        never = was is not None and was.succeeded and census is None
        if never or (not runner.certain and census is None):
            return None
        return Unproved(
            key, "TESTS_UNREPORTED", f"{runner.name} ended with success and left no whole report of its tests"
        )
    worse = regression(census or TestCensus(), now.census, may_change_tests=may_change_tests)
    if worse:
        return Unproved(key, "TESTS_WORSE", worse.sentence, worse.names)
    if now.census.failed and not is_masked(was):
        names = now.census.failed
        return Unproved(
            key, "TESTS_WORSE", f"{runner.name} ended with success although tests failed: {names[0]}", names
        )
    return None


def is_masked(was: CommandCensus | None) -> bool:
    """Whether the operator's own command succeeds whatever its tests do."""
    return was is not None and was.succeeded and was.census is not None and bool(was.census.failed)


def fixed_tests(base: TestCensus | None, now: TestCensus) -> frozenset[str]:
    """Tests that pass now and did not before."""
    before = base.tests if base is not None else {}
    passed = (name for name, outcome in now.tests.items() if outcome is TestOutcome.PASSED)
    return frozenset(name for name in passed if before.get(name) is not TestOutcome.PASSED)


def chance_failures(base: ProfileCensus, reported: ReportedRun) -> tuple[str, ...]:
    """The tests that failed, if they are few and all passed without the change: it may be chance."""
    names: list[str] = []
    for key, now in reported.seen.items():
        was = base.get(key)
        if now.succeeded:
            continue
        if now.census is None or was is None or was.census is None or not now.census.failed:
            return ()
        if any(was.census.tests.get(name) is not TestOutcome.PASSED for name in now.census.failed):
            return ()
        names += now.census.failed
    return tuple(names) if len(names) <= MOST_FLAKY else ()


# --- planted tests --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlantedOutcome:
    """The result of planted tests: how many were reported as failing, and those that were reported otherwise.

    `broken` are unchanged tests that had passed, and that did not pass beside planted ones.
    """

    red: int
    green: tuple[str, ...]
    broken: tuple[str, ...] = ()


def planted_outcome(
    planting: Planting, census: TestCensus, passed: Collection[str] = (), idle: Collection[str] = ()
) -> PlantedOutcome:
    """`idle` are tests that did not pass without planted ones: a class that inherits a planted test from another class
    and skips what it inherits skips the planted one as well."""
    red, green = 0, []
    for test in planting.tests:
        names = [name for name in census.tests if (name == test.mark if test.whole else test.mark in name)]
        names = [name for name in names if name.replace(f"_{test.mark}", "") not in idle]
        if any(census.tests[name] is not TestOutcome.FAILED for name in names):
            green.append(names[0])
        elif any(test.words in census.failures.get(name, "") for name in names):
            red += 1
        elif names and test.strict:
            green.append(f"{names[0]} ({_last_line(census.failures.get(names[0], ''))})")
    planted = {without_case(test.mark) for test in planting.tests if test.whole}
    broken = [
        name
        for name in passed
        if without_case(name) not in planted
        and _is_broken(census.tests.get(name))
        and not _fails_as_planted(planting, census.failures.get(name, ""))
    ]
    return PlantedOutcome(red, tuple(green), tuple(broken))


def _last_line(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return next((line for line in lines if "AssertionError" in line), lines[-1] if lines else "")[:200]


def _fails_as_planted(planting: Planting, words: str) -> bool:
    """A class that inherits a test fails where it was planted; only that planted line has its words."""
    return any(test.words and test.words in words for test in planting.tests)


def _is_broken(outcome: TestOutcome | None) -> bool:
    """A test that was not run at all was not selected."""
    return outcome is not None and outcome is not TestOutcome.PASSED


def new_test_files(census: TestCensus, base: TestCensus | None, files: Collection[str]) -> frozenset[str]:
    """Files of the change with tests, none of which existed before."""
    before = base.tests if base is not None else {}
    old = {file for name, file in census.files.items() if name in before}
    return frozenset(file for file in census.files.values() if file in files and file not in old)


def remove_files(folder: Path, files: Collection[str]) -> None:
    """From a copy that no code has seen yet."""
    for path in files:
        (folder / path).unlink(missing_ok=True)


def write_planted(folder: Path, files: Mapping[str, bytes]) -> None:
    """Never through a link: an agent controls what is in the folder."""
    for path, data in files.items():
        *above, name = path.split("/")
        fd = os.open(folder, _DIRECTORY)
        try:
            for part in above:
                upper, fd = fd, os.open(part, _DIRECTORY, dir_fd=fd)
                os.close(upper)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=fd)
            with os.fdopen(made, "wb") as file:
                file.write(data)
        finally:
            os.close(fd)


def swap(used: Path, fresh: Path) -> None:
    """The fresh folder takes the place of the used one, with what the checks had built beside the project's files."""
    known = {entry.name for entry in fresh.iterdir()}
    aside = used.with_name(f"{used.name}.{secrets.token_hex(4)}")
    used.rename(aside)
    fresh.rename(used)
    aside.rename(fresh)
    for entry in list(fresh.iterdir()):
        if entry.name not in known:
            entry.rename(used / entry.name)


# --- what is kept ---------------------------------------------------------------------------------------------------


class CensusFiles:
    """Censuses by the evidence they belong to. A lost one is only taken again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, name: str) -> ProfileCensus | None:
        try:
            told = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            return {key: CommandCensus(_census(one["tests"]), bool(one["succeeded"])) for key, one in told.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, name: str, census: ProfileCensus) -> None:
        told = {
            key: {"succeeded": seen.succeeded, "tests": None if seen.census is None else dict(seen.census.tests)}
            for key, seen in census.items()
        }
        fresh = self._folder / f"{name}.{secrets.token_hex(4)}"
        with named_os_errors(fresh):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(told, file)
            fresh.rename(self._folder / f"{name}.json")
            self._forget_old()

    def _forget_old(self) -> None:
        """Heads move on: only the newest are needed again."""
        kept = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-_MOST_KEPT]:
            path.unlink(missing_ok=True)


def _census(tests: Mapping[str, str] | None) -> TestCensus | None:
    return None if tests is None else TestCensus({name: TestOutcome(outcome) for name, outcome in tests.items()})
