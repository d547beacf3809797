"""`ganger hooks install|remove|status claude` on real files, and the command line it writes, run by a real shell."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ganger.errors import GangerError
from ganger.hooks.claude_file import install, remove, settings_path, status
from ganger.hooks.claude_settings import EVENTS, command_line
from tests.hooks.lead_stand_in import StandIn

CALL = [sys.executable, "-P", "-m", "ganger"]


def ganger(root: Path, *words: str) -> tuple[int, Any]:
    line = [sys.executable, "-m", "ganger", "hooks", *words, "--project", str(root), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def shell(command: str, stdin: str, cwd: Path) -> int:
    done = subprocess.run(["/bin/sh", "-c", command], input=stdin, cwd=cwd, text=True, capture_output=True, check=False)
    return done.returncode


def installed_command(root: Path, event: str = "Stop") -> str:
    text = settings_path(root).read_text()
    return str(json.loads(text)["hooks"][event][0]["hooks"][0]["command"])


def test_install_status_and_remove_leave_nothing_behind(tmp_path: Path) -> None:
    """H11: by a command, there and back; each may be repeated."""
    assert ganger(tmp_path, "status", "claude")[0] == 1
    for changed in (True, False):
        code, said = ganger(tmp_path, "install", "claude")
        assert (code, said["schema"], said["changed"]) == (0, "ganger.hooks/1", changed)
        assert {row["event"]: row["state"] for row in said["hooks"]} == dict.fromkeys(EVENTS, "installed")
    assert ganger(tmp_path, "status", "claude")[0] == 0
    for changed in (True, False):
        assert ganger(tmp_path, "remove", "claude")[1]["changed"] is changed
    assert list(tmp_path.iterdir()) == []


def test_another_program_is_not_known(tmp_path: Path) -> None:
    """H11: a usage error, before anything is touched."""
    assert ganger(tmp_path, "install", "emacs")[0] == 64


def test_a_folder_and_a_file_that_were_there_stay(tmp_path: Path) -> None:
    """H11: mode and bytes too."""
    path = settings_path(tmp_path)
    path.parent.mkdir()
    install(path, CALL)
    remove(path)
    assert list(path.parent.iterdir()) == []
    path.write_bytes(b'{"env": {"A": "1"}}')
    path.chmod(0o600)
    install(path, CALL)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    remove(path)
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b'{"env": {"A": "1"}}', [path])


def test_hooks_of_a_ganger_that_moved_are_shown_and_renewed(tmp_path: Path) -> None:
    """H11: never two for one event."""
    path = settings_path(tmp_path)
    install(path, ["/old/ganger"])
    assert {row.state for row in status(path, CALL)} == {"outdated"}
    assert install(path, CALL)
    assert {row.state for row in status(path, CALL)} == {"installed"}


def as_link(path: Path) -> None:
    target = path.parent.parent / "elsewhere.json"
    target.write_text("{}")
    path.symlink_to(target)


def as_linked_folder(path: Path) -> None:
    path.parent.rmdir()
    (path.parent.parent / "elsewhere").mkdir()
    path.parent.symlink_to(path.parent.parent / "elsewhere")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a link": as_link,
    "a linked folder": as_linked_folder,
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "no JSON": lambda path: path.write_text('{"hooks": {}\n'),
    "no UTF-8": lambda path: path.write_bytes(b'{"a": "\xff"}'),
    "too large": lambda path: path.write_bytes(b" " * (4 * 1024 * 1024 + 1)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_not_plainly_settings_is_refused_and_not_touched(tmp_path: Path, damage: str) -> None:
    """H11: the message names the file."""
    path = settings_path(tmp_path)
    path.parent.mkdir()
    DAMAGES[damage](path)
    for change in (lambda: install(path, CALL), lambda: remove(path), lambda: status(path, CALL)):
        with pytest.raises(GangerError, match=str(path.parent)) as refused:
            change()
        assert refused.value.code == "SETTINGS_REFUSED"
    left = [p for p in tmp_path.rglob("*") if p.is_file() and p.name != "settings.json"]
    assert [p.read_text() for p in left] == ["{}"] * len(left)


def test_the_place_of_a_fault_is_told(tmp_path: Path) -> None:
    """H11: line and column."""
    path = settings_path(tmp_path)
    path.parent.mkdir()
    path.write_text('{\n  "a": 1,\n}')
    _, said = ganger(tmp_path, "install", "claude")
    assert f"{path}: line 3 column 1" in said["error"]["message"]


# --- the command line as a session runs it ----------------------------------------------------------------------------


def test_the_installed_command_keeps_a_session_going(tmp_path: Path) -> None:
    """H11: exit code 2 comes through the shell."""
    ganger(tmp_path, "install", "claude")
    told = json.dumps({"hook_event_name": "Stop", "session_id": "s-1", "cwd": str(tmp_path)})
    with StandIn(tmp_path) as lead:
        assert shell(installed_command(tmp_path), told, tmp_path) == 0
        lead.claim()
        assert shell(installed_command(tmp_path), told, tmp_path) == 2


GONE = {
    "it is gone": "",
    "it is no program": "not a program",
    "its interpreter is gone": "#!/gone/python\n",
    "it breaks": "#!/bin/sh\nexit 1\n",
    "it knows no hooks": "#!/bin/sh\nexit 64\n",
    "it is killed": "#!/bin/sh\nkill -9 $$\n",
}


@pytest.mark.parametrize("how", GONE)
def test_a_session_goes_its_way_when_ganger_does_not_work(tmp_path: Path, how: str) -> None:
    """H11: the hooks may outlive Ganger, in a file that a whole team shares."""
    program = tmp_path / "it's here" / "ganger"
    program.parent.mkdir()
    if GONE[how]:
        program.write_text(GONE[how])
        program.chmod(0o755)
    assert shell(command_line([str(program)]), "{}", tmp_path) == 0


def test_a_command_that_trusts_every_exit_code_would_be_caught(tmp_path: Path) -> None:
    """H11: a planted bug. An interpreter that finds no script ends with 2, which would hold the session."""
    plain = f"{sys.executable} {tmp_path / 'gone' / 'ganger'} hooks run claude"
    assert shell(plain, "{}", tmp_path) == 2


def test_a_ganger_of_the_session_s_own_folder_is_not_run(tmp_path: Path) -> None:
    """H11: whoever works there could have written it."""
    (tmp_path / "ganger").mkdir()
    (tmp_path / "ganger" / "__main__.py").write_text("raise SystemExit(2)")
    assert shell(command_line(CALL), "{}", tmp_path) == 0
