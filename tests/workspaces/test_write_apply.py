"""Landing a change set: whole or not at all, against a tree that changes under it, durable on return."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.errors import WriteRefused
from ganger.workspaces.direct.backup import INDEX_NAME, load_backup
from ganger.workspaces.direct.write import apply_changes, discard_backup, is_applied, prepare_backup, roll_back
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.writes import ChangeSet
from tests.patience import stretched
from tests.workspaces.write_harness import (
    Place,
    append,
    create,
    fast_folder,
    land,
    make_place,
    plan,
    replace,
    skip_here,
)

WRITES = [replace("a.txt", "A\n"), create("new/n.txt"), replace("b.txt", "B\n")]
FILES = {"a.txt": "a\n", "b.txt": "b\n"}


def prepared(place: Place) -> ChangeSet:
    changes = plan(place, WRITES)
    with Tree(place.root) as tree:
        prepare_backup(tree, changes, place.folder)
    return changes


def apply_code(place: Place, changes: ChangeSet) -> str:
    try:
        with Tree(place.root) as tree:
            apply_changes(tree, changes, place.folder)
    except WriteRefused as refusal:
        return refusal.code
    return ""


def become_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "ws-evil" / "secret.txt")


def become_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_directory(path: Path) -> None:
    (path.parent / "new").symlink_to(path.parent.parent / "ws-evil")


def appear(path: Path) -> None:
    (path.parent / "new").mkdir()
    (path.parent / "new/n.txt").write_text("new\n")


INTERFERENCE: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.unlink(), "HASH_MISMATCH"),
    (lambda path: path.write_text("someone else\n"), "HASH_MISMATCH"),
    (become_link, "PATH_SYMLINK"),
    (become_directory, "PATH_NOT_REGULAR"),
    (link_directory, "PATH_SYMLINK"),
    (appear, "CREATE_EXISTS"),
]


@pytest.mark.parametrize(("interfere", "code"), INTERFERENCE)
def test_a_tree_that_changed_after_the_plan_is_left_as_it_is(
    tmp_path: Path, interfere: Callable[[Path], object], code: str
) -> None:
    """T18: the target vanishes, changes, appears or turns into a link between check and write."""
    place = make_place(tmp_path, FILES)
    changes = prepared(place)
    interfere(place.root / "b.txt")
    before = place.snapshot()
    assert apply_code(place, changes) == code
    assert place.snapshot() == before


def test_nothing_lands_without_a_whole_backup_of_the_same_change_set(tmp_path: Path) -> None:
    """T18: backup first."""
    place = make_place(tmp_path, FILES)
    before = place.snapshot()
    assert apply_code(place, plan(place, WRITES)) == "BACKUP_MISSING"
    prepared(place)
    assert apply_code(place, plan(place, WRITES[:1])) == "BACKUP_MISSING"
    assert place.snapshot() == before


def test_the_backup_is_private_and_whole(tmp_path: Path) -> None:
    """T18: an own folder 0700, files 0600, every original in it, the index with all that a rollback needs."""
    place = make_place(tmp_path, FILES)
    prepared(place)
    assert place.folder.stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o777 for one in place.folder.iterdir()} == {0o600}
    index = json.loads((place.folder / INDEX_NAME).read_text())
    copies = [(one["path"], one["existed"], one["backup"]) for one in index["files"]]
    assert copies == [("a.txt", True, "00000.orig"), ("new/n.txt", False, None), ("b.txt", True, "00002.orig")]
    assert (place.folder / "00002.orig").read_text() == "b\n"


def test_a_left_over_half_of_a_backup_is_begun_anew(tmp_path: Path) -> None:
    """T18: preparing twice is harmless, with or without an index."""
    place = make_place(tmp_path, FILES)
    place.folder.mkdir(mode=0o755)
    (place.folder / "00000.orig").write_text("half of a")
    prepared(place)
    first = load_backup(place.folder)
    prepared(place)
    assert load_backup(place.folder) == first
    assert (place.folder / "00000.orig").read_text() == "a\n"


def test_another_change_sets_backup_is_never_overwritten(tmp_path: Path) -> None:
    """T18: else the originals of a half-applied change set would be lost."""
    place = make_place(tmp_path, FILES)
    land(place, WRITES)
    other = plan(place, [replace("a.txt", "other\n")])
    with Tree(place.root) as tree, pytest.raises(WriteRefused) as caught:
        prepare_backup(tree, other, place.folder)
    assert caught.value.code == "BACKUP_EXISTS"
    assert (place.folder / "00000.orig").read_text() == "a\n"


def test_a_backup_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """T18: nobody else chooses where the originals go."""
    place = make_place(tmp_path, FILES)
    place.folder.symlink_to(place.outside)
    with pytest.raises(WriteRefused, match="backup folder"):
        prepared(place)
    assert [one.name for one in place.outside.iterdir()] == ["secret.txt"]


def test_how_much_is_applied_is_told_by_hashes(tmp_path: Path) -> None:
    """T18: none, partial, all, and none again after the rollback; a discarded backup is none."""
    place = make_place(tmp_path, FILES)
    seen = [is_applied(place.root, place.folder)]
    changes = prepared(place)
    seen.append(is_applied(place.root, place.folder))
    (place.root / "a.txt").write_text("A\n")
    seen.append(is_applied(place.root, place.folder))
    (place.root / "a.txt").write_text("a\n")
    assert apply_code(place, changes) == ""
    seen.append(is_applied(place.root, place.folder))
    roll_back(place.root, place.folder)
    assert [*seen, is_applied(place.root, place.folder)] == ["none", "none", "partial", "all", "none"]


def test_a_discarded_backup_is_gone_and_discarding_twice_is_harmless(tmp_path: Path) -> None:
    """T18: after success nothing stays behind."""
    place = make_place(tmp_path, FILES)
    land(place, WRITES)
    discard_backup(place.folder)
    discard_backup(place.folder)
    assert not place.folder.exists()
    assert (place.root / "a.txt").read_text() == "A\n"


def test_no_temporary_file_and_no_descriptor_is_left(tmp_path: Path) -> None:
    """T18: not after success, refusal or rollback."""
    place = make_place(tmp_path, FILES)
    descriptors = len(os.listdir("/proc/self/fd"))
    land(place, WRITES)
    roll_back(place.root, place.folder)
    for path in ("a.txt/x", "new/../x", "missing"):
        with pytest.raises(WriteRefused):
            land(place, [replace(path)])
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert sorted(one.name for one in place.root.iterdir()) == ["a.txt", "b.txt"]


def child(program: str, *arguments: str, prefix: tuple[str, ...] = ()) -> str:
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    argv = [*prefix, sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=stretched(60), env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FULL_DISK = """
import subprocess, sys
from pathlib import Path
from tests.workspaces.write_harness import *
from ganger.errors import DiskFullError
top = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(top)], check=True)
place = make_place(top, {f"{n}.txt": "x" * 9000 for n in range(5)})
place = Place(place.root, place.outside, Path(sys.argv[2]) / "backup")
before = place.snapshot()
try:
    land(place, [replace(f"{n}.txt", "y" * (9000 if n < 2 else 400_000)) for n in range(5)])
except DiskFullError as error:
    print(error.code, "2.txt" in error.message, place.snapshot() == before)
"""


def test_a_disk_that_is_full_at_the_third_of_five_files_changes_nothing(tmp_path: Path) -> None:
    """T18: a real full file system; the files already landed are put back."""
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True).returncode != 0:
        skip_here("no mount namespace here")
    (tmp_path / "disk").mkdir()
    answer = child(FULL_DISK, str(tmp_path / "disk"), str(tmp_path), prefix=("unshare", "-rm"))
    assert answer == "DISK_FULL True True"


SHORT_FILES = """
import resource, sys
from pathlib import Path
from tests.workspaces.write_harness import *
place = make_place(Path(sys.argv[1]), {f"{n}.txt": "x" * 100 for n in range(5)})
before = place.snapshot()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    land(place, [replace(f"{n}.txt", "y" * (100 if n < 2 else 60_000)) for n in range(5)])
except WriteRefused as error:
    print(error.code, error.path, place.snapshot() == before)
"""


def test_a_write_cut_short_by_a_limit_changes_nothing(tmp_path: Path) -> None:
    """T18: a short write is never taken for a whole one."""
    assert child(SHORT_FILES, str(tmp_path)) == "WRITE_FAILED 2.txt True"


READ_ONLY = """
import os, sys
from pathlib import Path
from tests.workspaces.write_harness import *
top = Path(sys.argv[1])
if os.geteuid() == 0:
    os.chmod(top, 0o755)
    os.chown(top, 65534, 65534)
    os.setegid(65534)
    os.seteuid(65534)
place = make_place(top, {"a.txt": "a\\n", "shut/b.txt": "b\\n"})
(place.root / "shut").chmod(0o555)
before = place.snapshot()
for last in (replace("shut/b.txt"), create("shut/c.txt"), create("shut/new/c.txt")):
    print(code_of(Place(place.root, place.outside, top / "state" / last.path.replace("/", "-")), last), end=" ")
try:
    land(place, [replace("a.txt"), create("n/n.txt"), replace("shut/b.txt")])
except WriteRefused as error:
    print(error.code, error.path)
after = {name: entry for name, entry in place.snapshot().items() if not name.startswith("state/")}
print(after == before)
(place.root / "shut").chmod(0o755)
"""


def test_a_read_only_directory_changes_nothing() -> None:
    """T18: what was landed before the refusal is put back."""
    with fast_folder() as top:
        answer = child(READ_ONLY, str(top)).split()
    assert answer == ["WRITE_FAILED"] * 3 + ["WRITE_FAILED", "shut/b.txt", "True"]


def durability_faults(calls: list[tuple[str, str]]) -> list[str]:
    """Names that were given before their bytes were synced, and directories not synced after their last change."""
    faults, synced, unsynced = [], set(), set()
    for call, place in calls:
        if call == "fsync":
            synced.add(place)
            unsynced.discard(place)
        elif call in ("link", "rename"):
            faults += [f"unsynced bytes: {place}"] if place not in synced else []
            unsynced.add(str(Path(place).parent))
        elif call == "mkdir":
            unsynced.add(str(Path(place).parent))
    return faults + [f"unsynced directory: {one}" for one in sorted(unsynced)]


def traced(
    place: Place, changes: ChangeSet, monkeypatch: pytest.MonkeyPatch, *, blind: str = ""
) -> list[tuple[str, str]]:
    """Every sync and every taken name of one apply; `blind` drops the syncs of files or of directories."""
    calls: list[tuple[str, str]] = []
    real = {name: getattr(os, name) for name in ("fsync", "link", "rename", "mkdir")}

    def fsync(fd: int) -> None:
        target = os.readlink(f"/proc/self/fd/{fd}")
        if blind != ("directory" if os.path.isdir(target) else "file"):
            calls.append(("fsync", target))

    def named(call: str) -> Callable[..., None]:
        def act(name: str, *rest: object, **options: int) -> None:
            fd = options.get("src_dir_fd", options.get("dir_fd"))
            calls.append((call, os.path.join(os.readlink(f"/proc/self/fd/{fd}"), name)))
            real[call](name, *rest, **options)

        return act

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        for call in ("link", "rename", "mkdir"):
            patch.setattr(os, call, named(call))
        assert apply_code(place, changes) == ""
    return calls


def test_everything_is_synced_before_apply_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T18: bytes before their name, and every directory that got a new entry."""
    place = make_place(tmp_path, FILES)
    calls = traced(place, prepared(place), monkeypatch)
    assert durability_faults(calls) == []
    assert sum(call in ("link", "rename", "mkdir") for call, _ in calls) == 4


@pytest.mark.parametrize("blind", ["file", "directory"])
def test_the_durability_check_sees_a_missing_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blind: str) -> None:
    """T18: the check is proved on planted mistakes."""
    place = make_place(tmp_path, FILES)
    assert durability_faults(traced(place, prepared(place), monkeypatch, blind=blind))


def test_an_unchanged_file_is_not_rewritten(tmp_path: Path) -> None:
    """T18: same bytes, same inode, same time."""
    place = make_place(tmp_path, FILES)
    before = (place.root / "a.txt").stat()
    land(place, [replace("a.txt", "a\n"), append("b.txt", "")])
    after = (place.root / "a.txt").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
