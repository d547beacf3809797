"""Paths an agent may send: each attack is refused by name and leaves the tree and its outside byte for byte alone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ganger.workspaces.rules.writes import WriteRequest
from tests.workspaces.write_harness import Place, all_codes, append, code_of, create, make_place, replace

TEXT_ATTACKS = [
    ("/etc/hostname", "PATH_ABSOLUTE"),
    ("//server/share", "PATH_ABSOLUTE"),
    ("..", "PATH_ESCAPES"),
    ("../ws-evil/x", "PATH_ESCAPES"),
    ("a/../../ws-evil/x", "PATH_ESCAPES"),
    ("a/b/../../../x", "PATH_ESCAPES"),
    ("..\\ws-evil\\x", "PATH_ESCAPES"),
    ("", "PATH_NOT_NORMAL"),
    (".", "PATH_NOT_NORMAL"),
    ("./x", "PATH_NOT_NORMAL"),
    ("a/./b", "PATH_NOT_NORMAL"),
    ("a/../b", "PATH_NOT_NORMAL"),
    ("a//b", "PATH_NOT_NORMAL"),
    ("a/", "PATH_NOT_NORMAL"),
    ("a\\b", "PATH_NOT_NORMAL"),
    ("\\\\server\\share\\x", "PATH_NOT_NORMAL"),
    ("C:x", "PATH_NOT_NORMAL"),
    ("c:/windows/x", "PATH_NOT_NORMAL"),
    ("~/x", "PATH_NOT_NORMAL"),
    ("~root/x", "PATH_NOT_NORMAL"),
    ("a\0b", "PATH_BAD_CHARACTER"),
    ("../x\0.txt", "PATH_BAD_CHARACTER"),
    ("a\nb", "PATH_BAD_CHARACTER"),
    ("a\rb", "PATH_BAD_CHARACTER"),
    ("a\x1b[2Jb", "PATH_BAD_CHARACTER"),
    ("a\x7fb", "PATH_BAD_CHARACTER"),
    ("a\x85b", "PATH_BAD_CHARACTER"),
    ("a\u2028b", "PATH_BAD_CHARACTER"),
    (".g\u200bit/config", "PATH_BAD_CHARACTER"),
    (".git\u200c/config", "PATH_BAD_CHARACTER"),
    (".g\u202eti/config", "PATH_BAD_CHARACTER"),
    ("a\u2066b", "PATH_BAD_CHARACTER"),
    ("\ufeffa", "PATH_BAD_CHARACTER"),
    ("a\u00adb", "PATH_BAD_CHARACTER"),
    ("a\ufe0fb", "PATH_BAD_CHARACTER"),
    ("a\u3164b", "PATH_BAD_CHARACTER"),
    ("a\U000e0001b", "PATH_BAD_CHARACTER"),
    ("a\ud800b", "PATH_BAD_CHARACTER"),
    ("n" * 300, "PATH_TOO_LONG"),
    ("ü" * 128, "PATH_TOO_LONG"),
    ("/".join(["d" * 100] * 11), "PATH_TOO_LONG"),
    ("a/" * 600 + "b", "PATH_TOO_LONG"),
]


@pytest.mark.parametrize(("path", "code"), TEXT_ATTACKS, ids=[ascii(path)[1:40] for path, _ in TEXT_ATTACKS])
def test_a_path_that_is_not_plain_is_refused_and_nothing_changes(tmp_path: Path, path: str, code: str) -> None:
    """T18: every spelling that could leave the workspace or deceive a reader has its own code."""
    place = make_place(tmp_path, {"a/b": "x\n"})
    before = place.snapshot()
    for op in ("create", "replace", "append"):
        assert code_of(place, WriteRequest(path, op, "evil")) == code
    assert place.snapshot() == before


PLAIN_PATHS = [
    "a.txt",
    "ws-evil",
    "..a",
    "a..",
    "...",
    "-rf",
    " lead",
    "ü/é.txt",
    "日本/語.md",
    "a b/c",
    "n" * 255,
    "d/~x",
]


@pytest.mark.parametrize("path", PLAIN_PATHS, ids=ascii)
def test_an_unusual_but_plain_path_is_written_inside(tmp_path: Path, path: str) -> None:
    """T18: the safeguards refuse attacks, not unusual names."""
    place = make_place(tmp_path)
    assert code_of(place, create(path, "ok")) == ""
    assert (place.root / path).read_text() == "ok"
    assert sorted(one.name for one in place.outside.iterdir()) == ["secret.txt"]


def plant(place: Place, kind: str) -> str:
    """Put one trap into the workspace and return the path that walks into it."""
    trap = place.root / "trap"
    if kind == "link-to-outside-file":
        trap.symlink_to(place.outside / "secret.txt")
    elif kind == "link-to-outside-directory":
        trap.symlink_to(place.outside)
        return "trap/x.txt"
    elif kind == "link-to-inside-directory":
        (place.root / "real").mkdir()
        trap.symlink_to("real")
        return "trap/x.txt"
    elif kind == "dangling-link":
        trap.symlink_to(place.outside / "not-there")
    elif kind == "link-loop":
        trap.symlink_to("trap")
    elif kind == "directory":
        (trap / "full").mkdir(parents=True)
    elif kind == "file-as-directory":
        trap.write_text("file")
        return "trap/x.txt"
    else:
        special(trap, kind)
    return "trap"


def special(trap: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(trap)
    elif kind == "socket":
        here = os.open(trap.parent, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{here}/{trap.name}")
        os.close(here)
    elif kind == "device":
        os.mknod(trap, 0o600 | 0o020000, os.makedev(1, 3))


TRAPS = {
    "link-to-outside-file": "PATH_SYMLINK",
    "link-to-outside-directory": "PATH_SYMLINK",
    "link-to-inside-directory": "PATH_SYMLINK",
    "dangling-link": "PATH_SYMLINK",
    "link-loop": "PATH_SYMLINK",
    "directory": "PATH_NOT_REGULAR",
    "file-as-directory": "PATH_NOT_REGULAR",
    "fifo": "PATH_NOT_REGULAR",
    "socket": "PATH_NOT_REGULAR",
    "device": "PATH_NOT_REGULAR",
}


@pytest.mark.parametrize("op", ["create", "replace", "append"])
@pytest.mark.parametrize("kind", TRAPS)
def test_what_is_no_regular_file_is_neither_followed_nor_opened(tmp_path: Path, kind: str, op: str) -> None:
    """T18: links, directories, FIFOs, sockets and devices are refused for every operation."""
    if kind == "device" and os.geteuid() != 0:
        pytest.skip("only root can make a device; the FIFO and socket rows take the same path")
    place = make_place(tmp_path)
    path = plant(place, kind)
    before = place.snapshot()
    assert code_of(place, WriteRequest(path, op, "evil")) == TRAPS[kind]
    assert place.snapshot() == before


@pytest.mark.parametrize("target", ["inside", "outside"])
@pytest.mark.parametrize("depth", range(4))
def test_a_link_at_any_component_is_refused(tmp_path: Path, depth: int, target: str) -> None:
    """T18: wherever the link stands, and even when it points back inside."""
    place = make_place(tmp_path, {"a/b/c/d.txt": "x\n"})
    parts = ["a", "b", "c", "d.txt"]
    linked = place.root.joinpath(*parts[: depth + 1])
    moved = (place.root if target == "inside" else place.outside) / "moved"
    linked.rename(moved)
    linked.symlink_to(moved)
    before = place.snapshot()
    assert code_of(place, replace("a/b/c/d.txt", "evil")) == "PATH_SYMLINK"
    assert place.snapshot() == before


def test_a_hard_link_is_never_written_through(tmp_path: Path) -> None:
    """T18: the other name of the file keeps its bytes."""
    place = make_place(tmp_path)
    os.link(place.outside / "secret.txt", place.root / "inside.txt")
    assert code_of(place, append("inside.txt", "evil\n")) == ""
    assert (place.outside / "secret.txt").read_text() == "outside\n"
    assert (place.root / "inside.txt").read_text() == "outside\nevil\n"


def test_the_same_path_as_file_and_directory_is_refused(tmp_path: Path) -> None:
    """T18: one change set cannot make a path both."""
    place = make_place(tmp_path)
    assert all_codes(place, [create("a"), create("a/b")]) == ["PATH_NOT_REGULAR"]
    assert all_codes(place, [create("a/b"), create("a")]) == ["PATH_NOT_REGULAR"]


def test_case_twins_are_refused_within_a_change_set_and_beside_existing_files(tmp_path: Path) -> None:
    """T18: names that are one name on a forgiving file system never both exist because of Ganger."""
    place = make_place(tmp_path, {"Readme.md": "x\n", "src/a.py": "x\n"})
    assert all_codes(place, [create("new/A.py"), create("new/a.py")]) == ["CASE_TWIN"]
    assert all_codes(place, [create("New/a.py"), create("new/b.py")]) == ["CASE_TWIN"]
    assert all_codes(place, [create("caf\u00e9"), create("cafe\u0301")]) == ["CASE_TWIN"]
    assert all_codes(place, [create("README.md"), create("SRC/b.py"), append("src/A.PY")]) == ["CASE_TWIN"] * 3
    assert all_codes(place, [create("src/b.py"), create("src/c.py")]) == []
