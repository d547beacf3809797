"""Programs in the walls: they work as they would outside, and end as they would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.ports.sandbox import Room
from ganger.sandboxes.process import is_listed
from tests.sandboxes.sandboxed import KINDS, PATH, PYTHON, STRONGEST, Place, place


@pytest.fixture(params=KINDS)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place(tmp_path, request.param)


@pytest.mark.parametrize("code", [0, 1, 125, 127, 129, 130, 137, 255])
def test_an_exit_code_comes_through(here: Place, code: int) -> None:
    """T06 G05: also one that a shell would take for a signal."""
    assert here.shell(f"exit {code}").code == code


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_an_end_by_signal_comes_through(here: Place, number: signal.Signals) -> None:
    """T06 G05: it is not turned into an exit code."""
    assert here.shell(f"kill -{int(number)} $$").code == -number


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_an_end_by_a_signal_that_was_ignored_outside_comes_through(here: Place, number: signal.Signals) -> None:
    """T06 G05: a run that was started by nohup, or behind a script's back, tells of its agents' ends like any other."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert here.shell(f"kill -{int(number)} $$").code == -number
    finally:
        signal.signal(number, before)


def test_the_environment_is_what_was_given_and_a_private_home(here: Place) -> None:
    """G05 T24: nothing is added on the way but home, temporary folders and, where it changed, the user's name."""
    given = {"PATH": PATH, "GANGER_ATTEMPT_MARK": "m", "ODD": "a=b c", "HOME": "/elsewhere", "SSH_AUTH_SOCK": "/run/x"}
    shown = here.run(PYTHON, "-S", "-c", "import os; print(dict(os.environ))", env=given)
    found = eval(shown.out)
    own = {"HOME", "TMPDIR", "USER", "LOGNAME", *(name for name in found if name.startswith("XDG_"))}
    kept = {name: value for name, value in given.items() if name not in ("HOME", "SSH_AUTH_SOCK")}
    extra = {
        name: value for name, value in found.items() if name not in own | {"RUSTUP_HOME", "PYENV_ROOT", "LC_CTYPE"}
    }
    assert extra == kept


def test_home_and_temporary_folder_are_private_and_can_be_written(here: Place) -> None:
    """G05: caches and settings have a place, and none of it is left."""
    code = 'ls -A "$HOME" | grep -v "^[.]" ; echo a >"$HOME/.x" && mktemp >/dev/null && cat "$HOME/.x"'
    assert here.shell(code).out == "a\n"
    assert not (here.settings.home / ".x").exists()


@pytest.mark.needs("bwrap")
def test_every_private_folder_can_be_reached_and_written(tmp_path: Path) -> None:
    """G05: also where the folder above it is made for nothing else, and by root for another user."""
    here = place(tmp_path, "bubblewrap")
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        assert here.shell(f"cd {folder} && echo text > f && cat f").out == "text\n"


def test_whoever_works_inside_has_a_name(here: Place) -> None:
    """G05: many programs ask for it and fail without. Behind Landlock it is the machine's list that is asked."""
    shown = here.run(PYTHON, "-S", "-c", "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_name)")
    known = here.walls.name == "bubblewrap" or (here.walls.owner is None and is_listed(os.geteuid()))
    assert (shown.code == 0 and shown.out.strip() != "") == known


def test_what_is_written_in_the_workspace_is_there_afterwards(here: Place) -> None:
    """G05: the workspace is the one place for work, relative words mean what they did."""
    (here.workspace / "in.txt").write_text("in\n")
    assert here.run("cp", "in.txt", "sub.txt").code == 0
    assert (here.workspace / "sub.txt").read_text() == "in\n"


def test_input_comes_through_and_can_be_opened_by_name(here: Place, tmp_path: Path) -> None:
    """T24 G05: the prompt is a private copy, the file itself belongs to root or to nobody inside."""
    prompt = tmp_path / "prompt"
    prompt.write_text("one\ntwo\n")
    prompt.chmod(0o600)
    launch = here.walls.confine(here.launch("sh", "-c", "read a; echo $a; cat /dev/stdin", stdin=prompt), here.room)
    with prompt.open("rb") as opened:
        ended = subprocess.run(launch.argv, env=dict(launch.env), cwd=launch.cwd, stdin=opened, capture_output=True)
    assert ended.stdout.startswith(b"one\n") and b"two" in ended.stdout


def test_output_can_be_opened_by_name(here: Place, tmp_path: Path) -> None:
    """T06 G05: many scripts say >/dev/stderr, and the log belongs to somebody else."""
    launch = here.walls.confine(here.launch("sh", "-c", "echo a >>/dev/stdout && echo b >>/dev/stderr"), here.room)
    with (tmp_path / "log").open("ab") as log:
        words = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        subprocess.run(launch.argv, env=dict(launch.env), cwd=launch.cwd, check=True, **words)  # type: ignore[call-overload]
    assert (tmp_path / "log").read_text() == "a\nb\n"


def test_a_program_that_is_nowhere_is_left_to_whoever_starts_it(here: Place) -> None:
    """T24: so that the failure is told as one of starting, in its own words."""
    launch = here.launch("no-such-program", "x")
    assert here.walls.confine(launch, here.room) is launch
    assert here.walls.confine(here.launch(), here.room).argv == ()


@pytest.mark.parametrize("name", ["./not-there", "sub/not-there"])
def test_a_program_the_agent_could_still_make_is_never_started_without_walls(here: Place, name: str) -> None:
    """G05: between the look and the start it may appear."""
    ended = here.run(name)
    assert ended.code == 127 and "cannot be started in the sandbox" in ended.err


def test_a_file_named_in_the_command_is_readable_and_its_neighbour_is_not(here: Place) -> None:
    """G05: the operator's own words open single files, never folders."""
    for name in ("tool.py", "other.py"):
        (here.settings.project / name).write_text("print('ran')\n")
    tool = here.settings.project / "tool.py"
    assert here.run(PYTHON, "-S", str(tool)).out == "ran\n"
    assert here.run(PYTHON, "-S", str(tool), "x").code == 0
    assert here.shell(f"cat {tool.parent}/other.p?").code != 0


def test_a_prompt_file_is_readable_and_the_store_beside_it_is_not(here: Place) -> None:
    """G05 T24: an agent that takes its prompt as a file gets that file."""
    prompts = here.settings.state_dir / "run" / "prompts"
    prompts.mkdir()
    (prompts / "T1.md").write_text("do it")
    (prompts / "T2.md").write_text("secret")
    if here.walls.name == "bubblewrap":
        (prompts / "T1.md").chmod(0o600)
    room = replace(here.room, readable=(prompts / "T1.md",))
    assert here.shell(f"cat {prompts}/T1.md", room).out == "do it"
    assert here.shell(f"cat {prompts}/T[2]*", room).code != 0


def test_readable_folders_are_read_and_not_written(here: Place) -> None:
    """G05: what a room lends stays as it was."""
    lent = here.settings.project / "vendor"
    lent.mkdir()
    (lent / "a.txt").write_text("a")
    room = replace(here.room, readable=(lent,))
    assert here.shell(f"cat {lent}/a.txt; echo b >{lent}/a.txt; echo c >{lent}/b.txt", room).out == "a"
    assert sorted(p.read_text() for p in lent.iterdir()) == ["a"]


def test_an_agent_may_use_git_and_the_interpreter(here: Place) -> None:
    """G05: tools work: git with commits, Python with Ganger's own modules."""
    git = "git -c user.name=a -c user.email=a@b"
    code = f"git init -q . && echo x >f && git add f && {git} commit -qm one && git log --format=%s"
    assert here.shell(code).out == "one\n"
    assert here.run(sys.executable, "-P", "-c", "import ganger.agents.scripted.play; print('ok')").out == "ok\n"


def test_what_the_operator_grants_is_there(tmp_path: Path) -> None:
    """G05: [sandbox] readable and writable open single places, also in the home."""
    tools, cache = tmp_path / "home" / "tools", tmp_path / "home" / ".cache"
    here = place(tmp_path, STRONGEST, readable=(tools,), writable=(cache,))
    for folder in (tools, cache):
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
    (tools / "t").write_text("t")
    assert here.shell(f"cat {tools}/t && echo c >{cache}/c; echo x >{tools}/x").out == "t"
    assert (cache / "c").exists() and not (tools / "x").exists()


def test_a_project_edited_in_place_is_whole_except_for_gangers_own_files(tmp_path: Path) -> None:
    """G05 T17: direct mode; the state folder can neither be read nor moved away."""
    here = place(tmp_path, STRONGEST)
    (here.settings.state_dir / "run" / "ganger.db").write_text("events")
    (here.settings.project / "a.txt").write_text("a")
    room = Room(writable=(here.settings.project,))
    shown = here.shell("cat a.txt; echo b >a.txt; ls .ganger; mv .ganger away; cat .ganger/run/ganger.db", room)
    assert shown.out == "a" or here.walls.name == "landlock"
    assert (here.settings.project / "a.txt").read_text() == "b\n"


def test_limits_hold(tmp_path: Path) -> None:
    """G05: memory and file size; the number of processes is tried by the probes."""
    here = place(tmp_path, STRONGEST, memory_mb=256, file_mb=1)
    assert "MemoryError" in here.run(PYTHON, "-S", "-c", "bytearray(1 << 30)").err
    assert here.shell("head -c 2000000 /dev/zero >big").code != 0
    assert (here.workspace / "big").stat().st_size == 1 << 20


@pytest.mark.needs("bwrap")
def test_loopback_is_a_network_of_its_own_that_works(tmp_path: Path) -> None:
    """G05: tests inside may start servers and talk to them."""
    code = (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
        "c = socket.create_connection(s.getsockname()); print('talked')"
    )
    assert place(tmp_path, "bubblewrap", network="loopback").run(PYTHON, "-S", "-c", code).out.strip() == "talked"


@pytest.mark.needs("bwrap")
def test_a_fixed_folder_in_a_writable_one_is_only_read(tmp_path: Path) -> None:
    """G05 T18: the project is the agent's to edit in direct mode, its .git is not."""
    here = place(tmp_path, "bubblewrap")
    fixed = here.workspace / ".git"
    fixed.mkdir()
    room = replace(here.room, fixed=(fixed,))
    assert here.shell("touch .git/x 2>/dev/null || mv .git other 2>/dev/null || echo refused", room).out.strip() == (
        "refused"
    )
