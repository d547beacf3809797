"""The verifier's runner: real commands, one log, one verdict."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ganger.core.logs.telling_line import first_error
from ganger.core.verify.commands import DEFAULT_DENY
from ganger.core.verify.tiers import TieredStep
from ganger.core.vocabulary import Tier
from ganger.engine.verification.steps import Verdict, run_steps
from ganger.errors import GangerError
from ganger.launchers.launcher import KeptLauncher

PYTHON = f"'{sys.executable}' -S -c"


def step(
    cmd: str, *, name: str = "test", tier: Tier = Tier.CORRECTNESS, cwd: str | None = None, timeout_sec: float = 30
) -> TieredStep:
    return TieredStep(name, cmd, cwd, timeout_sec, tier)


def verify(workspace: Path, *steps: TieredStep, log: Path | None = None, timeout_sec: float = 30) -> Verdict:
    async def run(room: Path) -> Verdict:
        launcher = KeptLauncher(room, grace_sec=0.1)
        try:
            return await run_steps(
                steps,
                workspace=workspace,
                log_path=log or workspace.parent / f"{workspace.name}.log",
                env={"PATH": os.environ["PATH"]},
                launcher=launcher,
                deny=DEFAULT_DENY,
                default_timeout_sec=timeout_sec,
                key_prefix=f"{room}/verify",
            )
        finally:
            await launcher.close()

    with tempfile.TemporaryDirectory() as room:
        return asyncio.run(run(Path(room)))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def log_of(workspace: Path) -> str:
    return (workspace.parent / "ws.log").read_text()


def test_steps_that_all_pass_are_a_pass(workspace: Path) -> None:
    """T17: the verdict comes from the commands the orchestrator ran itself."""
    verdict = verify(workspace, step("true"), step(f"{PYTHON} 'print(1)'", name="two"))
    assert verdict.passed and verdict.failed is None
    assert [(result.outcome, result.exit_code) for result in verdict.steps] == [("passed", 0), ("passed", 0)]


def test_the_first_blocking_failure_stops_the_rest(workspace: Path) -> None:
    """T17 Z04: what was not run is marked so, and did not run."""
    verdict = verify(workspace, step("true"), step("false", name="bad"), step("touch ran", name="after"))
    assert not verdict.passed
    assert [result.outcome for result in verdict.steps] == ["passed", "failed", "skipped"]
    assert verdict.failed is verdict.steps[1] and verdict.failed.name == "bad"
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("cmd", ["false", "no-such-program", "a | b", "sleep 60"])
def test_a_failing_quality_step_is_recorded_and_does_not_block(workspace: Path, cmd: str) -> None:
    """Z04: whatever way it fails."""
    verdict = verify(workspace, step(cmd, tier=Tier.QUALITY, timeout_sec=0.2), step("true"))
    assert verdict.passed and verdict.failed is None
    assert verdict.steps[0].outcome != "passed" and verdict.steps[1].outcome == "passed"


@pytest.mark.parametrize("tier", [Tier.SYNTAX, Tier.CORRECTNESS, Tier.SMOKE])
def test_every_other_tier_blocks(workspace: Path, tier: Tier) -> None:
    """Z04 T17: syntax, correctness and smoke."""
    assert not verify(workspace, step("false", tier=tier)).passed


def test_the_log_has_each_steps_output_between_its_header_and_footer(workspace: Path) -> None:
    """T17 T06: one log for all steps, readable as it is, also when output does not end its line."""
    code = f"{PYTHON} \"import os; os.write(2, b'err '); os.write(1, b'out')\""
    verify(
        workspace, step("printf a", name="one"), step(code, name="two", tier=Tier.QUALITY), step("false", name="three")
    )
    lines = [re.sub(r"after \d+\.\d s", "after T s", line) for line in log_of(workspace).splitlines()]
    assert lines == [
        *("=== step one (correctness): printf a", "a", "=== exit 0 after T s"),
        *(f"=== step two (quality): {code}", "err out", "=== exit 0 after T s"),
        *("=== step three (correctness): false", "=== exit 1 after T s"),
    ]


def test_the_log_is_private_and_appended_to(workspace: Path) -> None:
    """T17: what an earlier verification wrote stays."""
    verify(workspace, step("printf first"))
    verify(workspace, step("printf second"))
    assert log_of(workspace).index("first") < log_of(workspace).index("second")
    assert (workspace.parent / "ws.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name", ["../../evil", "/evil", "a\n=== exit 0 after 0.0 s", "\x1b[2Jx", "a\0b", "x" * 10_000, "\ud800"]
)
def test_a_hostile_step_name_stays_inside_its_line_of_the_log(workspace: Path, name: str) -> None:
    """T17: it makes no file, no second line and no terminal code."""
    before = set(workspace.parent.rglob("*"))
    assert verify(workspace, step("true", name=name)).passed
    lines = log_of(workspace).splitlines()
    assert len(lines) == 2 and lines[0].startswith("=== step ") and len(lines[0]) < 1000
    assert not set("\x1b\0") & set(log_of(workspace))
    assert set(workspace.parent.rglob("*")) - before == {workspace.parent / "ws.log"}


@pytest.mark.parametrize(
    "cmd", ["touch ran | cat", "touch ran; true", "touch ran && source x", "sudo touch ran", "touch ran &&"]
)
def test_a_refused_command_runs_nothing_at_all(workspace: Path, cmd: str) -> None:
    """W06: the whole text is read before its first program is spawned."""
    verdict = verify(workspace, step(cmd))
    assert verdict.failed is not None and verdict.failed.outcome == "refused"
    assert verdict.failed.first_error.startswith("COMMAND_") and verdict.failed.first_error in log_of(workspace)
    assert not (workspace / "ran").exists()


def test_no_shell_ever_sees_a_command(workspace: Path) -> None:
    """W06: globs, variables and substitutions inside quotes arrive as they are written."""
    cmd = f"{PYTHON} 'import sys; print(sys.argv[1:])' '$(touch ran)' \"`touch ran`\" '$HOME' *.py ~"
    assert verify(workspace, step(cmd)).passed
    assert "['$(touch ran)', '`touch ran`', '$HOME', '*.py', '~']" in log_of(workspace)
    assert not (workspace / "ran").exists()


def test_parts_run_in_order_in_their_directories_and_the_first_failure_ends_them(workspace: Path) -> None:
    """W06: `&&` and `cd` mean what they mean in a shell."""
    verdict = verify(workspace, step("mkdir -p a/b && cd a && touch x && cd b && touch y && false && touch z"))
    assert verdict.failed is not None and verdict.failed.exit_code == 1
    assert sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*")) == ["a", "a/b", "a/b/y", "a/x"]


def test_a_step_runs_in_its_own_directory_and_cd_goes_on_from_there(workspace: Path) -> None:
    """W06 T17: cwd of the step first, then the command's own cd."""
    (workspace / "a/b").mkdir(parents=True)
    assert verify(workspace, step("touch x && cd b && touch y", cwd="a")).passed
    assert (workspace / "a/x").exists() and (workspace / "a/b/y").exists()


@pytest.mark.parametrize("cwd", ["..", "a/../..", "/", "/tmp", "out", "out/sub", "a\0b"])
def test_no_step_runs_outside_the_workspace(workspace: Path, cwd: str) -> None:
    """W06 T17: not by name and not by link; a link that stays inside is fine."""
    (workspace.parent / "ws-evil/sub").mkdir(parents=True)
    (workspace / "a").mkdir()
    (workspace / "out").symlink_to(workspace.parent / "ws-evil")
    (workspace / "inside").symlink_to("a")
    verdict = verify(workspace, step("touch ran", cwd=cwd))
    assert verdict.failed is not None and verdict.failed.outcome == "refused"
    assert list(workspace.parent.rglob("ran")) == []
    assert verify(workspace, step("touch ran", cwd="inside")).passed and (workspace / "a/ran").exists()


def test_cd_through_a_link_that_leaves_is_refused_too(workspace: Path) -> None:
    """W06: the command's own cd is held to the same rule."""
    (workspace / "out").symlink_to("/")
    verdict = verify(workspace, step("cd out && touch ran"))
    assert verdict.failed is not None and verdict.failed.outcome == "refused"


@pytest.mark.parametrize(("cmd", "cwd"), [("no-such-program", None), ("true", "gone"), ("cd gone && true", None)])
def test_what_cannot_start_says_why(workspace: Path, cmd: str, cwd: str | None) -> None:
    """T17: a missing program or directory is not a failed test."""
    verdict = verify(workspace, step(cmd, cwd=cwd))
    assert verdict.failed is not None and verdict.failed.outcome == "not_started" and verdict.failed.exit_code is None
    assert ("gone" in verdict.failed.first_error) or ("no-such-program" in verdict.failed.first_error)
    assert verdict.failed.first_error in log_of(workspace)


def test_a_step_over_its_time_is_ended_and_says_so(workspace: Path) -> None:
    """T17: the limit is the whole step's, not each part's."""
    began = time.monotonic()
    verdict = verify(workspace, step("sleep 0.4 && sleep 0.4 && sleep 0.4", timeout_sec=0.5))
    assert verdict.failed is not None and verdict.failed.outcome == "timed_out"
    assert verdict.failed.first_error == "timed out after 0.5 s" and "timed out after 0.5 s" in log_of(workspace)
    assert time.monotonic() - began < 30


def test_a_step_without_a_limit_has_the_default_one(workspace: Path) -> None:
    """T17: nothing runs for ever."""
    verdict = verify(workspace, TieredStep("test", "sleep 60"), timeout_sec=0.2)
    assert verdict.failed is not None and verdict.failed.outcome == "timed_out"


def test_a_step_that_ends_by_a_signal_has_failed(workspace: Path) -> None:
    """T17: shown as shells show it."""
    verdict = verify(workspace, step(f"{PYTHON} 'import os; os.kill(os.getpid(), 9)'"))
    assert verdict.failed is not None and verdict.failed.exit_code == 137
    assert verdict.failed.first_error == "ended by signal 9 without output"


def test_each_step_is_judged_by_its_own_output(workspace: Path) -> None:
    """T21 T17: an error line of an earlier step is not the failing step's signal."""
    verdict = verify(workspace, step("echo 'ValueError: old'", tier=Tier.QUALITY), step("false", name="second"))
    assert verdict.failed is not None and verdict.failed.first_error == "exit code 1 without output"


def test_a_real_unittest_failure_is_named_by_its_exception(workspace: Path) -> None:
    """T21 T17: the line that feeds the signature is the assertion, not the summary."""
    body = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(3, 4)\n"
    (workspace / "test_a.py").write_text(body)
    verdict = verify(workspace, step(f"'{sys.executable}' -m unittest"))
    assert verdict.failed is not None and verdict.failed.first_error == "AssertionError: 3 != 4"


def test_a_log_that_cannot_be_written_is_an_error_with_a_sentence(workspace: Path) -> None:
    """T17: without a log nothing is verified; a link in its place is not followed."""
    (workspace.parent / "ws.log").symlink_to(workspace.parent / "elsewhere")
    with pytest.raises(GangerError, match=r"ws\.log cannot be written"):
        verify(workspace, step("touch ran"))
    assert not (workspace / "ran").exists() and not (workspace.parent / "elsewhere").exists()


LOGS = {
    "unittest": (
        "FAIL: test_a (t.T)\n"
        "Traceback (most recent call last):\n"
        '  File "t.py", line 3\n'
        "AssertionError: 3 != 4\n"
        "\n"
        "Ran 1 test in 0.001s\n"
        "\n"
        "FAILED (failures=1)\n",
        "AssertionError: 3 != 4",
    ),
    "chained": (
        "KeyError: 'a'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "my.mod.BadThing: x\n"
        "ValueError: bad\n",
        "ValueError: bad",
    ),
    "pytest": (
        "    def test_a():\n"
        ">       assert f() == 4\n"
        "E       assert 3 == 4\n"
        "E        +  where 3 = f()\n"
        "\n"
        "t.py:5: AssertionError\n"
        "=== short test summary info ===\n"
        "FAILED t.py::test_a - assert 3 == 4\n"
        "==== 1 failed in 0.02s ====\n",
        "assert 3 == 4",
    ),
    "pytest-exception": (
        "E       ValueError: bad\nt.py:3: ValueError\nFAILED t.py::t - ValueError: bad\n",
        "ValueError: bad",
    ),
    "node": (
        "node:assert:126\n"
        "  throw new AssertionError(obj);\n"
        "\n"
        "AssertionError [ERR_ASSERTION]: 3 == 4\n"
        "    at Object.<anonymous> (/x/t.js:1:1) {\n"
        "  code: 'ERR_ASSERTION'\n"
        "}\n"
        "\n"
        "Node.js v20.1.0\n",
        "AssertionError [ERR_ASSERTION]: 3 == 4",
    ),
    "node-module": (
        "Error: Cannot find module './x'\nRequire stack:\n- /a/b.js\n",
        "Error: Cannot find module './x'",
    ),
    "gcc": (
        "a.c: In function 'main':\n"
        "a.c:3:5: error: 'x' undeclared\n"
        "a.c:4:5: error: expected ';'\n"
        "make: *** [Makefile:2: all] Error 1\n",
        "a.c:3:5: error: 'x' undeclared",
    ),
    "tsc": (
        "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\nFound 1 error.\n",
        "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    ),
    "rust": (
        "error[E0425]: cannot find value `x` in this scope\n"
        " --> src/main.rs:2:5\n"
        "error: aborting due to 1 previous error\n"
        "error: could not compile `a`\n",
        "error[E0425]: cannot find value `x` in this scope",
    ),
    "rust-panic": (
        "thread 'main' panicked at src/main.rs:2:5:\nboom\n",
        "thread 'main' panicked at src/main.rs:2:5:",
    ),
    "go-build": ("# example\n./x.go:3:5: undefined: y\n", "./x.go:3:5: undefined: y"),
    "go-test": (
        "--- FAIL: TestX (0.00s)\n    x_test.go:5: got 3 want 4\nFAIL\nFAIL\texample\t0.002s\nFAIL\n",
        "x_test.go:5: got 3 want 4",
    ),
    "mypy": (
        "a.py:3: error: Incompatible types\nFound 1 error in 1 file\n",
        "a.py:3: error: Incompatible types",
    ),
    "ruff": (
        "a.py:1:8: F401 `os` imported but unused\nFound 1 error.\n",
        "a.py:1:8: F401 `os` imported but unused",
    ),
    "tap": ("ok 1 - a\nnot ok 2 - adds\n# fail 1\n", "not ok 2 - adds"),
    "make-only": ("doing\nmake: *** [Makefile:2: all] Error 1\n", "make: *** [Makefile:2: all] Error 1"),
    "trouble": ("start\nfatal: not a git repository\nbye\n", "fatal: not a git repository"),
    "plain": ("one\ntwo\n\n", "two"),
    "empty": ("\n \n", ""),
    "ansi": ("\x1b[31mValueError\x1b[0m: \x1b]0;title\x07bad\x1b[K\n", "ValueError: bad"),
    "progress": ("10%\r50%\rValueError: bad\r\n", "ValueError: bad"),
    "controls": ("ValueError: a\x00b\u202ec\n", "ValueError: abc"),
}


@pytest.mark.parametrize("case", LOGS)
def test_the_most_telling_line_of_a_log_is_found(case: str) -> None:
    """T21: stable lines, so that the same fault gives the same signature."""
    text, expected = LOGS[case]
    assert first_error(text) == expected


@given(st.text(st.sampled_from("Error: E\x1b[]0m;.\r\n\tfailed=\u202e(9)") | st.characters(), max_size=300))
def test_any_log_gives_one_short_clean_line(text: str) -> None:
    """T21: bounded, on one line, without control characters."""
    line = first_error(text)
    assert len(line) <= 300 and not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", line)


@pytest.mark.parametrize(
    "piece",
    ["\x1b[", "\x1b]", "E ", "Error", "a.", "= ", "x:1", "FAIL a ", "\x1b[0;", "Assertion ", "thread '", "\r", "(("],
)
def test_reading_a_hostile_log_takes_little_time(piece: str) -> None:
    """T21: linear in the tail, with and without line ends."""
    began = time.process_time()
    first_error(piece * 64_000)
    first_error((piece * 500 + "\n") * 200)
    assert time.process_time() - began < 5
