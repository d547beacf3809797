"""Real logs of CI jobs: what each is known by, the same fault again, other faults, and what ended the rest."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from ganger.core.logs.causes import CLASS_OF, LogCause
from ganger.core.logs.check_logs import note_of
from ganger.core.logs.ci_logs import faults, known_by, named_files, trim
from ganger.core.logs.telling_line import first_error
from ganger.core.vocabulary import FailureClass
from tests.core.ci_log_corpus import DRESSES, causes, confused, corpus, signature

TOOLS = sorted({fault.partition("/")[0] for fault in corpus()})
SIGNALS = {
    "pytest/port": "tests/test_api.py::test_port: AssertionError: assert 4 == 3",
    "pytest/import": "tests/test_api.py: ModuleNotFoundError: No module named 'nosuchmodule'",
    "unittest/port": "tests.test_api.Api.test_port: AssertionError: 4 != 3",
    "jest/port": "test/api.test.js::api › port is a number: expect(received).toBe(expected) // Object.is equality; "
    "Expected: 3; Received: 4",
    "vitest/raises": "test/api.test.js > api > name has no blanks: TypeError: text.trimmed is not a function",
    "node/port": "test/api.test.js::port is a number: AssertionError: Expected values to be strictly equal: 4 !== 3",
    "go/add": "github.com/dev/app/calc::TestAdd: Add(1, 2) = -1, want 3",
    "go/build": "calc/calc.go:3: undefined: c",
    "cargo/add": "src/lib.rs::tests::adds: assertion `left == right` failed; left: -1; right: 3",
    "cargo/build": "src/lib.rs:2: error[E0425]: cannot find value `c` in this scope",
    "gcc/missing-header": "src/main.c:1: fatal error: nosuch.h: No such file or directory",
    "clang/undeclared": "src/main.c:4: error: use of undeclared identifier 'three'",
    "tsc/name": "src/api.ts:2: error TS2304: Cannot find name 'm'.",
    "ruff/name": "app/api.py:2: F821 Undefined name `txt`",
    "mypy/name": 'app/api.py:2: error: Name "txt" is not defined; did you mean "text"?  [name-defined]',
    "eslint/unused": "src/api.js:1: error: 'more' is assigned a value but never used no-unused-vars",
    "gradle/build": "src/main/java/com/dev/Calc.java:5: error: cannot find symbol: variable c",
    "maven/add": "com.dev.CalcTest.adds: org.opentest4j.AssertionFailedError: expected: <3> but was: <-1>",
    "make/no-rule": "make: No rule to make target 'source.txt', needed by 'app.txt'",
}
FILES = {
    "pytest/raises": ("app/api.py", "tests/test_api.py"),
    "pytest/import": ("app/api.py", "tests/test_api.py"),
    "unittest/raises": ("app/api.py", "tests/test_api.py"),
    "jest/raises": ("src/api.js", "test/api.test.js"),
    "node/raises": ("src/api.js", "test/api.test.js"),
    "vitest/raises": ("src/api.js", "test/api.test.js"),
    "go/panic": ("calc/calc.go", "calc/calc_test.go"),
    "cargo/add": ("src/lib.rs",),
    "gcc/undeclared": ("src/main.c",),
    "tsc/type": ("src/api.ts",),
    "eslint/undef": ("src/api.js",),
    "maven/raises": ("com/dev/Calc.java", "com/dev/CalcTest.java"),
    "maven/build": ("src/main/java/com/dev/Calc.java",),
}


def test_the_corpus_has_every_tool_with_faults_and_variants() -> None:
    """D06: two faults of each at the least, and each fault at least twice."""
    assert len(TOOLS) >= 16 and len(corpus()) >= 2 * len(TOOLS)
    for tool in TOOLS:
        assert sum(fault.startswith(f"{tool}/") for fault in corpus()) >= 2, tool
    assert all(len(variants) >= 2 for variants in corpus().values())
    assert all(len(log) < 20_000 for variants in corpus().values() for log in variants.values())


@pytest.mark.parametrize("fault", corpus())
def test_the_same_fault_has_one_signature_whichever_run_and_forge_prints_it(fault: str) -> None:
    """D06 T21: elsewhere, with lines moved, more tests around, workers, retries, colours, moments and groups."""
    logs = [dress(log) for log in corpus()[fault].values() for dress in DRESSES]
    assert len({signature(log) for log in logs}) == 1, [signature(log) for log in logs]
    assert len({faults(log) for log in logs}) == 1


def test_different_faults_have_different_signatures() -> None:
    """D06 T21: over every pair of the corpus; for gcc and clang the linker speaks, for make git does."""
    logs = {fault: variants for fault, variants in corpus().items() if fault != "clang/undefined"}
    others = {name: {"": log} for name, log in causes().items() if name != "network--make"}
    assert not list(confused(signature, logs | others))


def test_a_reader_that_takes_the_heading_is_caught() -> None:
    """D06: planted; each pytest log has the same first line that speaks of failures."""
    logs = {fault: variants for fault, variants in corpus().items() if fault.startswith("pytest/")}
    found = list(
        confused(lambda log: next(line for line in log.splitlines() if "====" in line and "s =" in line), logs)
    )
    assert any("pytest/port" in pair and "pytest/name" in pair for pair in found)


@pytest.mark.parametrize("planted", ["signal", "text"])
def test_a_reader_that_keeps_what_varies_is_caught(planted: str) -> None:
    """D06 T21: planted; numbers of lines differ in variants of one fault."""
    logs = {fault: variants for fault, variants in corpus().items() if fault.startswith("gcc/")}
    assert list(confused(lambda log: str(getattr(trim(log), planted)), logs))


@pytest.mark.parametrize("fault", SIGNALS)
def test_the_signal_names_the_failed_test_or_the_place_of_the_error(fault: str) -> None:
    """D06: with its reason, and never a heading."""
    assert trim(corpus()[fault]["plain"]).signal == SIGNALS[fault]


def test_the_signal_names_the_next_tests_and_the_signature_is_of_all() -> None:
    """D06: a part of the faults is another state of affairs than all of them."""
    both = corpus()["pytest/both"]["plain"]
    assert trim(both).signal.endswith("'a'; and tests/test_api.py::test_port")
    assert signature(both) != signature(corpus()["pytest/port"]["plain"])
    assert faults(corpus()["pytest/port"]["moved"]) < faults(both)


def test_order_and_number_of_jobs_make_no_other_signature() -> None:
    """D06: a fault in each job of a matrix is one fault."""
    jobs = [("test (3.12)", trim(corpus()["pytest/port"]["plain"])), ("lint", trim(corpus()["ruff/name"]["plain"]))]
    again = [("test (3.13)", jobs[0][1]), *reversed(jobs)]
    assert known_by(jobs) == known_by(again) != known_by(jobs[:1])


@pytest.mark.parametrize("fault", corpus())
def test_tests_and_builds_are_told_apart(fault: str) -> None:
    """D12: by what failed, not by the words around it."""
    builds = {"cargo/build", "cargo/type", "go/build", "go/vet", "maven/build", "gradle/build"}
    tool, _, what = fault.partition("/")
    tests = tool in ("pytest", "unittest", "jest", "vitest", "node", "go", "cargo", "maven", "gradle")
    is_build = fault in builds or what == "import" or not tests
    for log in corpus()[fault].values():
        assert trim(log).kind is (FailureClass.BUILD_ERROR if is_build else FailureClass.TEST_ERROR)


@pytest.mark.parametrize("name", causes())
def test_what_ended_a_job_that_neither_tests_nor_code_did_is_told(name: str) -> None:
    """D12: workflow, runner, disk, memory, network and time, each from the others."""
    found = trim(causes()[name])
    assert found.cause is LogCause(name.partition("--")[0]), found.signal
    assert found.kind is CLASS_OF[found.cause] and found.signal


@pytest.mark.parametrize("name", sorted({name.partition("--")[0] for name in causes()}))
def test_a_failed_test_outweighs_trouble_of_the_machine(name: str) -> None:
    """D12: what somebody can mend is not merely run again."""
    trouble = next(log for known, log in causes().items() if known.startswith(f"{name}--") and "pytest" not in known)
    found = trim(f"{trouble}\n{corpus()['pytest/port']['plain']}\n{trouble}")
    assert found.kind is FailureClass.TEST_ERROR and found.signal == SIGNALS["pytest/port"]


@pytest.mark.parametrize("fault", FILES)
def test_the_files_that_a_log_names_are_told_the_likeliest_first(fault: str) -> None:
    """D06: of the project only, whichever folder it was checked out in."""
    for log in corpus()[fault].values():
        assert named_files(log)[: len(FILES[fault])] == FILES[fault]
        assert not any(path.startswith("/") or "node_modules" in path for path in named_files(log))


PASSING = "test_{n} PASSED\nok {n} - fine in {n} ms\n[INFO] step {n} done\n"


@pytest.mark.whole
@given(fault=st.sampled_from(sorted(corpus())), before=st.integers(0, 300), behind=st.integers(0, 300))
def test_what_passes_around_a_fault_makes_no_other(fault: str, before: int, behind: int) -> None:
    """D06 T21: more tests that pass, more steps of the job."""
    log = corpus()[fault]["plain"]
    more = "".join(PASSING.format(n=n) for n in range(before)) + log + "".join(map(str.upper, "x\n" * behind))
    assert signature(more) == signature(log)


PIECES = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ["\x1b[31m", "\r", "\n", "\x1b]0;t\x07", "\u202e", "\x00", "::error file=a.c,line=1::", "##[error]"]
    ),
    st.sampled_from([log for variants in corpus().values() for log in variants.values()]).flatmap(
        lambda log: st.integers(0, len(log)).map(lambda at: log[at : at + 2_000])
    ),
)


@pytest.mark.whole
@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_log_gives_something_short_and_plain(log: str) -> None:
    """D06 G09: a log is written by whoever made the change."""
    found = trim(log)
    said = [found.signal, note_of(found.telling), known_by([("a", found)]), *found.faults, *named_files(log)]
    assert len(found.signal) <= 400 and len(found.telling.lines) <= 40 and len(found.faults) <= 500
    assert not any(char in text for text in said for char in "\x00\x1b\r\x9b\u202e\u2028\ufeff")
    assert all("\n" not in text for text in (found.signal, *found.faults)) and len(named_files(log)) <= 50


HOSTILE = {
    "heads": "\n".join(f"--- FAIL: Test{n}/{'a/' * 90} (0.00s)" for n in range(30_000)),
    "errors": "\n".join(f"src/f{n}.c:{n}:1: error: e{n} {'(' * 200}" for n in range(40_000)),
    "suites": "FAIL a.test.js\n  ● Test suite failed to run\n" * 30_000,
    "rules": "\n".join(["_" * 280 + " x " + "_" * 5] * 8_000),
    "places": "\n".join([f"E   {'a/b.c:1:' * 30}" for _ in range(8_000)]),
    "short": "\n".join(f"{n:x} error" for n in range(300_000)),
    "rewritten": "\r".join(f"error {n}" for n in range(300_000)),
    "roots": "\n".join(f"/home/runner/work/a{n}/b/x.c:1: error: no" for n in range(20_000)),
    "tracebacks": "Traceback (most recent call last):\n" * 60_000,
    "moments": "2026-11-15T05:32:03.65Z 00O+x" * 90_000,
    "long": "x" * 5_000_000,
    "spaces": "\n".join([" " * 290 + "x"] * 8_000),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_log_made_to_take_long_does_not(name: str) -> None:
    """D06 G09: bounded in time, and what comes out is short."""
    began = time.process_time()
    found, files = trim(HOSTILE[name]), named_files(HOSTILE[name])
    assert time.process_time() - began < 10
    assert len(found.faults) <= 500 and len(files) <= 50 and max(map(len, found.faults), default=0) < 1_000


def test_a_fault_is_never_shared_with_the_next_by_accident() -> None:
    """D06: `RedBelow` asks whether all faults of one log are among those of the other."""
    of = {fault: faults(variants["plain"]) for fault, variants in sorted(corpus().items())}
    named = [fault for fault in of if not fault.startswith("clang/undefined")]
    assert all(not of[one] <= of[other] for one, other in pairwise(named) if other != "pytest/both")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_check_on_this_machine_tells_its_faults_apart_too(tool: str) -> None:
    """T21: its signature is of one line, which is no heading and no summary."""
    plain = {fault: log["plain"].partition("\n")[2] for fault, log in corpus().items() if fault.startswith(f"{tool}/")}
    told = {fault: first_error(log) for fault, log in plain.items() if not fault.endswith("/both")}
    assert len(set(told.values())) == len(told), told
