"""A run goes on whatever becomes of its standard streams, and no command answers with a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task
from tests.patience import stretched

pytestmark = pytest.mark.whole

ALL = ">&- 2>&- <&-"
HOW = [">&-", "2>&-", "<&-", ">&- 2>&-", ALL, "| head -1", "--json | head -1", "2>&1 | head -1", ">/dev/full 2>&1"]


def in_shell(root: Path, words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    line = f"set -o pipefail; exec {sys.executable} -m ganger {words}" if "|" not in words else ""
    line = line or f"set -o pipefail; {sys.executable} -m ganger {words}"
    given = {**os.environ, **env}
    return subprocess.run(
        ["bash", "-c", line], cwd=root, env=given, capture_output=True, timeout=stretched(60), check=False
    )


@pytest.mark.parametrize("how", HOW)
def test_a_run_goes_on_without_its_streams(tmp_path: Path, how: str) -> None:
    """G01 T23: closed, full, or read by somebody who has seen enough."""
    make_project(tmp_path, task("one"), task("two", depends_on=["one"]))
    done = in_shell(tmp_path, f"run {how}")
    assert done.returncode == 0 and b"Traceback" not in done.stderr + done.stdout, done
    assert "2 DONE" in ganger("status", cwd=tmp_path).out


@pytest.mark.parametrize("command", ["--help", "status", "events --json", "validate", "logs one", "worker next"])
@pytest.mark.parametrize("how", [">&-", "2>&-", ALL, "| true"])
def test_no_command_answers_closed_streams_with_a_traceback(tmp_path: Path, command: str, how: str) -> None:
    """G12: it does what it was asked for."""
    ganger("run", cwd=make_project(tmp_path))
    done = in_shell(tmp_path, f"{command} {how}")
    said = done.stderr + done.stdout
    assert b"Traceback" not in said and b"UNEXPECTED" not in said and b"Exception" not in said
    assert done.returncode in (0, 1, 3)


def test_a_worker_without_streams_does_not_stumble(tmp_path: Path) -> None:
    """G02: as plain files, where nothing of Ganger is installed; its exit code says the same."""
    program = Path(__file__).parents[2] / "src/ganger/worker/__main__.py"
    line = f"exec {sys.executable} -I -S {program} --help 2>{tmp_path / 'err'}"
    for how, expected in (("", 0), (">&- <&-", 0)):
        assert subprocess.run(["bash", "-c", f"{line} {how}"], stdout=-3, check=False).returncode == expected
    assert "Traceback" not in (tmp_path / "err").read_text()


def test_words_for_a_closed_stream_end_up_in_no_file(tmp_path: Path) -> None:
    """G01: a file that is opened later does not get the number of a closed stream."""
    script = (
        "from ganger.local.streams import open_closed_streams; import os, sys; open_closed_streams();"
        f"fd = os.open({str(tmp_path / 'store')!r}, os.O_CREAT | os.O_RDWR);"
        "print('words'); print('words', file=sys.stderr); sys.stdout.flush(); sys.exit(fd)"
    )
    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "{script}" {ALL}'], check=False)
    assert done.returncode > 2 and not (tmp_path / "store").read_bytes()


def test_an_encoding_that_lacks_a_sign_ends_no_run(tmp_path: Path) -> None:
    """T23: what cannot be shown is shown as a question mark."""
    make_project(tmp_path, task("näh"))
    done = in_shell(tmp_path, "run", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and b"n?h: DONE" in done.stdout


COMMANDS = ["--help", "--version", "status", "status --json", "validate", "events --json", "logs one", "worker --help"]


@pytest.mark.parametrize("command", [*COMMANDS, "explain NO_SENTINEL", "status --run nowhere --json"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_told_as_that(tmp_path: Path, command: str, unbuffered: str) -> None:
    """G12: a full disk where the output goes is no trouble of the run, and nothing unexpected."""
    ganger("run", cwd=make_project(tmp_path, task("one")))
    done = in_shell(tmp_path, f"{command} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    said = done.stderr.decode()
    assert done.returncode == 1 and said.count("\n") == 2, said
    assert said.startswith("error: the output cannot be written: No space left on device [OUTPUT_REFUSED]\nnext:  ")
