"""What a change set must satisfy beyond its paths: existence, hashes, sizes, contents, shrinkage."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from ganger.errors import NotFoundError, WriteRefused
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.writes import WriteRequest, WriteRules
from tests.workspaces.write_harness import all_codes, append, code_of, create, land, make_place, plan, replace

OLD = "old content\n"
OLD_SHA = hashlib.sha256(OLD.encode()).hexdigest()


def test_create_replace_and_append_do_what_they_say(tmp_path: Path) -> None:
    """T18: append to a missing file creates it; missing directories are made; empty content is legal."""
    place = make_place(tmp_path, {"old.txt": OLD, "log.txt": "1\n"})
    land(place, [create("a/b/new.txt", "n"), replace("old.txt", ""), append("log.txt", "2\n"), append("c.txt", "c")])
    texts = {name: (place.root / name).read_text() for name in ("a/b/new.txt", "old.txt", "log.txt", "c.txt")}
    assert texts == {"a/b/new.txt": "n", "old.txt": "", "log.txt": "1\n2\n", "c.txt": "c"}


def test_several_writes_to_one_path_apply_in_order(tmp_path: Path) -> None:
    """T18: one file, one change, however many writes it took."""
    place = make_place(tmp_path, {"a.txt": OLD})
    writes = [
        create("n.txt", "1"),
        append("n.txt", "2"),
        replace("n.txt", "3"),
        append("n.txt", "4"),
        append("a.txt", "!"),
    ]
    changes = land(place, writes)
    assert (place.root / "n.txt").read_text() == "34"
    assert [(one.path, one.kind.value) for one in changes.files] == [("n.txt", "create"), ("a.txt", "append")]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (create("old.txt"), "CREATE_EXISTS"),
        (replace("missing.txt"), "REPLACE_MISSING"),
        (WriteRequest("x", "delete", ""), "OP_UNKNOWN"),
        (WriteRequest("x", "create"), "CONTENT_REF_MISSING"),
        (create("x", "\ud800"), "CONTENT_NOT_UTF8"),
        (replace("old.txt", sha256_before="0" * 64), "HASH_MISMATCH"),
        (replace("old.txt", sha256_before="not a hash"), "HASH_MISMATCH"),
        (replace("old.txt", sha256_before=""), "HASH_MISMATCH"),
        (append("old.txt", sha256_before="0" * 64), "HASH_MISMATCH"),
        (append("missing.txt", sha256_before=OLD_SHA), "HASH_MISMATCH"),
        (create("missing.txt", sha256_before=hashlib.sha256(b"").hexdigest()), "HASH_MISMATCH"),
        (replace("sub", sha256_before=OLD_SHA), "PATH_NOT_REGULAR"),
    ],
)
def test_a_write_that_does_not_fit_the_tree_is_refused(tmp_path: Path, request_: WriteRequest, code: str) -> None:
    """T18 T17: stale hashes, the hash of a directory, wrong operations and broken contents."""
    place = make_place(tmp_path, {"old.txt": OLD, "sub/x": "x"})
    before = place.snapshot()
    assert code_of(place, request_) == code
    assert place.snapshot() == before


@pytest.mark.parametrize("given", [OLD_SHA, OLD_SHA.upper(), f"sha256:{OLD_SHA}", f"SHA256:{OLD_SHA.upper()}"])
def test_a_fitting_hash_is_accepted_in_every_spelling(tmp_path: Path, given: str) -> None:
    """T18: bare or with its prefix, in any case."""
    place = make_place(tmp_path, {"old.txt": OLD})
    assert code_of(place, replace("old.txt", sha256_before=given)) == ""


SHRINKAGE = [(100, 0, True), (101, 50, False), (101, 51, True), (200, 99, False), (200, 100, True), (5000, 0, False)]


@pytest.mark.parametrize(("before", "after", "allowed"), SHRINKAGE)
def test_a_file_may_not_shrink_to_less_than_half(tmp_path: Path, before: int, after: int, allowed: bool) -> None:
    """T18 T28 shrinkage: strictly more than 100 bytes before and strictly less than half after."""
    place = make_place(tmp_path, {"f.txt": "x" * before})
    assert code_of(place, replace("f.txt", "y" * after)) == ("" if allowed else "SHRINKAGE")


def test_shrinkage_counts_bytes_and_can_be_allowed(tmp_path: Path) -> None:
    """T18 T28 shrinkage: 60 letters of two bytes each are 120 bytes, and the operator may allow it."""
    place = make_place(tmp_path, {"f.txt": "ü" * 60})
    assert code_of(place, replace("f.txt", "x" * 59)) == "SHRINKAGE"
    assert code_of(place, replace("f.txt", "x" * 59), WriteRules(allow_shrinkage=True)) == ""


def test_shrinkage_is_judged_on_the_whole_change_set(tmp_path: Path) -> None:
    """T18 T28 shrinkage: a long file may come in pieces; small steps do not slip through."""
    place = make_place(tmp_path, {"f.txt": "x" * 1000})
    assert all_codes(place, [replace("f.txt", "y" * 300), append("f.txt", "y" * 300)]) == []
    assert all_codes(place, [replace("f.txt", "y" * 600), replace("f.txt", "y" * 400)]) == ["SHRINKAGE"]


def test_limits_of_size_and_number_hold(tmp_path: Path) -> None:
    """T18: one file, the whole result, the number of writes, and a file that is already too large to read."""
    place = make_place(tmp_path, {"big.txt": "x" * 11})
    rules = WriteRules(max_file_bytes=10, max_total_bytes=25, max_files=3)
    for writes in (
        [create("a", "x" * 11)],
        [create("a", "x" * 10), append("a", "x")],
        [create("a", "x" * 10), create("b", "x" * 10), create("c", "x" * 6)],
        [create("a"), create("b"), create("c"), create("d")],
        [append("big.txt", "")],
    ):
        with pytest.raises(WriteRefused) as caught:
            plan(place, writes, rules)
        assert caught.value.code == "TOO_LARGE"
    assert len(plan(place, [create("a", "x" * 10), create("b", "x" * 10), create("c", "x" * 5)], rules).files) == 3


REFERENCES = [
    ("out/text.txt", ""),
    ("out/missing.txt", "CONTENT_REF_MISSING"),
    ("nowhere/missing.txt", "CONTENT_REF_MISSING"),
    ("out/binary.dat", "CONTENT_NOT_UTF8"),
    ("out/link.txt", "CONTENT_REF_UNSAFE"),
    ("linked/secret.txt", "CONTENT_REF_UNSAFE"),
    ("out", "CONTENT_REF_UNSAFE"),
    ("out/pipe", "CONTENT_REF_UNSAFE"),
    ("../ws-evil/secret.txt", "CONTENT_REF_UNSAFE"),
    ("/etc/hostname", "CONTENT_REF_UNSAFE"),
    ("out/\0", "CONTENT_REF_UNSAFE"),
    (".env", "CONTENT_REF_UNSAFE"),
    (".ENV", "CONTENT_REF_UNSAFE"),
    ("out/text.txt/x", "CONTENT_REF_UNSAFE"),
]


@pytest.mark.parametrize(("reference", "code"), REFERENCES, ids=[ascii(one) for one, _ in REFERENCES])
def test_content_ref_is_read_as_safely_as_paths_are_written(tmp_path: Path, reference: str, code: str) -> None:
    """T18: a reference cannot carry anything from outside, through a link or out of a protected file."""
    place = make_place(tmp_path, {"out/text.txt": "text\n", ".env": "KEY=1\n"})
    (place.root / "out/binary.dat").write_bytes(b"\xff\xfe")
    (place.root / "out/link.txt").symlink_to(place.outside / "secret.txt")
    (place.root / "linked").symlink_to(place.outside)
    os.mkfifo(place.root / "out/pipe")
    assert code_of(place, WriteRequest("new.txt", "create", None, reference)) == code
    assert (place.root / "new.txt").exists() == (code == "")


def test_a_reference_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    """T18: bounded before it is in memory."""
    place = make_place(tmp_path, {"big.txt": "x" * 100})
    assert code_of(place, WriteRequest("n", "create", None, "big.txt"), WriteRules(max_file_bytes=99)) == "TOO_LARGE"


def test_the_first_refusal_is_raised_and_all_can_be_listed(tmp_path: Path) -> None:
    """T17 T18: the order of the writes decides, every time."""
    place = make_place(tmp_path, {"old.txt": OLD})
    writes = [create("ok"), create("old.txt"), create("/abs"), create(".git/config")]
    with pytest.raises(WriteRefused, match="exists already") as caught:
        plan(place, writes)
    assert (caught.value.code, caught.value.path) == ("CREATE_EXISTS", "old.txt")
    assert all_codes(place, writes) == ["CREATE_EXISTS", "PATH_ABSOLUTE", "PATH_PROTECTED"]


def test_one_bad_write_keeps_all_others_from_landing(tmp_path: Path) -> None:
    """T18: all of a task's writes or none."""
    place = make_place(tmp_path, {"old.txt": OLD})
    before = place.snapshot()
    with pytest.raises(WriteRefused):
        land(place, [create("a"), replace("old.txt", "b"), create("../c")])
    assert place.snapshot() == before


def test_the_description_is_json_without_contents(tmp_path: Path) -> None:
    """T18: what an event may carry."""
    place = make_place(tmp_path, {"old.txt": OLD})
    described = plan(place, [create("a", "secret words"), replace("old.txt", OLD)]).describe()
    assert "secret words" not in json.dumps(described)
    assert [(one["path"], one["kind"], one["size_before"]) for one in described] == [
        ("a", "create", None),
        ("old.txt", "unchanged", len(OLD)),
    ]
    assert described[1]["sha256_before"] == described[1]["sha256_after"] == OLD_SHA


def test_setuid_and_its_like_are_dropped_and_other_mode_bits_kept(tmp_path: Path) -> None:
    """T18: a replaced program stays executable and is never privileged."""
    place = make_place(tmp_path, {"tool": "old\n"})
    (place.root / "tool").chmod(0o7751)
    land(place, [replace("tool", "new\n"), create("plain")])
    assert (place.root / "tool").stat().st_mode & 0o7777 == 0o751
    assert (place.root / "plain").stat().st_mode & 0o7777 == 0o644


def test_an_unbelievably_long_path_gives_a_short_message(tmp_path: Path) -> None:
    """T18: a refusal can be shown and stored."""
    place = make_place(tmp_path)
    with pytest.raises(WriteRefused) as caught:
        plan(place, [create("x" * 5_000_000)])
    assert len(caught.value.message) < 500


def test_a_workspace_that_is_not_there_is_named(tmp_path: Path) -> None:
    """T18: no traceback for a wrong directory."""
    with pytest.raises(NotFoundError, match="no directory"), Tree(tmp_path / "gone"):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own files of others")
def test_files_keep_their_owner_and_new_ones_get_their_directorys(tmp_path: Path) -> None:
    """T18: when Ganger is root and the agent is not, the agent keeps its workspace."""
    place = make_place(tmp_path, {"sub/a.txt": "x\n"})
    os.chown(place.root / "sub", 1234, 1235)
    os.chown(place.root / "sub/a.txt", 1236, 1237)
    land(place, [append("sub/a.txt"), create("sub/b.txt"), create("sub/new/c.txt")])
    owners = [(place.root / "sub" / one).stat().st_uid for one in ("a.txt", "b.txt", "new", "new/c.txt")]
    assert owners == [1236, 1234, 1234, 1234]
