"""What a snapshot notes, what it leaves out, and what no edit can hide from it."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from ganger.workspaces.files.snapshot import MOST_LEVELS, Snapshot, read_through, take
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.rules.artifacts import is_generated
from tests.workspaces.watch_harness import NOBODY, as_ordinary_user, make_levels, same_size_and_time
from tests.workspaces.write_harness import fast_folder

OLD_NS = 1_600_000_000_000_000_000
LATER_NS = 4_000_000_000_000_000_000


def taken(root: Path, previous: Snapshot | None = None, now_ns: int = LATER_NS) -> Snapshot:
    with TreeLinks(root) as tree:
        return take(tree, is_generated, previous, now_ns)


def content(snapshot: Snapshot) -> dict[str, str]:
    return {path: entry.digest for path, entry in snapshot.files.items()}


def test_files_links_and_special_files_are_noted_and_no_link_is_followed(tmp_path: Path) -> None:
    """W02: everything that is in the folder, and nothing that is elsewhere."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("no")
    (root / "sub/file").write_text("yes")
    (root / "out").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "pipe")
    found = taken(root)
    kinds = {path: stat.S_IFMT(entry.mode) for path, entry in found.files.items()}
    assert kinds == {"sub/file": stat.S_IFREG, "out": stat.S_IFLNK, "pipe": stat.S_IFIFO}
    assert list(found.folders) == ["sub"]


def test_generated_folders_are_left_out_and_git_is_noted_but_not_looked_into(tmp_path: Path) -> None:
    """W02 W05: a virtual environment costs nothing; a repository that appears is seen."""
    for name in ("node_modules/x/y.js", ".venv/z.py", "src/__pycache__/a.pyc", ".git/HEAD", "src/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert set(taken(tmp_path).files) == {".git", "src/a.py"}


def test_an_unchanged_entry_is_the_same_object_in_both_snapshots(tmp_path: Path) -> None:
    """W02: an attempt that changed nothing costs a walk and no reading."""
    (tmp_path / "a").write_text("a")
    first = taken(tmp_path)
    second = taken(tmp_path, first)
    assert second.files["a"] is first.files["a"]
    assert second.shows_no_change_since(first)


def test_an_edit_with_equal_size_and_time_is_seen_by_its_content(tmp_path: Path) -> None:
    """W02: size and mtime tie, the hash decides."""
    (tmp_path / "a").write_text("good")
    first = taken(tmp_path)
    same_size_and_time(tmp_path / "a", b"evil")
    second = taken(tmp_path, first)
    assert second.files["a"].digest
    assert second.files["a"].digest != first.files["a"].digest


def test_a_touched_file_with_the_same_content_is_no_change(tmp_path: Path) -> None:
    """W02: only what a file holds counts."""
    (tmp_path / "a").write_text("same")
    first = taken(tmp_path, taken(tmp_path, now_ns=0), now_ns=OLD_NS)
    os.utime(tmp_path / "a", ns=(OLD_NS, OLD_NS))
    second = taken(tmp_path, first)
    assert second.files["a"].is_like(first.files["a"])


def test_a_file_younger_than_the_snapshot_is_read_again(tmp_path: Path) -> None:
    """W02: a second write within one tick of the clock leaves every time as it was."""
    (tmp_path / "a").write_text("one")
    young = taken(tmp_path, now_ns=(tmp_path / "a").stat().st_ctime_ns)
    assert taken(tmp_path, young).files["a"] is not young.files["a"]
    settled = taken(tmp_path, young, now_ns=LATER_NS)
    assert taken(tmp_path, settled).files["a"] is settled.files["a"]


def test_names_with_newlines_and_broken_utf8_are_noted_as_they_are(tmp_path: Path) -> None:
    """W02: no name hides a file."""
    names = [b"line\nbreak", b"\xff\xfe", b"-rf", "caf\u00e9".encode()]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")
    assert {os.fsencode(path) for path in taken(tmp_path).files} == set(names)


def test_what_lies_too_deep_is_one_entry_that_cannot_be_read() -> None:
    """W02: a tree of 3,000 levels uses up neither stack nor descriptors, and is not overlooked."""
    with fast_folder() as root:
        make_levels(root, 3000)
        found = taken(root)
        subprocess.run(["rm", "-rf", str(root / "d")], check=True)
    (path,) = found.files
    assert path.count("/") == MOST_LEVELS - 1
    assert found.files[path].is_unread


def test_files_that_vanish_during_the_walk_are_no_error(tmp_path: Path) -> None:
    """W02: somebody else may be at work in the folder."""
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for number in range(50):
                (tmp_path / f"d{number}").mkdir()
                (tmp_path / f"d{number}/f").write_text("x")
            for number in range(50):
                (tmp_path / f"d{number}/f").unlink()
                (tmp_path / f"d{number}").rmdir()

    other = threading.Thread(target=churn)
    other.start()
    previous = None
    for _ in range(200):
        previous = taken(tmp_path, previous)
    stop.set()
    other.join()
    assert taken(tmp_path, previous).files == {}


def shut_things(root: Path) -> None:
    (root / "secret").write_text("x")
    (root / "secret").chmod(0)
    for name, mode in (("shut", 0), ("listed", 0o444)):
        (root / name).mkdir()
        (root / name / "f").write_text("x")
        (root / name).chmod(mode)


@pytest.mark.needs("root")
def test_what_may_not_be_read_is_noted_as_unread() -> None:
    """W02: files and folders with mode 0000 are seen by an ordinary user too."""
    with fast_folder() as root:
        os.chown(root, NOBODY, NOBODY)

        def look() -> None:
            shut_things(root)
            found = taken(root).files
            assert {path for path, entry in found.items() if entry.is_unread} == {"shut", "listed"}
            with TreeLinks(root) as tree:
                secret = read_through(tree, "secret", found["secret"])
            assert secret is not None
            assert secret.is_unread

        assert as_ordinary_user(look) == ""
