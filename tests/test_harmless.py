"""The script that looks for changes outside the clone finds each that was planted, and none where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import harmless
import pytest

from ganger.launchers.processes import cgroups

SCRIPT = Path(__file__).parents[1] / "scripts" / "harmless.py"


def harm(watched: Path, code: str, *before: str) -> tuple[int, list[str]]:
    """The exit code and the differences found after a shell has run the code, with `$1` the watched folder."""
    words = [*before, sys.executable, str(SCRIPT), "--watch", str(watched), "--", "sh", "-c", code, "sh", str(watched)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout.splitlines()


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """A folder with a file and a folder in it."""
    (tmp_path / "watched" / "folder").mkdir(parents=True)
    (tmp_path / "watched" / "file").write_text("before")
    return tmp_path / "watched"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('echo new >"$1/folder/new"', "new: {}/folder/new"),
        ('rm "$1/file"', "gone: {}/file"),
        ('printf "altered" >"$1/file"', "changed: {}/file"),
        ('touch -r "$1/file" t && printf "BEFORE" >"$1/file" && touch -r t "$1/file"; rm t', "changed: {}/file"),
        ('chmod 700 "$1/folder"', "changed: {}/folder"),
        ('chmod 1777 "$1"', "changed: {} "),
        ('ln -s / "$1/link"', "new: {}/link"),
        pytest.param('chown 61023 "$1/folder"', "changed: {}/folder", marks=pytest.mark.needs("root")),
        ("setsid sleep 60 & exit", "left running: process"),
        ("(setsid sleep 60 &) ; exit", "left running: process"),
    ],
)
def test_each_planted_change_is_found_and_no_other(watched: Path, code: str, found: str) -> None:
    """G05: planted bugs; the tests must leave the machine as it was."""
    ended, lines = harm(watched, code)
    assert ended == 99 and len(lines) == 1 and lines[0].startswith(found.format(watched))


@pytest.mark.needs("root", "unshare")
def test_a_mount_that_is_left_is_found(watched: Path) -> None:
    """G05: planted bug, in a namespace of the test's own."""
    ended, lines = harm(watched, 'mount -t tmpfs none "$1/folder"', "unshare", "--mount")
    assert ended == 99 and any(line.startswith(f"new: mount {watched}/folder") for line in lines)


@pytest.mark.parametrize(
    "code",
    [
        "true",
        'mkdir "$1/folder/x" && rmdir "$1/folder/x"',
        'touch "$1/file"',
        'cat "$1/file"',
        'echo x >"$TMPDIR/x"',
        "sleep 0.2 & exit",
    ],
)
def test_what_changes_nothing_is_called_harmless(watched: Path, code: str) -> None:
    """G05: also what was made and removed again, and what ends a moment later."""
    assert harm(watched, code) in ((0, []), (0, ["before"]))


def test_the_commands_own_failure_is_told(watched: Path) -> None:
    """G05: a suite that is red is not green because it was harmless."""
    assert harm(watched, "exit 3") == (3, [])


@pytest.mark.needs("root", "unshare")
def test_apart_a_command_has_temporary_folders_of_its_own() -> None:
    """G05: what it does to /tmp is found, and done to nobody; its own temporary folder is not counted."""
    words = [sys.executable, str(SCRIPT), "--apart", "--watch", "/tmp", "--watch", "/var/tmp"]
    code = 'chown 61023 /var/tmp; chmod 755 /tmp; echo x >"$TMPDIR/x"'
    before = [Path(place).stat() for place in ("/tmp", "/var/tmp")]
    ended = subprocess.run([*words, "--", "sh", "-c", code], capture_output=True, text=True, check=False)
    found = [line.split()[:2] for line in ended.stdout.splitlines()]
    assert found == [["changed:", "/tmp"], ["changed:", "/var/tmp"]], ended.stderr
    after = [Path(place).stat() for place in ("/tmp", "/var/tmp")]
    assert [(each.st_mode, each.st_uid) for each in after] == [(each.st_mode, each.st_uid) for each in before]


@pytest.mark.needs("root")
def test_a_control_group_that_is_left_is_found(watched: Path) -> None:
    """G05: planted bug; where no group can be made, none can be left."""
    if cgroups.own_cgroup() is None:
        pytest.skip("needs control groups of version 2")
    where = f"{sys.executable} -c 'from ganger.launchers.processes.cgroups import own_cgroup; print(own_cgroup())'"
    ended, lines = harm(watched, f'mkdir "$({where})/left"')
    assert ended == 99 and len(lines) == 1 and lines[0].startswith("new: control group ") and "/left" in lines[0]


def test_a_file_that_was_not_read_before_is_not_called_changed(watched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G05: which files there is time to read is settled by the first look."""
    monkeypatch.setattr(harmless, "_HASHED_BYTES_IN_ALL", 4)
    (watched / "other").write_text("other")
    before = harmless.look([str(watched)], (), whole=False)
    monkeypatch.setattr(harmless, "_HASHED_BYTES_IN_ALL", 400)
    after = harmless.look([str(watched)], (), whole=False, like=before)
    assert sum("digest" in each for each in before.values()) == 1 and before == after
