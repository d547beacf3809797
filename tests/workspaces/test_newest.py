"""Changes in a folder as a sign of life: every kind is seen, none twice, and nothing an agent does there can hurt."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ganger.workspaces.files.activity import Newest

LONG_AGO = 1_000_000_000.0
YEAR = 365 * 86400.0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project that was not touched for long."""
    root = tmp_path / "work"
    for name in ("a.txt", "src/b.py", "src/deep/er/c.py", ".git/index", "docs/d.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("old")
    for path in (root, *root.rglob("*")):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return root


class Eye:
    """A watch whose clock goes on by a minute with every look."""

    def __init__(self, root: Path, **options: object) -> None:
        self.newest = Newest(root, **options)  # type: ignore[arg-type]
        self.now = 0.0

    def look(self) -> bool:
        """Whether this look has seen a change."""
        self.now += 60.0
        return self.newest.look(self.now) == self.now


@pytest.fixture
def eye(tree: Path) -> Eye:
    eye = Eye(tree)
    assert eye.newest.look(1.0) == 0.0
    return eye


def rewrite_in_place(root: Path) -> None:
    (root / "src/deep/er/c.py").write_text("other text")


def rewrite_to_the_same_size(root: Path) -> None:
    (root / "a.txt").write_text("new")


def add(root: Path) -> None:
    (root / "docs/new.md").touch()


def add_folder(root: Path) -> None:
    (root / "src/deep/new").mkdir()


def delete(root: Path) -> None:
    (root / "src/b.py").unlink()


def rename(root: Path) -> None:
    (root / "a.txt").rename(root / "z.txt")


def link(root: Path) -> None:
    (root / "src/link").symlink_to("b.py")


def set_back(root: Path) -> None:
    os.utime(root / "a.txt", (LONG_AGO - 5, LONG_AGO - 5))


def make_and_remove(root: Path) -> None:
    (root / "docs/x").touch()
    (root / "docs/x").unlink()


CHANGES: list[Callable[[Path], None]] = [
    *(rewrite_in_place, rewrite_to_the_same_size, add, add_folder, delete, rename, link, set_back, make_and_remove)
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_once(tree: Path, eye: Eye, change: Callable[[Path], None]) -> None:
    """H02: and what is not touched again is no sign of life again."""
    assert not eye.look()
    change(tree)
    assert eye.look()
    assert not eye.look() and not eye.look()


def test_a_time_in_the_future_is_one_change_and_no_more(tree: Path, eye: Eye) -> None:
    """H02: nobody looks alive for ever by one touch."""
    assert not is_fooled(eye.look, tree)


def test_one_who_believes_the_times_of_files_is_caught(tree: Path) -> None:
    """H02: planted bug: the newest time there is, taken as it stands."""

    def look() -> bool:
        return max(path.stat().st_mtime for path in tree.rglob("*")) > time.time() - 60

    assert is_fooled(look, tree)


def is_fooled(look: Callable[[], bool], tree: Path) -> bool:
    """Whether a change is still seen long after the only one there was."""
    look()
    os.utime(tree / "a.txt", (time.time() + YEAR, time.time() + YEAR))
    look()
    return look()


@pytest.mark.parametrize("name", [".git/index", ".git/objects/x", "src/.git/HEAD", ".ganger/run/log", "docs/d.md"])
def test_what_git_or_ganger_itself_writes_is_no_sign_of_the_agent(tree: Path, name: str) -> None:
    """H02: nor what is passed over for another reason."""
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    eye = Eye(tree, skip=lambda path: path in (".ganger", "docs/d.md"))
    eye.look()
    path.write_text("x")
    os.utime(path.parent, (LONG_AGO, LONG_AGO))
    eye.look()
    path.write_text("other")
    assert not eye.look()


def test_before_there_is_anything_to_compare_the_files_own_times_count(tree: Path) -> None:
    """H02: what was written since the watch began, by when it was; no older time, and none that is yet to come."""
    now = time.time()
    newest = Newest(tree, wall=lambda: now)
    assert newest.look(500.0) == 0.0
    later = Newest(tree, wall=iter([now - 100, now, now]).__next__)
    os.utime(tree / "src/b.py", (now - 40, now - 40))
    os.utime(tree / "a.txt", (now + YEAR, now + YEAR))
    assert later.look(500.0) == pytest.approx(460.0, abs=0.01)


def test_no_link_leads_out_of_the_folder(tree: Path, tmp_path: Path) -> None:
    """Neither one that is there nor one that takes a folder's place."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tree / "out").symlink_to(outside)
    (tree / "self").symlink_to(tree)
    eye = Eye(tree)
    eye.look()
    (outside / "x").touch()
    assert not eye.look()

    def swap(path: str) -> bool:
        """A folder goes elsewhere and leaves a link, after it was read and before what it holds is."""
        if path == "src/deep":
            (tree / "src").rename(tmp_path / "away")
            (tree / "src").symlink_to(tmp_path / "away")
        return seen(path)

    seen = Paths()
    Newest(tree, skip=swap).look(1.0)
    assert "src/deep" in seen and "src/deep/er" not in seen


class Paths(set[str]):
    """Every path that was asked about."""

    def __call__(self, path: str) -> bool:
        self.add(path)
        return False


def test_a_big_tree_is_looked_at_a_part_at_a_time_and_as_a_whole(tmp_path: Path) -> None:
    """H02: no look takes long, and a change is found wherever it is within two rounds."""
    for folder in range(40):
        (tmp_path / f"d{folder}").mkdir()
        for file in range(25):
            (tmp_path / f"d{folder}/f{file}").touch()
    seen = Paths()
    eye = Eye(tmp_path, budget=50, skip=seen)
    looks = 0
    while eye.newest._before is None or looks < 30:
        before = len(seen)
        eye.look()
        looks += 1
        assert len(seen) - before <= 100
    assert len(seen) == 40 * 26 and looks < 60
    (tmp_path / "d7/f7").write_text("x")
    assert any(eye.look() for _ in range(60))
    assert not any(eye.look() for _ in range(60))


def test_a_folder_beyond_all_measure_is_not_read_to_its_end(tmp_path: Path) -> None:
    """H02: what comes and goes in it is seen all the same."""
    for file in range(300):
        (tmp_path / f"f{file}").touch()
    seen = Paths()
    eye = Eye(tmp_path, budget=20, skip=seen)
    for _ in range(5):
        eye.look()
    assert len(seen) <= 40
    (tmp_path / "f300").touch()
    assert eye.look()


def pipe(root: Path) -> None:
    os.mkfifo(root / "pipe")


def shut(root: Path) -> None:
    (root / "src").chmod(0)


def deep(root: Path) -> None:
    place = os.open(root, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)


def odd_names(root: Path) -> None:
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"x" * 255):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).touch()


def gone(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def a_file(root: Path) -> None:
    gone(root)
    root.write_text("I was a folder")


@pytest.fixture
def opened(tree: Path) -> Iterator[Path]:
    yield tree
    if (tree / "src").is_dir():
        (tree / "src").chmod(0o755)


@pytest.mark.parametrize("trick", [pipe, shut, deep, odd_names, gone, a_file])
def test_nothing_in_the_folder_makes_it_fail_or_wait(opened: Path, trick: Callable[[Path], None]) -> None:
    """Neither before the first look nor between two."""
    before, after = Eye(opened), Eye(opened)
    before.look()
    trick(opened)
    for eye in (before, after):
        for _ in range(3):
            eye.look()
    assert len(os.listdir("/proc/self/fd")) < 200


def test_a_folder_that_changes_under_the_look_is_survived(tree: Path) -> None:
    """Folders come, go and become files and links while they are read."""
    over = threading.Event()

    def stir() -> None:
        place = tree / "src"
        while not over.is_set():
            place.rename(tree / "moved")
            place.symlink_to("docs")
            place.unlink()
            place.touch()
            place.unlink()
            (tree / "moved").rename(place)

    stirring = threading.Thread(target=stir)
    stirring.start()
    try:
        eye = Eye(tree)
        seen = [eye.look() for _ in range(300)]
    finally:
        over.set()
        stirring.join()
    assert any(seen)
