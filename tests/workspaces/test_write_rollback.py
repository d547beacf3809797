"""Taking a change set back from its backup folder alone, whatever happened to the tree in between."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.errors import RollbackFailed
from ganger.workspaces.direct.backup import INDEX_NAME
from ganger.workspaces.direct.write import RollbackReport, roll_back, saved_folder
from tests.workspaces.write_harness import Place, append, create, land, make_place, replace, snapshot

FILES = {"a.txt": "a\n" * 80, "sub/b.sh": "#!/bin/sh\n", "sub/keep.txt": "keep\n"}
WRITES = [replace("a.txt", "A\n" * 80), append("sub/b.sh", "exit 1\n"), create("new/deep/n.txt"), create("sub/e.txt")]


def applied(tmp_path: Path) -> tuple[Place, dict[str, tuple[str, int, bytes, int]]]:
    place = make_place(tmp_path, FILES)
    (place.root / "sub/b.sh").chmod(0o4755)
    os.utime(place.root / "sub/b.sh", ns=(1, 1_234_567_890_123_456_789))
    before = snapshot(place.root.parent, skip=place.folder)
    land(place, WRITES)
    return place, before


def test_a_failed_verification_leaves_no_trace_of_the_writes(tmp_path: Path) -> None:
    """T18 T17 T28 failed-verify-rollback: bytes, modes, times, created files and directories."""
    place, before = applied(tmp_path)
    assert subprocess.run(["sh", str(place.root / "sub/b.sh")]).returncode == 1
    report = roll_back(place.root, place.folder)
    assert place.snapshot() == before
    assert sorted(report.restored) == ["a.txt", "sub/b.sh"]
    assert sorted(report.removed) == ["new/deep/n.txt", "sub/e.txt"]


def test_rolling_back_twice_changes_nothing_more(tmp_path: Path) -> None:
    """T18: harmless to repeat; what is already as before is not rewritten."""
    place, before = applied(tmp_path)
    roll_back(place.root, place.folder)
    inode = (place.root / "a.txt").stat().st_ino
    report = roll_back(place.root, place.folder)
    assert place.snapshot() == before
    assert (report.restored, (place.root / "a.txt").stat().st_ino) == ((), inode)


@pytest.mark.parametrize("code", [errno.EIO, errno.EINTR, errno.EACCES])
def test_a_folder_that_cannot_be_listed_keeps_no_file_from_coming_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """T18 T19: the sweep of temporary files is told as failed; every original is there again."""
    place, before = applied(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", _refuse(code))
        with pytest.raises(RollbackFailed, match=r"could not be put back"):
            roll_back(place.root, place.folder)
    roll_back(place.root, place.folder)
    assert place.snapshot() == before


def _refuse(code: int) -> Callable[..., object]:
    def scandir(*_: object) -> object:
        raise OSError(code, os.strerror(code))

    return scandir


def test_without_a_whole_backup_there_is_nothing_to_roll_back(tmp_path: Path) -> None:
    """T18: no index means that no write was ever begun."""
    place = make_place(tmp_path, FILES)
    before = place.snapshot()
    assert roll_back(place.root, place.folder) == RollbackReport()
    place.folder.mkdir()
    (place.folder / "00000.orig").write_text("half")
    assert roll_back(place.root, place.folder) == RollbackReport()
    assert place.snapshot() == before


def edit_everything(root: Path) -> None:
    for path in [one for one in root.rglob("*") if one.is_file() and one.name != "keep.txt"]:
        path.write_text("edited by the verifier\n" * 100)
        path.chmod(0o600)


def delete_everything(root: Path) -> None:
    shutil.rmtree(root / "new")
    (root / "a.txt").unlink()
    (root / "sub/e.txt").unlink()


def files_to_links(root: Path) -> None:
    for name in ("a.txt", "sub/e.txt"):
        (root / name).unlink()
        (root / name).symlink_to(root.parent / "ws-evil" / "secret.txt")


def files_to_empty_directories(root: Path) -> None:
    for name in ("a.txt", "new/deep/n.txt"):
        (root / name).unlink()
        (root / name).mkdir()


def file_to_fifo(root: Path) -> None:
    (root / "a.txt").unlink()
    os.mkfifo(root / "a.txt")


def new_directory_to_link(root: Path) -> None:
    (root / "new").rename(root.parent / "ws-evil" / "stolen")
    (root / "new").symlink_to(root.parent / "ws-evil")


MEDDLERS = [edit_everything, delete_everything, files_to_links, files_to_empty_directories, file_to_fifo]


@pytest.mark.parametrize("meddle", MEDDLERS)
def test_a_verifier_that_meddles_with_the_files_changes_nothing(tmp_path: Path, meddle: Callable[[Path], None]) -> None:
    """T18 T28 failed-verify-rollback: edited, deleted, turned into links, directories or FIFOs."""
    place, before = applied(tmp_path)
    meddle(place.root)
    roll_back(place.root, place.folder)
    assert {name: entry for name, entry in place.snapshot().items() if ".saved" not in name} == before


def test_what_somebody_else_wrote_meanwhile_is_saved_beside_the_backup(tmp_path: Path) -> None:
    """T18 G08: a change of neither the old nor the new content is nobody's to throw away."""
    place, _ = applied(tmp_path)
    edit_everything(place.root)
    report = roll_back(place.root, place.folder)
    saved = sorted(path.read_bytes() for path in saved_folder(place.folder).iterdir())
    assert report.saved and saved and all(b"edited by the verifier" in data for data in saved)
    assert roll_back(place.root, place.folder).saved == ()


def test_a_new_directory_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """T18: the link goes, what it pointed to stays."""
    place, before = applied(tmp_path)
    new_directory_to_link(place.root)
    outside = snapshot(place.outside)
    roll_back(place.root, place.folder)
    assert snapshot(place.outside) == outside
    inside = {name: entry for name, entry in before.items() if name.startswith("ws/")}
    assert {name: entry for name, entry in place.snapshot().items() if name.startswith("ws/")} == inside


def test_an_old_directory_that_became_a_link_is_moved_aside(tmp_path: Path) -> None:
    """T18: never followed; the files Ganger touched are back in a real directory."""
    place, _ = applied(tmp_path)
    (place.root / "sub").rename(place.outside / "taken")
    (place.root / "sub").symlink_to(place.outside / "taken")
    outside = snapshot(place.outside)
    report = roll_back(place.root, place.folder)
    assert snapshot(place.outside) == outside
    assert (place.root / "sub/b.sh").read_text() == "#!/bin/sh\n"
    assert [(place.root / one).is_symlink() for one in report.moved_aside] == [True]


def test_a_full_directory_in_a_files_place_is_moved_aside(tmp_path: Path) -> None:
    """T18: somebody's work is never thrown away."""
    place, _ = applied(tmp_path)
    (place.root / "a.txt").unlink()
    (place.root / "a.txt/work").mkdir(parents=True)
    (place.root / "a.txt/work/w.txt").write_text("work")
    report = roll_back(place.root, place.folder)
    assert (place.root / "a.txt").read_text() == FILES["a.txt"]
    assert [(place.root / one / "work/w.txt").read_text() for one in report.moved_aside] == ["work"]


def test_a_new_directory_with_somebodys_file_in_it_is_kept(tmp_path: Path) -> None:
    """T18: only empty directories are removed, and the report says which were kept."""
    place, _ = applied(tmp_path)
    (place.root / "new/deep/build.log").write_text("log")
    assert roll_back(place.root, place.folder).kept == ("new/deep", "new")
    assert (place.root / "new/deep/build.log").read_text() == "log"


def test_left_over_temporary_files_of_this_apply_are_removed_and_only_those(tmp_path: Path) -> None:
    """T18: the name carries the backup's tag; another writer's file is not touched."""
    place, before = applied(tmp_path)
    tag = (place.folder / INDEX_NAME).read_text().split('"tag": "')[1].split('"')[0]
    (place.root / f"sub/.ganger-{tag}-0123.tmp").write_text("half")
    other = place.root / "sub/.ganger-ffffffffffffffff-0123.tmp"
    other.write_text("in flight")
    roll_back(place.root, place.folder)
    other.unlink()
    assert place.snapshot() == before


def test_a_damaged_copy_is_named_and_the_other_files_are_restored(tmp_path: Path) -> None:
    """T18: the message names the file and where its original should be."""
    place, _ = applied(tmp_path)
    (place.folder / "00000.orig").write_text("damaged")
    with pytest.raises(RollbackFailed, match=r"1 of the files.*'a\.txt'.*00000\.orig"):
        roll_back(place.root, place.folder)
    assert (place.root / "a.txt").read_text() == "A\n" * 80
    assert (place.root / "sub/b.sh").read_text() == "#!/bin/sh\n"
    assert not (place.root / "new").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 9}', '{"format": 1, "root": "/", "tag": "x", "files": [{}]}']
)
def test_an_index_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    """T18: no traceback, and the tree stays as it is."""
    place, _ = applied(tmp_path)
    (place.folder / INDEX_NAME).write_text(text)
    before = place.snapshot()
    with pytest.raises(RollbackFailed, match=r"index\.json"):
        roll_back(place.root, place.folder)
    assert place.snapshot() == before


def test_a_backup_is_never_rolled_back_onto_another_directory(tmp_path: Path) -> None:
    """T18: the folder knows which tree it belongs to."""
    place, _ = applied(tmp_path)
    with pytest.raises(RollbackFailed, match="was made of"):
        roll_back(place.outside, place.folder)
    with pytest.raises(RollbackFailed, match="original files are in"):
        roll_back(tmp_path / "gone", place.folder)


def test_an_index_cannot_name_a_path_outside(tmp_path: Path) -> None:
    """T18: the walk refuses what the index says."""
    place, _ = applied(tmp_path)
    index = place.folder / INDEX_NAME
    index.write_text(index.read_text().replace('"sub/e.txt"', '"../ws-evil/secret.txt"'))
    with pytest.raises(RollbackFailed):
        roll_back(place.root, place.folder)
    assert (place.outside / "secret.txt").read_text() == "outside\n"
