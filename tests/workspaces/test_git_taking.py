"""What is taken from a workspace: every kind of change seen, nothing followed, nothing run, nothing lost."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from ganger.contracts.task_result import Write
from ganger.errors import GangerError, WriteRefused
from ganger.ports.changes import Rules
from tests.workspaces.git_projects import Ground, files_in, git, ground_at, make_project, python


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with ground_at(tmp_path) as one:
        one.open()
        yield one


def _write(path: str, content: str, op: Literal["create", "replace", "append"] = "create") -> Write:
    return Write(path=path, op=op, encoding="utf8", content=content)


def test_every_kind_of_change_is_seen(ground: Ground) -> None:
    """T18 W02: added, modified, deleted, renamed, mode, link, binary and type changes, with sizes and contents."""
    folder = ground.place().folder
    (folder / "new.bin").write_bytes(b"\0new")
    (folder / "src/two.py").write_text("changed\n")
    (folder / "data.bin").unlink()
    (folder / "src/one.py").rename(folder / "src/moved.py")
    (folder / "crlf.txt").chmod(0o755)
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to("src/two.py")
    taken = ground.take()
    seen = ground.touched()
    assert {path: one.kind for path, one in seen.items()} == {
        "new.bin": "added",
        "src/two.py": "modified",
        "data.bin": "deleted",
        "src/one.py": "deleted",
        "src/moved.py": "added",
        "crlf.txt": "mode",
        "README.md": "retyped",
    }
    change, two, link = ground.seen[-1], seen["src/two.py"], seen["README.md"]
    assert seen["src/moved.py"].renamed_from == "src/one.py"
    assert two.before and two.after and (two.before.size, two.after.size) == (24, 8)
    assert change.before["src/two.py"] == b"def two():\n    return 2\n" and change.after["src/two.py"] == b"changed\n"
    assert link.after and link.after.mode == 0o120000 and change.after["README.md"] == b"src/two.py"
    assert taken.files == tuple(sorted(seen)) and ground.tree(taken.commit) == files_in(folder)


def test_a_change_of_nothing_gives_the_base_itself(ground: Ground) -> None:
    """W05: touched times, a rewritten file with the same bytes and the agent's own commits are no change."""
    place = ground.place()
    os.utime(place.folder / "README.md")
    (place.folder / "run.sh").write_bytes((place.folder / "run.sh").read_bytes())
    git(place.folder, "commit", "-q", "--allow-empty", "-m", "mine")
    shutil.rmtree(place.folder / ".git")
    taken = ground.take(rules=Rules(expected=("out.txt",)))
    assert (taken.commit, taken.files, taken.missing) == (place.base, (), ("out.txt",))
    assert ground.save() == ("", ()) and ground.seen == []


def test_a_change_with_the_old_size_and_time_is_seen(ground: Ground) -> None:
    """G09: an agent can set a file's modification time back, but not its change time."""
    file = ground.place().folder / "src/two.py"
    before = file.stat()
    file.write_text(file.read_text().replace("2", "3"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ground.take().files == ("src/two.py",)


def test_taking_twice_gives_the_same_commit(ground: Ground) -> None:
    """T18 G01: harmless to repeat; writes are laid over the folder and never into it."""
    folder = ground.place().folder
    (folder / "by-hand.txt").write_text("x")
    writes = [_write("asked/for.txt", "1\n"), _write("src/two.py", "two = 2\n" * 3, "replace")]
    first = ground.take(writes=writes)
    assert first == ground.take(writes=writes)
    assert first.files == ("asked/for.txt", "by-hand.txt", "src/two.py")
    assert not (folder / "asked").exists() and "return 2" in (folder / "src/two.py").read_text()
    assert (
        git(ground.settings.store, "log", "-1", "--format=%an <%ae> %s", first.commit)
        == "Ganger <ganger@localhost> t: done"
    )


def test_writes_meet_the_workspace_as_the_agent_left_it(ground: Ground) -> None:
    """T18: create, replace and append are judged against the folder; the refusals are those of direct mode."""
    folder = ground.place().folder
    (folder / "mine.txt").write_text("one\n")
    taken = ground.take(writes=[_write("mine.txt", "two\n", "append"), _write("run.sh", "#!/bin/sh\nls\n", "replace")])
    assert ground.tree(taken.commit)["mine.txt"] == ("100644", b"one\ntwo\n")
    assert ground.tree(taken.commit)["run.sh"][0] == "100755"
    for write, code in [
        (_write("mine.txt", "x"), "CREATE_EXISTS"),
        (_write("../out.txt", "x"), "PATH_ESCAPES"),
        (_write(".git/config", "x"), "PATH_PROTECTED"),
    ]:
        with pytest.raises(WriteRefused) as caught:
            ground.take(writes=[write])
        assert caught.value.code == code


def test_a_write_that_undoes_the_agents_edit_is_no_change(ground: Ground) -> None:
    """T18: what counts is the sum."""
    place = ground.place()
    (place.folder / "src/two.py").write_text("x = 1\n" * 5)
    whole = "def two():\n    return 2\n"
    assert ground.take(writes=[_write("src/two.py", whole, "replace")]).commit == place.base


def test_ignored_files_stay_and_generated_ones_are_named(ground: Ground) -> None:
    """W05: .gitignore holds, also a new one in a folder; generated files are dropped and said, tracked ones never."""
    folder = ground.place().folder
    for name in (
        "a.log",
        "ignored/x",
        "sub/secret.tmp",
        "sub/kept.txt",
        "src/__pycache__/x.pyc",
        ":(top)odd.log",
        ":odd",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "sub/.gitignore").write_text("*.tmp\n")
    taken = ground.take()
    assert taken.files == (":odd", "sub/.gitignore", "sub/kept.txt")
    assert taken.dropped == ("src/__pycache__/",)


def test_a_tracked_file_is_never_dropped_however_it_is_called(tmp_path: Path) -> None:
    """W05: a false drop would lose work."""
    files = {"node_modules/own.js": "1\n", "a.log": "1\n", ".gitignore": "*.log\n", "x.pyc": "1\n"}
    make_project(tmp_path / "project", files)
    with ground_at(tmp_path) as ground:
        ground.open()
        folder = ground.place().folder
        for name in ("node_modules/own.js", "a.log", "x.pyc"):
            (folder / name).write_text("2\n")
        assert ground.take().files == ("a.log", "node_modules/own.js", "x.pyc")


@pytest.mark.parametrize("name", ["pipe", ".gitignore", ".gitattributes", "src/deep/.gitignore"])
def test_pipes_sockets_and_devices_are_refused_and_never_opened(name: str, ground: Ground) -> None:
    """T18 R11: also where git would open them and wait for ever; saving leaves them out and says so."""
    folder = ground.place().folder
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    (folder / "work.txt").write_text("x")
    assert ground.refused() == "SPECIAL_FILE"
    commit, files = ground.save()
    assert "work.txt" in files and name in git(ground.settings.store, "log", "-1", "--format=%B", commit)


def test_a_socket_in_an_ignored_folder_is_no_change(ground: Ground) -> None:
    """W05: what a server left behind where git does not look harms nobody."""
    place = ground.place()
    (place.folder / "ignored").mkdir()
    os.mknod(place.folder / "ignored/door", stat.S_IFSOCK | 0o600)
    assert ground.take().commit == place.base


@pytest.mark.needs("root")
def test_a_hard_link_to_somebody_elses_file_is_refused(ground: Ground, tmp_path: Path) -> None:
    """G05: Ganger may read more than the agent; what the agent could not read is not taken for it."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.chown(secret, 12345, 12345)
    os.link(secret, ground.place().folder / "linked")
    assert ground.refused() == "SPECIAL_FILE"


def _embed(folder: Path, *flags: str, commit: bool) -> None:
    folder.mkdir()
    git(folder, "init", "-q", *flags)
    if commit:
        (folder / "inner.txt").write_text("inner")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "inner")


def test_an_embedded_repository_is_an_added_submodule(ground: Ground) -> None:
    """T18: the judge sees it as what git would make of it; saving keeps its files as files."""
    folder = ground.place().folder
    _embed(folder / "sub", commit=True)
    inner = git(folder / "sub", "rev-parse", "HEAD")
    ground.take()
    after = ground.touched()["sub"].after
    assert after is not None and (after.mode, after.digest) == (0o160000, inner)
    assert ground.save()[1] == ("sub/inner.txt",)


@pytest.mark.parametrize(("flags", "commit"), [((), False), (("--bare",), False)])
def test_an_embedded_repository_without_a_commit_is_refused(
    flags: tuple[str, ...], commit: bool, ground: Ground
) -> None:
    """T18: an ordinary and a bare one; neither is entered."""
    _embed(ground.place().folder / "sub", *flags, commit=commit)
    assert ground.refused() == "EMBEDDED_REPOSITORY"


def test_a_git_folder_planted_in_a_folder_of_the_project_hides_nothing(ground: Ground) -> None:
    """T18 G09: `git init` inside src/ does not make its files vanish, and making src/ itself bare is refused."""
    folder = ground.place().folder
    git(folder / "src", "init", "-q")
    (folder / "src/two.py").write_text("changed\n")
    assert ground.take().files == ("src/two.py",)
    git(folder / "src", "init", "-q", "--bare", ".")
    for name in ("objects/x", "refs/x"):
        (folder / "src" / name).write_text("x")
    assert ground.refused() == "EMBEDDED_REPOSITORY"


def test_submodules_are_seen_by_their_commit_and_never_entered(tmp_path: Path) -> None:
    """T18: unfilled is unchanged; another commit, removal and files in its place are changes."""
    inner = make_project(tmp_path / "inner", {"a.txt": "a\n"})
    project = make_project(tmp_path / "project")
    git(project, "submodule", "add", "-q", str(inner), "sub")
    git(project, "commit", "-qm", "sub")
    with ground_at(tmp_path) as ground:
        ground.open()
        place = ground.place()
        assert ground.take().commit == place.base
        git(place.folder, "submodule", "update", "-q", "--init")
        assert ground.take().commit == place.base
        (place.folder / "sub/new.txt").write_text("x")
        git(place.folder / "sub", "add", "-A")
        git(place.folder / "sub", "commit", "-qm", "more")
        ground.take()
        assert ground.touched()["sub"].kind == "modified"
        shutil.rmtree(place.folder / "sub")
        ground.take()
        assert ground.touched()["sub"].kind == "deleted"


@pytest.mark.parametrize("name", [".GIT/config", "src/.Git/hooks/x", "git~1", ".git\u200b/x"])
def test_disguised_git_folders_are_refused(name: str, ground: Ground) -> None:
    """T18: names that another system takes for .git; saving leaves them out."""
    folder = ground.place().folder
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    assert ground.refused() == "PATH_PROTECTED"
    assert ground.save() == ("", ())


def test_names_that_are_no_text_are_carried_to_the_judge_and_saved(ground: Ground) -> None:
    """T18: newlines, leading dashes and bytes that are no UTF-8 arrive as they are; the judge decides."""
    folder = ground.place().folder
    names = ["new\nline", "--upload-pack=touch x", "-c", os.fsdecode(b"\xff\xfe"), " ", '"quoted"', "tab\there"]
    for name in names:
        (folder / name).write_text(name.encode("utf-8", "replace").decode())
    taken = ground.take()
    assert set(ground.touched()) == set(names)
    assert ground.tree(taken.commit) == files_in(folder)
    assert all(path.encode() for path in ground.save()[1])


@pytest.mark.parametrize(
    ("limits", "files"),
    [
        ((100, 1000, 10), {"big": 101}),
        ((100, 100, 10), {"one": 60, "two": 60}),
        ((100, 100, 3), {str(n): 1 for n in range(4)}),
    ],
)
def test_limits_hold_before_anything_is_read_and_saving_knows_none(
    limits: tuple[int, int, int], files: dict[str, int], tmp_path: Path
) -> None:
    """T18 R10: TOO_LARGE for a change; what is saved is saved whole."""
    file, total, count = limits
    with ground_at(
        tmp_path, lambda one: replace(one, max_file_bytes=file, max_total_bytes=total, max_files=count)
    ) as ground:
        ground.open()
        folder = ground.place().folder
        for name, size in files.items():
            (folder / name).write_bytes(b"x" * size)
        assert ground.refused() == "TOO_LARGE"
        commit, saved = ground.save()
        assert set(saved) == set(files) and ground.tree(commit) == files_in(folder)


def test_a_large_file_is_saved_without_being_held(ground: Ground) -> None:
    """G08 R10: streamed into the repository."""
    with open(ground.place().folder / "large.bin", "wb") as file:
        file.truncate((16 << 20) + 1)
    commit, files = ground.save()
    assert files == ("large.bin",)
    assert git(ground.settings.store, "cat-file", "-s", f"{commit}:large.bin") == str((16 << 20) + 1)


_UNPRIVILEGED = """
import os, sys, tempfile
from pathlib import Path
from ganger.workspaces.git.scan import ScanScope, read_entry, take_census
from ganger.workspaces.files.removal import discard, throw_away
os.setgroups([]); os.setgid(12345); os.setuid(12345)
top = Path(tempfile.mkdtemp(dir="/tmp"))
root = top / "w"
(root / "closed").mkdir(parents=True)
(root / "closed/file.txt").write_text("content")
(root / "closed/file.txt").chmod(0)
(root / "closed").chmod(0)
(root / "shut").mkdir(mode=0o500)
root.chmod(0)
census = take_census(ScanScope(root))
print(list(census.files), read_entry(root, "closed/file.txt", 9), census.odd)
root.chmod(0o400)
print(discard(throw_away(root, top / "trash")), discard(top), top.exists())
"""


@pytest.mark.needs("root")
def test_closed_folders_and_files_are_read_and_removed_without_privileges() -> None:
    """G08: an agent that takes its own permissions away hides nothing and keeps nothing."""
    said = python(_UNPRIVILEGED).communicate()[0].decode().splitlines()
    assert said == ["['closed/file.txt'] b'content' {}", "True True False"]


def test_a_workspace_that_is_gone_or_unknown_is_an_error_and_not_a_change(ground: Ground) -> None:
    """G08: nothing is guessed."""
    folder = ground.place().folder
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(GangerError, match="is gone"):
        ground.take()
    assert ground.save() == ("", ())
    folder.symlink_to(folder.with_name("elsewhere"))
    with pytest.raises(GangerError, match="is gone"):
        ground.take()


def test_without_its_index_a_workspace_is_compared_by_content(ground: Ground) -> None:
    """G01: the index only makes it quick; damaged or lost, the same change comes out."""
    folder = ground.place().folder
    (folder / "src/two.py").write_text("changed\n")
    whole = ground.take()
    (index,) = (ground.settings.work / ".index").iterdir()
    index.write_bytes(index.read_bytes()[:-1] + b"?")
    assert ground.take() == whole
    index.unlink()
    assert ground.take() == whole


def test_what_was_saved_can_be_read_as_a_patch(ground: Ground) -> None:
    """Z05 G08: the WIP commit holds the work on the commit it began with, its message says how much."""
    place = ground.place()
    (place.folder / "src/two.py").write_text("half\n")
    (place.folder / ".env").write_text("SECRET=1\n")
    commit, files = ground.save()
    assert files == (".env", "src/two.py") and ground.save()[0] == commit
    assert git(ground.settings.store, "log", "-1", "--format=%s %P", commit) == f"WIP 2 {place.base}"
    patch = subprocess.run(["git", "show", commit], cwd=ground.settings.store, capture_output=True, check=True).stdout
    assert b"+half" in patch
