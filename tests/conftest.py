"""What every test shares: a world of its own, the `needs` marker, how long properties look."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ganger.sandboxes import landlock
from tests import slices
from tests.patience import stretched

FUZZ_EXAMPLES = os.environ.get("GANGER_FUZZ_EXAMPLES", "")
ON_CI = os.environ.get("CI") == "true"
# The tests start this project's programs thousands of times; without bytecode each start compiles everything again.
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
sys.dont_write_bytecode = False
# What the tests that were found need, of all slices.
NEEDED = pytest.StashKey[set[str]]()
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

settings.register_profile(
    "slice", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz", settings.get_profile("slice"), derandomize=False, max_examples=int(FUZZ_EXAMPLES or 60), print_blob=True
)
settings.load_profile("fuzz" if FUZZ_EXAMPLES else "slice")


def present(need: str) -> bool:
    if need == "root":
        return os.geteuid() == 0
    if need == "landlock":
        return landlock.is_there()
    return shutil.which(need) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Tests wait for processes much of their time: three for every two cores, unless a person has said how many."""
    cores = os.cpu_count() or 1
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else cores + cores // 2


def pytest_addoption(parser: pytest.Parser) -> None:
    slices.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    if not FUZZ_EXAMPLES:
        slices.fewer_examples(config)


def pytest_terminal_summary(terminalreporter: object, config: pytest.Config) -> None:
    slices.tell_cpu(config, terminalreporter)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the cases slow that a test's `brief` mark leaves out; a case that was asked for alone is never left out."""
    config.stash[NEEDED] = {need for item in items for mark in item.iter_markers("needs") for need in mark.args}
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("brief"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("brief")
        assert mark is not None
        kept = {place * len(found) // mark.args[0] for place in range(mark.args[0])}
        for place, item in enumerate(found):
            if place not in kept:
                item.add_marker(pytest.mark.slow)
    slices.choose(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """The limit of a test, too, is time of a machine that has nothing else to do."""
    if item.config.pluginmanager.hasplugin("timeout") and (limit := float(item.config.getini("timeout") or 0)):
        asked = item.config.getoption("timeout", None)
        if asked is None and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(stretched(limit) / 2))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        missing = [need for need in mark.args if not present(need)]
        if missing and ON_CI:
            pytest.fail(
                f"needs {', '.join(missing)}, and under CI=true nothing is skipped for want of it", pytrace=False
            )
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")


@pytest.fixture(autouse=True, scope="session")
def as_in_a_terminal() -> Iterator[None]:
    """What tests start ends by signals also where the tests themselves do not, as under nohup or in the background.

    Children inherit that a signal is ignored, but no handler.
    """
    ignored = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(autouse=True)
def no_process_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test has started is ended with it; a test that passes although something still runs fails."""
    started: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()
    start = subprocess.Popen.__init__

    def noted(self: subprocess.Popen[bytes], *words: object, **options: object) -> None:
        start(self, *words, **options)  # type: ignore[call-overload]
        started.add(self)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    yield
    running = [process for process in started if process.poll() is None]
    for process in running:
        process.kill()
        process.wait()
    for stream in (stream for process in started for stream in (process.stdin, process.stdout, process.stderr)):
        if stream is not None:
            stream.close()
    assert not running, f"left running: {[process.args for process in running]}"


@pytest.fixture(autouse=True, scope="session")
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No setting, git identity or secret of the person who runs the tests reaches them."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("GANGER_", "GIT_", "XDG_"))]:
            patch.delenv(name)
        patch.delenv(NO_BYTECODE, raising=False)
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        patch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        # Tests of the walls raise them; the others need not pay for them.
        patch.setenv("GANGER_SANDBOX_USE", "off")
        yield home
