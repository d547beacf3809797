"""An attempt that edits in place: what is seen, what is kept, what is put back, what becomes the next baseline."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from ganger.errors import NotFoundError, WriteRefused
from ganger.workspaces.direct.watch import FolderWatch
from ganger.workspaces.rules.artifacts import is_generated
from tests.workspaces.watch_harness import busy_agent, same_size_and_time, watch_of, watched
from tests.workspaces.write_harness import fast_folder, make_place, snapshot


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def contents_of(tmp_path: Path) -> set[str]:
    return set(os.listdir(tmp_path / "state/watch/contents"))


def test_every_kind_of_change_is_seen(tmp_path: Path) -> None:
    """W02: before and after, of files, modes, links, renames and special files."""
    here = watched(tmp_path)
    busy_agent(here.root)
    assert here.kinds() == {
        "a.txt": "modified",
        "run.sh": "mode",
        "src/deep/er/x.py": "deleted",
        "link": "modified",
        "new/dir/n.txt": "added",
        "src/app.py": "deleted",
        "moved.py": "added",
        "pipe": "added",
    }
    moved = {one.path: one.renamed_from for one in here.seen().touched if one.renamed_from}
    assert moved == {"moved.py": "src/app.py"}


def test_a_change_gives_the_contents_before_and_after(tmp_path: Path) -> None:
    """W02: the one form in which every change is judged."""
    here = watched(tmp_path)
    busy_agent(here.root)
    change = here.seen()
    assert (change.before("a.txt"), change.after("a.txt")) == (b"alpha\n" * 30, b"beta\n")
    assert (change.before("link"), change.after("link")) == (b"src/app.py", b"a.txt")
    assert (change.before("new/dir/n.txt"), change.after("src/app.py")) == (b"", b"")
    (side,) = [one.after for one in change.touched if one.path == "a.txt"]
    assert side is not None
    assert (side.mode, side.size, side.digest) == (0o100644, 5, sha("beta\n"))


@pytest.mark.parametrize("later", ["evil", "much longer than what was seen", ""])
def test_a_file_that_changes_after_it_was_seen_is_not_judged_as_something_else(tmp_path: Path, later: str) -> None:
    """T18: what is judged is what was seen; a file that grew has met no limit."""
    here = watched(tmp_path)
    (here.root / "a.txt").write_text("seen")
    change = here.seen()
    (here.root / "a.txt").write_text(later)
    with pytest.raises(WriteRefused, match="changed after"):
        change.after("a.txt")


def test_undo_leaves_no_trace(tmp_path: Path) -> None:
    """T18 W02: contents, modes, links, times and folders as they were; harmless to repeat."""
    here = watched(tmp_path)
    busy_agent(here.root)
    change = here.seen()
    assert here.watch.undo(change) == ()
    assert here.is_as_before()
    assert here.watch.undo(change) == ()
    assert here.is_as_before()
    assert here.seen().is_nothing


def test_permissions_that_git_does_not_know_are_undone_and_not_judged(tmp_path: Path) -> None:
    """W02: 0644 to 0600 is no change of the project, and is put back."""
    here = watched(tmp_path)
    (here.root / "a.txt").chmod(0o600)
    (here.root / "src").chmod(0o700)
    change = here.seen()
    assert (change.touched, change.permissions, change.folders) == ((), ("a.txt",), ("src",))
    here.watch.undo(change)
    assert here.is_as_before()


def test_what_ganger_wrote_is_not_the_agents_unless_somebody_changed_it_since(tmp_path: Path) -> None:
    """W02: writes that land while an agent works in place are told from its own."""
    here = watched(tmp_path)
    (here.root / "fresh").mkdir()
    (here.root / "fresh/ours.txt").write_text("ours")
    (here.root / "a.txt").write_text("ours, spoilt")
    (here.root / "empty.txt").unlink()
    change = here.watch.changed({"fresh/ours.txt": sha("ours"), "a.txt": sha("ours"), "empty.txt": ""})
    assert [one.path for one in change.touched] == ["a.txt"]
    here.watch.undo(change)
    assert (here.root / "fresh/ours.txt").read_text() == "ours"


def test_what_was_absorbed_is_what_undo_goes_back_to(tmp_path: Path) -> None:
    """T18: undoing an agent never takes back what Ganger wrote meanwhile."""
    here = watched(tmp_path)
    (here.root / "a.txt").write_text("ours")
    (here.root / "fresh").mkdir()
    (here.root / "fresh/b.txt").write_text("not as written")
    here.watch.absorb({"a.txt": sha("ours"), "fresh/b.txt": sha("ours")})
    (here.root / "a.txt").write_text("the agent's")
    change = here.seen()
    assert [one.path for one in change.touched] == ["a.txt", "fresh/b.txt"]
    here.watch.undo(change)
    assert (here.root / "a.txt").read_text() == "ours"
    assert not (here.root / "fresh").exists()


def test_an_accepted_change_is_the_next_baseline(tmp_path: Path) -> None:
    """W02: what verification passed stays, also over a restart."""
    here = watched(tmp_path)
    busy_agent(here.root)
    here.watch.accept(here.seen())
    after = snapshot(here.root)
    assert here.seen().is_nothing
    again = watch_of(here.place)
    assert again.resume()
    assert again.changed().is_nothing
    (here.root / "a.txt").write_text("later")
    again.undo(again.changed())
    assert snapshot(here.root) == after


def test_a_restarted_process_finds_the_baseline_of_the_running_attempt(tmp_path: Path) -> None:
    """T20 W02: the agent went on while nobody was there; all it did is seen and can be undone."""
    here = watched(tmp_path)
    busy_agent(here.root)
    again = watch_of(here.place)
    assert again.resume()
    assert again.whole
    assert len(again.changed().touched) == 8
    assert again.undo(again.changed()) == ()
    assert here.is_as_before()


def test_without_a_baseline_there_is_nothing_to_resume(tmp_path: Path) -> None:
    """W02: and the message says what to do."""
    watch = watch_of(make_place(tmp_path))
    assert not watch.resume()
    with pytest.raises(NotFoundError, match="no snapshot"):
        watch.changed()


@pytest.mark.parametrize("damage", [b"", b"\x00" * 50, b"{}\n", b'{"format":1,"root":"/elsewhere"}\n', b"[" * 9000])
def test_a_damaged_baseline_is_as_if_there_were_none(tmp_path: Path, damage: bytes) -> None:
    """W02: the next attempt begins anew."""
    here = watched(tmp_path)
    (tmp_path / "state/watch/baseline").write_bytes(damage)
    again = watch_of(here.place)
    assert not again.resume()
    again.begin()
    assert again.changed().is_nothing


def test_a_torn_last_line_of_the_baseline_counts_as_never_written(tmp_path: Path) -> None:
    """W02 T19: whoever wrote it never said that it was there."""
    here = watched(tmp_path)
    with open(tmp_path / "state/watch/baseline", "ab") as file:
        file.write(b'{"taken_ns":1,"files":{"a.t')
    again = watch_of(here.place)
    assert again.resume()
    assert again.changed().is_nothing
    (here.root / "a.txt").write_text("next")
    again.begin()
    assert watch_of(here.place).resume()
    third = watch_of(here.place)
    third.resume()
    assert third.changed().is_nothing


def test_the_baseline_is_not_written_while_nothing_changes(tmp_path: Path) -> None:
    """W02: an attempt on a quiet folder costs no write."""
    here = watched(tmp_path)
    file = tmp_path / "state/watch/baseline"
    first = file.stat()
    same_size_and_time(here.root / "a.txt", (here.root / "a.txt").read_bytes())
    for _ in range(3):
        here.watch.begin()
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (first.st_mtime_ns, first.st_ino)


def test_many_attempts_do_not_let_the_baseline_grow() -> None:
    """G08: what is on disk is bounded."""
    with fast_folder() as above:
        here = watched(above)
        for number in range(600):
            (here.root / "a.txt").write_text(f"{number}")
            here.watch.begin()
        assert (above / "state/watch/baseline").stat().st_size < 80_000
        again = watch_of(here.place)
        assert again.resume()
        assert again.changed().is_nothing


def test_equal_contents_are_kept_once_and_named_by_their_digest(tmp_path: Path) -> None:
    """G08: one copy of each."""
    watched(tmp_path, {"a": "same", "b": "same", "c": "other"})
    assert contents_of(tmp_path) == {sha("same"), sha("other")}


def test_what_does_not_fit_is_seen_and_not_undone_and_small_files_come_first(tmp_path: Path) -> None:
    """G08 W02: the limit holds, and whoever asks is told what cannot be put back."""
    here = watched(tmp_path, {"big": "x" * 500, "small": "s", "other": "o"}, limit_bytes=100)
    assert not here.watch.whole
    assert contents_of(tmp_path) == {sha("s"), sha("o")}
    for name in ("big", "small"):
        (here.root / name).write_text("changed")
    change = here.seen()
    assert change.lost == ("big",)
    assert change.before("big") == b""
    assert here.watch.undo(change) == ("big",)
    assert (here.root / "small").read_text() == "s"


def test_an_unkept_file_is_still_compared_by_its_content(tmp_path: Path) -> None:
    """W02: a tie is settled by hash whether or not there is a copy."""
    here = watched(tmp_path, {"big": "x" * 500}, limit_bytes=100)
    same_size_and_time(here.root / "big", b"x" * 500)
    assert here.seen().is_nothing
    same_size_and_time(here.root / "big", b"y" * 500)
    assert here.kinds() == {"big": "modified"}


def test_contents_nobody_needs_make_room_when_room_is_needed(tmp_path: Path) -> None:
    """G08: old versions are dropped before a new one is refused."""
    here = watched(tmp_path, {"a": "1" * 60}, limit_bytes=100)
    (here.root / "a").write_text("2" * 60)
    here.watch.begin()
    assert here.watch.whole
    assert contents_of(tmp_path) == {sha("2" * 60)}


def test_a_large_file_is_shared_on_disk_where_the_file_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G08: the kernel's part is played here; where it cannot, the bytes are copied."""
    shared: list[int] = []

    def clone(target: int, request: int, source: int) -> int:
        shared.append(request)
        return os.pwrite(target, os.pread(source, 2 << 20, 0), 0)

    monkeypatch.setattr("fcntl.ioctl", clone)
    here = watched(tmp_path, {"large": "x" * (2 << 20), "small": "s"})
    (here.root / "large").write_text("gone")
    assert here.undone() == ()
    assert here.is_as_before()
    assert shared == [0x40049409]


def test_a_damaged_copy_is_never_put_back(tmp_path: Path) -> None:
    """T18: the path is named instead."""
    here = watched(tmp_path, {"a": "right"})
    (tmp_path / "state/watch/contents" / sha("right")).write_text("wrong")
    (here.root / "a").write_text("the agent's")
    assert here.undone() == ("a",)
    assert (here.root / "a").read_text() == "the agent's"


def test_what_the_agent_made_is_saved_with_a_summary_before_it_is_undone(tmp_path: Path) -> None:
    """W02 G08: the direct_edit artifact, and no work thrown away."""
    here = watched(tmp_path)
    busy_agent(here.root)
    change = here.seen()
    here.watch.save(change, tmp_path / "edit")
    summary = json.loads((tmp_path / "edit/summary.json").read_text())
    assert summary["kind"] == "direct_edit"
    paths = {kind: [one["path"] for one in summary[kind]] for kind in ("added", "modified", "deleted")}
    assert paths["added"] == ["moved.py", "new/dir/n.txt", "pipe"]
    assert paths["modified"] == ["a.txt", "link", "run.sh"]
    assert paths["deleted"] == ["src/app.py", "src/deep/er/x.py"]
    assert (tmp_path / "edit/files/new/dir/n.txt").read_text() == "new\n"
    assert summary["modified"][1]["link_to"] == "a.txt"
    assert not (tmp_path / "edit/files/link").exists()


def test_a_half_saved_edit_is_finished_and_a_whole_one_is_not_written_again(tmp_path: Path) -> None:
    """G08: a second save after half an undo must not lose the first."""
    here = watched(tmp_path)
    (here.root / "a.txt").write_text("work")
    (here.root / "b.txt").write_text("more")
    (tmp_path / "edit/files").mkdir(parents=True)
    (tmp_path / "edit/files/a.txt").write_text("ha")
    here.watch.save(here.seen(), tmp_path / "edit")
    (here.root / "b.txt").unlink()
    here.watch.save(here.seen(), tmp_path / "edit")
    assert (tmp_path / "edit/files/a.txt").read_text() == "work"
    assert (tmp_path / "edit/files/b.txt").read_text() == "more"
    assert not (tmp_path / "edit.2").exists()


def test_a_later_edit_is_saved_beside_the_earlier_one(tmp_path: Path) -> None:
    """G08: neither takes the other's place."""
    here = watched(tmp_path)
    for text in ("first", "second", "second"):
        (here.root / "a.txt").write_text(text)
        here.watch.save(here.seen(), tmp_path / "edit")
    assert (tmp_path / "edit/files/a.txt").read_text() == "first"
    assert (tmp_path / "edit.2/files/a.txt").read_text() == "second"
    assert not (tmp_path / "edit.3").exists()


def test_a_summary_can_be_saved_without_contents(tmp_path: Path) -> None:
    """W02: a verified edit needs no copy; its summary is the artifact."""
    here = watched(tmp_path)
    (here.root / "a.txt").write_text("work")
    assert here.watch.save(here.seen(), tmp_path / "edit", contents=False) == ("a.txt",)
    summary = json.loads((tmp_path / "edit/summary.json").read_text())
    assert summary["modified"][0]["after"]["sha256"] == sha("work")
    assert os.listdir(tmp_path / "edit") == ["summary.json"]


def test_gate_files_that_drifted_are_named_and_restored_and_the_rest_is_left(tmp_path: Path) -> None:
    """W02 W05: before verification, while others may be at work."""
    here = watched(tmp_path)
    (here.root / "tests/test_app.py").write_text("")
    (here.root / "conftest.py").write_text("import os; os._exit(0)\n")
    (here.root / "a.txt").write_text("work of another")
    drift = here.watch.drifted(lambda path: path.startswith("tests/") or path.endswith("conftest.py"))
    assert [one.path for one in drift.touched] == ["conftest.py", "tests/test_app.py"]
    assert here.watch.restore(drift) == ()
    assert here.kinds() == {"a.txt": "modified"}


def test_a_gate_folder_hidden_behind_a_link_is_found_and_restored(tmp_path: Path) -> None:
    """W02 T18: the link stands in the way of the files that were asked for."""
    here = watched(tmp_path)
    os.rename(here.root / "tests", here.root / "tests.away")
    (here.root / "tests").symlink_to(here.place.outside)
    drift = here.watch.drifted(lambda path: path.startswith("tests/"))
    assert [one.path for one in drift.touched] == ["tests", "tests/test_app.py"]
    assert here.watch.restore(drift) == ()
    assert (here.root / "tests/test_app.py").read_text() == "def test(): ...\n"


def test_a_file_seen_before_is_read_again_once_anything_of_it_moved(tmp_path: Path) -> None:
    """T18: also when size and time were made to look the same."""
    here = watched(tmp_path)
    file = here.root / "late.txt"
    # Ten seconds on, what was just written is not young any more: it is believed until it moves.
    watch = FolderWatch(here.root, tmp_path / "other", is_generated, now_ns=lambda: time.time_ns() + 10**10)
    watch.begin()
    file.write_text("mine")
    first = watch.changed()
    assert watch.changed().present.files["late.txt"] is first.present.files["late.txt"]
    same_size_and_time(file, b"evil")
    (touched,) = watch.changed().touched
    assert touched.after is not None and touched.after.digest == sha("evil")
